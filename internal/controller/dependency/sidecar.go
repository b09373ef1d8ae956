package dependency

import (
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
	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/identity"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// injections are the SidecarSets that take dependencies along, by the keys of their bindings, with the workloads that
// each was seen to inject into.
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

// moved are the SidecarSets for which it is news what a workload is, or that it goes.
func (x *injections) moved(was, is *unstructured.Unstructured) (keys []types.NamespacedName) {
	obj := is
	if obj == nil {
		obj = was
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if len(x.all) == 0 || obj == nil {
		return nil
	}
	at := identity.Of(obj)
	for key, i := range x.all {
		if i.into[at] != (is != nil && injected(i.Injection, is)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// placed are the SidecarSets that inject into the workload of a binding.
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

// injected says whether a workload is sent to members and its pods are injected into.
func injected(i dependency.Injection, workload *unstructured.Unstructured) bool {
	_, held := propagate.Claimed(workload)
	return held && workload.GetDeletionTimestamp() == nil && i.Selects(workload)
}

// sidecars are a SidecarSet as it is asked for its dependencies, and the clusters in which it has some, by namespace:
// where workloads are that it injects into. Other templates are themselves, and their clusters nil: all of theirs.
// again is when to look again, since not all workloads are in memory; 0 for never.
func (r *reconciler) sidecars(ctx context.Context, key types.NamespacedName,
	tpl *unstructured.Unstructured) (asked *unstructured.Unstructured, where map[string]map[string]bool,
	again time.Duration, err error) {
	i, ok, err := dependency.InjectionOf(tpl)
	if err != nil || !ok {
		r.injections.drop(key)
		return tpl, nil, 0, err
	}
	seen := injection{i, map[identity.Object]bool{}}
	// Before anything is looked up: what comes from here on wakes this binding.
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
			at := identity.Of(workload)
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
				unsure[at.Namespace] = true // it is new, or made again: that it is placed wakes this one
				continue
			}
			add(where, at.Namespace, b.BindingSpec().Clusters)
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

// unread are the namespaces with bindings whose templates are not in memory, as at a start, and when to look again; 0
// for never.
func (r *reconciler) unread(ctx context.Context) (namespaces map[string]bool, again time.Duration, err error) {
	all, err := scope.Bindings.List(ctx, r.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, 0, fmt.Errorf("list bindings: %w", err)
	}
	namespaces = map[string]bool{}
	kinds := map[schema.GroupKind]time.Duration{}
	for _, b := range all {
		ref := b.BindingSpec().Resource
		gk := propagate.GroupKind(ref.APIVersion, ref.Kind)
		retry, known := kinds[gk]
		if !known {
			switch {
			case r.Templates.Unknown(gk):
				retry = unservedRetry
			case !r.Templates.Synced(gk):
				retry = unsyncedRetry
			}
			kinds[gk] = retry
		}
		if retry > 0 {
			namespaces[b.GetNamespace()] = true
			again = commit.ShorterDelay(again, retry)
		}
	}
	return namespaces, again, nil
}

// stays adds to where the clusters in which something follows the binding of that key in namespaces of which it is
// unsure whether it is still needed there.
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

// namespaceChanged wakes the SidecarSets when a namespace is another by its labels.
func (r *reconciler) namespaceChanged() handler.TypedFuncs[*corev1.Namespace, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[*corev1.Namespace, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Namespace], q queue) {
			if maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) {
				return
			}
			for _, key := range r.injections.keys() {
				q.Add(reconcile.Request{NamespacedName: key})
			}
		},
	}
}

// sameClusters says whether two bindings are in the same clusters.
func sameClusters(was, is workv1alpha2.Binding) bool {
	return slices.EqualFunc(was.BindingSpec().Clusters, is.BindingSpec().Clusters,
		func(a, b workv1alpha2.TargetCluster) bool { return a.Name == b.Name })
}
