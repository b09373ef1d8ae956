package dependency

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// inverse has the keys of each binding, and finds the bindings of a key.
type inverse[K comparable] struct {
	mu   sync.RWMutex
	keys map[types.NamespacedName][]K
	by   map[K]map[types.NamespacedName]bool
}

// set replaces the keys of a binding. Without keys it removes the binding.
func (x *inverse[K]) set(binding types.NamespacedName, keys []K) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slices.Equal(x.keys[binding], keys) {
		return
	}
	if x.keys == nil {
		x.keys, x.by = map[types.NamespacedName][]K{}, map[K]map[types.NamespacedName]bool{}
	}
	for _, key := range x.keys[binding] {
		if delete(x.by[key], binding); len(x.by[key]) == 0 {
			delete(x.by, key)
		}
	}
	if x.keys[binding] = keys; len(keys) == 0 {
		delete(x.keys, binding)
	}
	for _, key := range keys {
		if x.by[key] == nil {
			x.by[key] = map[types.NamespacedName]bool{}
		}
		x.by[key][binding] = true
	}
}

// find returns the bindings that have any of the keys, without duplicates and in no order.
func (x *inverse[K]) find(keys ...K) []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := map[types.NamespacedName]bool{}
	for _, key := range keys {
		maps.Copy(all, x.by[key])
	}
	return slices.Collect(maps.Keys(all))
}

// index finds the bindings that depend on an object, which need not exist yet. It is rebuilt after a restart as
// bindings are reconciled.
type index struct {
	mu sync.RWMutex
	// of has the dependencies of each binding.
	of       map[types.NamespacedName][]configv1alpha1.DependentObjectReference
	bindings inverse[reference]
}

// reference is an object or, without a name, the objects of a kind and namespace that a label selector may select.
type reference struct {
	schema.GroupKind
	types.NamespacedName
}

// add adds dependencies of a binding, until set replaces them.
func (x *index) add(binding types.NamespacedName, refs []configv1alpha1.DependentObjectReference) {
	x.mu.RLock()
	had := x.of[binding]
	x.mu.RUnlock()
	// A binding is reconciled by one worker at a time, so nothing else changes its entry.
	x.set(binding, interpret.SortDependencies(slices.Concat(had, refs)))
}

// set replaces the dependencies of a binding. Without any it removes the binding.
func (x *index) set(binding types.NamespacedName, refs []configv1alpha1.DependentObjectReference) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of = map[types.NamespacedName][]configv1alpha1.DependentObjectReference{}
	}
	if x.of[binding] = refs; len(refs) == 0 {
		delete(x.of, binding)
	}
	keys := make([]reference, len(refs))
	for i, ref := range refs {
		if keys[i] = referenceOf(ref); ref.LabelSelector != nil {
			keys[i].Name = ""
		}
	}
	x.bindings.set(binding, keys)
}

// dependents returns the bindings that depend on obj.
func (x *index) dependents(obj *unstructured.Unstructured) []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	at := reference{match.TemplateOf(obj).GroupKind(),
		types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	out := x.bindings.find(at)
	at.Name = ""
	for _, binding := range x.bindings.find(at) {
		for _, ref := range x.of[binding] {
			// An invalid selector selects nothing. The reconciliation of the binding reports it.
			if ok, err := dependency.Selects(ref, obj); ref.LabelSelector != nil && err == nil && ok {
				out = append(out, binding)
				break
			}
		}
	}
	return out
}

func referenceOf(ref configv1alpha1.DependentObjectReference) reference {
	return reference{match.GroupKind(ref.APIVersion, ref.Kind),
		types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
}
