package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// contentsPage is the page size per kind, contentsMost the maximal number of objects per namespace that are read.
const (
	contentsPage = 500
	contentsMost = 20_000
	// emptyPages bounds pages that are not full although the member reports more; API servers send none.
	emptyPages = 100
)

// contentsTimeout bounds one request of ContentsAt.
const contentsTimeout = 15 * time.Second

// ErrContentsUnknown means that the contents of a namespace cannot be listed completely, now or soon. The wrapping
// error has the reason.
var ErrContentsUnknown = errors.New("the contents of the namespace cannot be listed completely")

// Contents returns the objects in a namespace of the member, of all kinds but those that are transient, by their
// metadata.
func (m *Member) Contents(ctx context.Context, namespace string) ([]execute.Content, error) {
	apis, err := m.Discover(ctx)
	if err != nil {
		return nil, err
	}
	return contentsOf(ctx, apis, m.conn().metadata, m.Name, namespace)
}

// ContentsAt is Contents for a cluster that is not a member.
func ContentsAt(ctx context.Context, config *rest.Config, cluster, namespace string) ([]execute.Content, error) {
	config = rest.CopyConfig(config)
	config.Timeout, config.QPS = contentsTimeout, -1
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	apis, err := apisOf(d.ServerGroupsAndResources())
	if err != nil {
		return nil, fmt.Errorf("discover what cluster %q serves: %w", cluster, err)
	}
	return contentsOf(ctx, apis, c, cluster, namespace)
}

// instancesPage is the maximal number of objects of a definition that are read.
const instancesPage = 500

// ErrInstancesUnknown means that the objects of a definition cannot be listed. The wrapping error has the reason.
var ErrInstancesUnknown = errors.New("its objects cannot be listed")

// Instances returns metadata of objects of a definition in the member; more means that there are others. Every served
// version lists all objects. Objects in another stored version are converted, so a broken conversion fails the list.
func (m *Member) Instances(ctx context.Context,
	definition *unstructured.Unstructured) (objects []execute.Content, more bool, err error) {
	spec := fields.Object(definition.Object, "spec")
	group, plural := fields.Text(spec, "group"), fields.Text(spec, "names", "plural")
	kind := fields.Text(spec, "names", "kind")
	var served []string
	for _, v := range fields.Objects(spec, "versions") {
		name := fields.Text(v, "name")
		if !fields.Yes(v, "served") || name == "" {
			continue
		}
		if fields.Yes(v, "storage") {
			served = slices.Insert(served, 0, name) // the stored version needs the fewest conversions
		} else {
			served = append(served, name)
		}
	}
	err = errors.New("none of its versions is served")
	for _, version := range served {
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
		var list *metav1.PartialObjectMetadataList
		if list, err = m.conn().metadata.Resource(gvr).List(ctx, metav1.ListOptions{Limit: instancesPage}); err != nil {
			if passing(err) || ctx.Err() != nil {
				return nil, false, fmt.Errorf("list %s in cluster %q: %w", gvr.GroupResource(), m.Name, err)
			}
			continue
		}
		for i := range list.Items {
			c := contentOf(schema.GroupKind{Group: group, Kind: kind}, &list.Items[i], nil)
			c.Name = text.Path(list.Items[i].Namespace, c.Name)
			objects = append(objects, c)
		}
		return objects, list.Continue != "", nil
	}
	return nil, false, fmt.Errorf("%w: list %s.%s in cluster %q: %w", ErrInstancesUnknown, plural, group, m.Name, err)
}

// passing reports whether the error of a request is temporary and proves nothing about the object.
func passing(err error) bool {
	return Unreachable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) ||
		apierrors.IsUnauthorized(err)
}

func contentsOf(ctx context.Context, apis APIs, c metadata.Interface, cluster,
	namespace string) ([]execute.Content, error) {
	for gv, why := range apis.Failed {
		if group, _, _ := strings.Cut(gv, "/"); strings.HasSuffix(group, "metrics.k8s.io") {
			continue // metrics are not stored
		}
		return nil, fmt.Errorf("%w: cluster %q does not report what it serves in %s: %s", ErrContentsUnknown, cluster, gv,
			why)
	}
	namespaced := map[schema.GroupKind]bool{}
	type resource struct {
		schema.GroupVersionResource
		kind schema.GroupKind
	}
	var all []resource
	for _, list := range apis.Lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			gk := gv.WithKind(r.Kind).GroupKind()
			if strings.Contains(r.Name, "/") || !r.Namespaced || namespaced[gk] {
				continue // one version of each kind is enough
			}
			namespaced[gk] = true
			// What cannot be deleted is not stored, as metrics are not.
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !execute.Transient(gk) {
				all = append(all, resource{gv.WithResource(r.Name), gk})
			}
		}
	}
	var contents []execute.Content
	empty := 0
	for _, r := range all {
		o := metav1.ListOptions{Limit: contentsPage}
		for {
			list, err := c.Resource(r.GroupVersionResource).Namespace(namespace).List(ctx, o)
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				break // the kind was removed in the meantime
			}
			switch {
			case err != nil && (passing(err) || ctx.Err() != nil):
				return nil, fmt.Errorf("list %s in %s of cluster %q: %w", r.GroupResource(), namespace, cluster, err)
			case err != nil:
				return nil, fmt.Errorf("%w: list %s in %s of cluster %q: %w", ErrContentsUnknown, r.GroupResource(), namespace,
					cluster, err)
			}
			for i := range list.Items {
				contents = append(contents, contentOf(r.kind, &list.Items[i], namespaced))
			}
			if len(contents) > contentsMost {
				return nil, fmt.Errorf("%w: there are more than %d objects in %s of cluster %q", ErrContentsUnknown, contentsMost,
					namespace, cluster)
			}
			if o.Continue = list.Continue; o.Continue == "" {
				break
			}
			if len(list.Items) < contentsPage {
				empty++
			}
			if empty > emptyPages {
				return nil, fmt.Errorf("%w: the list of %s in %s of cluster %q does not end", ErrContentsUnknown, r.GroupResource(),
					namespace, cluster)
			}
		}
	}
	return contents, nil
}

func contentOf(gk schema.GroupKind, obj *metav1.PartialObjectMetadata,
	namespaced map[schema.GroupKind]bool) execute.Content {
	c := execute.Content{GroupKind: gk, Name: obj.Name, UID: obj.UID, Going: obj.DeletionTimestamp != nil,
		ServiceAccount: obj.Annotations[corev1.ServiceAccountNameKey]}
	c.Managed, c.Work = execute.ManagedBy(obj)
	for _, owner := range obj.OwnerReferences {
		c.Owners = append(c.Owners, owner.UID)
		gv, err := schema.ParseGroupVersion(owner.APIVersion)
		kind := gv.WithKind(owner.Kind).GroupKind()
		// An owner of a transient kind is not among the contents either.
		c.OwnedAbove = c.OwnedAbove || err != nil || !namespaced[kind] || execute.Transient(kind)
	}
	return c
}
