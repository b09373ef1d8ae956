package dependency

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// injections are the SidecarSets with dependencies, by the keys of their bindings, with the workloads that each injects
// into.
type injections struct {
	mu  sync.RWMutex
	all map[types.NamespacedName]injection
}

type injection struct {
	dependency.Injection
	into map[identity.Object]bool
}

func (x *injections) set(key types.NamespacedName, i injection) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all == nil {
		x.all = map[types.NamespacedName]injection{}
	}
	x.all[key] = i
}

func (x *injections) drop(key types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.all, key)
}

// moved returns the SidecarSets that are affected by a change or deletion of a workload.
func (x *injections) moved(was, is *unstructured.Unstructured) (keys []types.NamespacedName) {
	obj := cmp.Or(is, was)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.all) == 0 || obj == nil {
		return nil
	}
	at := identity.FromManifest(obj)
	for key, i := range x.all {
		if i.into[at] != (is != nil && injected(i.Injection, is)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// placed returns the SidecarSets that inject into the workload of a binding.
func (x *injections) placed(b workv1alpha2.Binding) (keys []types.NamespacedName) {
	workload := propagate.TemplateOfBinding(b)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for key, i := range x.all {
		if i.into[workload] {
			keys = append(keys, key)
		}
	}
	return keys
}

func (x *injections) keys() []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Keys(x.all))
}

// injected reports whether the workload is propagated and its pods are injected into.
func injected(i dependency.Injection, workload *unstructured.Unstructured) bool {
	_, claimed := propagate.Claimed(workload)
	return claimed && workload.GetDeletionTimestamp() == nil && i.Selects(workload)
}

// sidecars returns the SidecarSet to use for the lookup of dependencies, and the clusters that need them, by namespace:
// those of the workloads that it injects into. For other templates it returns the template itself and nil for all
// clusters. again is the delay until the next look while not all workloads are cached; 0 means never.
func (r *reconciler) sidecars(ctx context.Context, key types.NamespacedName,
	tpl *unstructured.Unstructured) (asked *unstructured.Unstructured, where map[string]map[string]bool,
	again time.Duration, err error) {
	i, ok, err := dependency.InjectionOf(tpl)
	if err != nil || !ok {
		r.injections.drop(key)
		return tpl, nil, 0, err
	}
	seen := injection{i, map[identity.Object]bool{}}
	// Index it before the lookup, so that no change is missed.
	r.injections.set(key, seen)
	into := map[identity.Object]bool{}
	unsure, again, err := r.unread(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	where = map[string]map[string]bool{}
	for _, gk := range r.Templates.Kinds() {
		for _, workload := range r.Templates.List(gk, "", nil) {
			if !injected(i, workload) {
				continue
			}
			at := identity.FromManifest(workload)
			into[at] = true
			labels, _, err := template.NamespaceLabels(ctx, r.client, at.Namespace)
			if err != nil {
				return nil, nil, 0, err
			}
			if !i.SelectsNamespace(at.Namespace, labels) || names.Reserved(at.Namespace) {
				continue
			}
			b, _, err := scope.BindingFor(ctx, r.client, gk, at.Namespace, at.Name, client.UnsafeDisableDeepCopy)
			if err != nil {
				return nil, nil, 0, err
			}
			if b == nil || schedule.NeverPlaced(b) {
				unsure[at.Namespace] = true // new or recreated; its placement triggers this binding again
				continue
			}
			add(where, at.Namespace, dependency.Occupied(b.BindingSpec()))
		}
	}
	r.injections.set(key, injection{i, into})
	if err := r.stays(ctx, key, unsure, where); err != nil {
		return nil, nil, 0, err
	}
	if len(where) == 0 {
		return tpl, where, again, nil
	}
	asked, err = dependency.Narrowed(tpl, slices.Sorted(maps.Keys(where)))
	return asked, where, again, err
}

// unread returns the namespaces with bindings whose templates are not cached yet, and the delay until the next look; 0
// means never.
func (r *reconciler) unread(ctx context.Context) (namespaces map[string]bool, again time.Duration, err error) {
	all, err := scope.Bindings.List(ctx, r.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, 0, fmt.Errorf("list bindings: %w", err)
	}
	namespaces = map[string]bool{}
	kinds := map[schema.GroupKind]time.Duration{}
	for _, b := range all {
		ref := b.BindingSpec().Resource
		gk := match.GroupKind(ref.APIVersion, ref.Kind)
		retry, known := kinds[gk]
		if !known {
			retry = r.unreadRetry(gk)
			kinds[gk] = retry
		}
		if retry > 0 {
			namespaces[b.GetNamespace()] = true
			again = commit.ShorterDelay(again, retry)
		}
	}
	return namespaces, again, nil
}

// stays adds the clusters of attached bindings in namespaces for which it is unknown whether they are still needed.
func (r *reconciler) stays(ctx context.Context, key types.NamespacedName, unsure map[string]bool,
	where map[string]map[string]bool) error {
	if len(unsure) == 0 {
		return nil
	}
	attached, err := r.attached(ctx, key)
	if err != nil {
		return err
	}
	for _, b := range attached {
		for _, by := range b.BindingSpec().RequiredBy {
			if unsure[b.GetNamespace()] && by.Namespace == key.Namespace && by.Name == key.Name {
				add(where, b.GetNamespace(), by.Clusters)
			}
		}
	}
	return nil
}

// add adds clusters to those of a namespace.
func add(where map[string]map[string]bool, namespace string, clusters []workv1alpha2.TargetCluster) {
	if where[namespace] == nil && len(clusters) > 0 {
		where[namespace] = map[string]bool{}
	}
	for _, c := range clusters {
		where[namespace][c.Name] = true
	}
}

// namespaceChanged triggers the SidecarSets when the labels of a namespace change.
func (r *reconciler) namespaceChanged() handler.TypedFuncs[*corev1.Namespace, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[*corev1.Namespace, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Namespace], q queue) {
			if maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) {
				return
			}
			enqueue(q.Add, r.injections.keys())
		},
	}
}

// sameClusters reports whether two bindings occupy the same clusters.
func sameClusters(was, is workv1alpha2.Binding) bool {
	return slices.EqualFunc(dependency.Occupied(was.BindingSpec()), dependency.Occupied(is.BindingSpec()),
		func(a, b workv1alpha2.TargetCluster) bool { return a.Name == b.Name })
}
