package member

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/mcs"
)

// clusterSet has what a member exports and imports itself, without policies of the hub.
type clusterSet struct {
	// changed is called with an export, import or Service that changed; without a name, with a namespace that did; and
	// empty when a kind is listed for the first time.
	changed func(of types.NamespacedName)

	mu         sync.Mutex
	followed   bool
	exports    *values[object[mcs.Export]]
	imports    *values[object[[]string]] // the clusters in the status of the ServiceImports of hubs
	services   *values[object[mcs.Service]]
	namespaces *values[object[string]]
}

// object is what is kept of an object, with its name.
type object[V any] struct {
	of   types.NamespacedName
	kept V
}

// Shared is what a member says about a Service that clusters export themselves.
type Shared struct {
	// Known is true once ServiceExports and Services are listed. Export is nil without a ServiceExport.
	Known  bool
	Export *mcs.Export
	// Derived is the derived Service that a hub wrote; nil if there is none or it is not known.
	Derived *mcs.Service
	// Imported is true if a hub has written the ServiceImport. From are the clusters in its status.
	Imported bool
	From     []string
	// HasNamespace is valid once NamespaceKnown is true.
	HasNamespace, NamespaceKnown bool
}

// FollowClusterSet starts to watch the ServiceExports, ServiceImports, Services and namespaces of the member, until it
// is forgotten. Changes are reported to OnShared.
func (m *Member) FollowClusterSet() {
	c := &m.clusterSet
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followed {
		return
	}
	c.followed = true
	c.exports = followAll(m, "serviceexports", c.changed, func(u *unstructured.Unstructured) (mcs.Export, bool, error) {
		e := &multiclusterv1alpha1.ServiceExport{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, e)
		return mcs.ExportOf(m.Name, e), e.DeletionTimestamp == nil, err
	}, multiCluster("serviceexports"))
	c.imports = followAll(m, "serviceimports", c.changed, func(u *unstructured.Unstructured) (from []string, _ bool,
		_ error) {
		i := &multiclusterv1alpha1.ServiceImport{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, i)
		for _, s := range i.Status.Clusters {
			from = append(from, s.Cluster)
		}
		return from, i.DeletionTimestamp == nil && i.Labels[workv1alpha2.ManagedLabel] == "true", err
	}, multiCluster("serviceimports"))
	c.services = followAll(m, "services", c.changed, func(u *unstructured.Unstructured) (mcs.Service, bool, error) {
		s := &corev1.Service{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s)
		return mcs.ServiceOf(s), s.DeletionTimestamp == nil, err
	}, core("services"))
	c.namespaces = followAll(m, "namespaces", func(of types.NamespacedName) {
		c.changed(types.NamespacedName{Namespace: of.Name})
	}, func(u *unstructured.Unstructured) (string, bool, error) {
		return u.GetName(), u.GetDeletionTimestamp() == nil, nil
	}, core("namespaces"))
}

// Shared returns what the member says about a Service; nothing is known before FollowClusterSet.
func (m *Member) Shared(of types.NamespacedName) (s Shared) {
	c := &m.clusterSet
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.followed {
		return s
	}
	if export, exported := c.exports.known(of); exported {
		s.Export = &export.kept
		if service, has := c.services.known(of); has {
			s.Export.Service = &service.kept
		}
	}
	if service, has := c.services.known(derived(of)); has && service.kept.Managed {
		s.Derived = &service.kept
	}
	_, exports := c.exports.get(of)
	_, services := c.services.get(of)
	s.Known = exports && services
	i, imported := c.imports.known(of)
	s.From, s.Imported = i.kept, imported
	_, s.HasNamespace = c.namespaces.known(types.NamespacedName{Name: of.Namespace})
	_, s.NamespaceKnown = c.namespaces.get(types.NamespacedName{Name: of.Namespace})
	return s
}

// Exports calls f for each Service that the member exports.
func (m *Member) Exports(f func(types.NamespacedName)) {
	c := &m.clusterSet
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followed {
		c.exports.visit(func(of types.NamespacedName, _ object[mcs.Export]) { f(of) })
	}
}

// derived is the name of the derived Service of an import.
func derived(of types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: of.Namespace, Name: names.DerivedService(of.Name)}
}

// followAll keeps what trim returns of all objects of a resource.
func followAll[V any](m *Member, resource string, changed func(types.NamespacedName),
	trim func(*unstructured.Unstructured) (V, bool, error), lw func(*connection) cache.ListWatch) *values[object[V]] {
	var first sync.Once
	store := newValues(func(changes []change[object[V]]) {
		first.Do(func() { changed(types.NamespacedName{}) })
		for _, c := range changes {
			changed(cmp.Or(c.new.of, c.old.of))
		}
	})
	named := func(u *unstructured.Unstructured) (object[V], bool, error) {
		kept, counts, err := trim(u)
		return object[V]{keyOf(u), kept}, counts, err
	}
	go m.follow(fmt.Sprintf("%s in cluster %s", resource, m.Name), &unstructured.Unstructured{},
		&trimming[*unstructured.Unstructured, object[V]]{trim: named, into: store}, lw)
	return store
}

// core lists and watches a resource of the core group.
func core(resource string) func(*connection) cache.ListWatch {
	return func(c *connection) cache.ListWatch {
		return c.listWatch(corev1.SchemeGroupVersion.WithResource(resource), "", "")
	}
}

// The versions of ServiceExports and ServiceImports, whose schema is the same, newest first.
var clusterSetVersions = []string{"v1beta1", multiclusterv1alpha1.GroupVersion.Version}

// multiCluster lists and watches a resource of SIG Multicluster in the newest version that the member serves.
func multiCluster(resource string) func(*connection) cache.ListWatch {
	return func(c *connection) cache.ListWatch {
		var mu sync.Mutex
		served := c.listWatch(schema.GroupVersionResource{Group: multiclusterv1alpha1.GroupVersion.Group,
			Version: clusterSetVersions[0], Resource: resource}, "", "")
		return cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (list runtime.Object, err error) {
				for _, version := range clusterSetVersions {
					lw := c.listWatch(schema.GroupVersionResource{Group: multiclusterv1alpha1.GroupVersion.Group,
						Version: version, Resource: resource}, "", "")
					if list, err = lw.ListWithContextFunc(ctx, o); !apierrors.IsNotFound(err) {
						mu.Lock()
						served = lw
						mu.Unlock()
						return list, err
					}
				}
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				mu.Lock()
				lw := served
				mu.Unlock()
				return lw.WatchFuncWithContext(ctx, o)
			},
		}
	}
}

// statusKey marks requests that the hub sends itself to a cluster in Pull mode.
type statusKey struct{}

// PatchClusterSetStatus merges a patch into the status of a ServiceExport or ServiceImport, also in a cluster in Pull
// mode: its agent writes the objects, and knows no more of the other clusters than these objects say.
func (m *Member) PatchClusterSetStatus(ctx context.Context, kind schema.GroupKind, of types.NamespacedName,
	patch []byte) (err error) {
	ctx = context.WithValue(ctx, statusKey{}, true)
	for _, version := range clusterSetVersions {
		gvr := schema.GroupVersionResource{Group: kind.Group, Version: version, Resource: strings.ToLower(kind.Kind) + "s"}
		_, err = m.conn().dynamic.Resource(gvr).Namespace(of.Namespace).Patch(ctx, of.Name, types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: Manager}, "status")
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("cluster %q: write the status of %s %s: %w", m.Name, kind.Kind, of, err)
	}
	return nil
}
