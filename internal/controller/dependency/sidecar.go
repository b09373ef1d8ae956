package dependency

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// injections are the SidecarSets that take dependencies along, by the keys of their bindings, with the bindings of the workloads that
// each was seen to inject into.
type injections struct {
	mu  sync.RWMutex
	all map[types.NamespacedName]injection
}

type injection struct {
	dependency.Injection
	into map[types.NamespacedName]bool
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
	at := dependency.Key(obj)
	for key, i := range x.all {
		if i.into[at] != (is != nil && injected(i.Injection, is)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// placed are the SidecarSets that inject into the workload of a binding.
func (x *injections) placed(binding types.NamespacedName) (keys []types.NamespacedName) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for key, i := range x.all {
		if i.into[binding] {
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

// sidecars are a SidecarSet as it is asked for its dependencies, and the clusters in which it has some, by namespace: where workloads
// are that it injects into. Other templates are themselves, and their clusters nil: all of theirs.
func (r *reconciler) sidecars(ctx context.Context, key types.NamespacedName, tpl *unstructured.Unstructured) (*unstructured.Unstructured, map[string]map[string]bool, error) {
	i, ok, err := dependency.InjectionOf(tpl)
	if err != nil || !ok {
		r.injections.drop(key)
		return tpl, nil, err
	}
	seen := injection{i, map[types.NamespacedName]bool{}}
	// Before anything is looked up: what comes from here on wakes this binding.
	r.injections.set(key, seen)
	into := map[types.NamespacedName]bool{}
	where := map[string]map[string]bool{}
	for _, gk := range r.Templates.Kinds() {
		for _, workload := range r.Templates.List(gk, "", nil) {
			if !injected(i, workload) {
				continue
			}
			at := dependency.Key(workload)
			into[at] = true
			labels, _, err := template.NamespaceLabels(ctx, r.client, at.Namespace)
			if err != nil {
				return nil, nil, err
			}
			if !i.SelectsNamespace(at.Namespace, labels) || names.Reserved(at.Namespace) {
				continue
			}
			b, err := scope.Bindings.Get(ctx, r.client, at)
			if apierrors.IsNotFound(err) {
				continue // its coming wakes this one
			}
			if err != nil {
				return nil, nil, fmt.Errorf("get binding %s: %w", at, err)
			}
			for _, c := range b.BindingSpec().Clusters {
				if where[at.Namespace] == nil {
					where[at.Namespace] = map[string]bool{}
				}
				where[at.Namespace][c.Name] = true
			}
		}
	}
	r.injections.set(key, injection{i, into})
	if len(where) == 0 {
		return tpl, where, nil
	}
	narrowed, err := dependency.Narrowed(tpl, slices.Sorted(maps.Keys(where)))
	return narrowed, where, err
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
	return slices.EqualFunc(was.BindingSpec().Clusters, is.BindingSpec().Clusters, func(a, b workv1alpha2.TargetCluster) bool { return a.Name == b.Name })
}
