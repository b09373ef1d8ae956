package dependency

import (
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

// index finds the bindings that depend on an object, which need not exist yet. It is rebuilt after a restart as
// bindings are reconciled.
type index struct {
	mu sync.RWMutex
	// of has the dependencies of each binding. The other maps are its inverse.
	of map[types.NamespacedName][]configv1alpha1.DependentObjectReference
	// byName indexes references with a name, bySelector those with a label selector.
	byName     map[reference]map[types.NamespacedName]bool
	bySelector map[place]map[types.NamespacedName]bool
}

type reference struct {
	schema.GroupKind
	types.NamespacedName
}

// place is the kind and namespace in which a label selector selects.
type place struct {
	schema.GroupKind
	namespace string
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
		x.byName = map[reference]map[types.NamespacedName]bool{}
		x.bySelector = map[place]map[types.NamespacedName]bool{}
	}
	for _, ref := range x.of[binding] {
		if ref.LabelSelector == nil {
			drop(x.byName, referenceOf(ref), binding)
		} else {
			drop(x.bySelector, placeOf(ref), binding)
		}
	}
	delete(x.of, binding)
	if len(refs) == 0 {
		return
	}
	x.of[binding] = refs
	for _, ref := range refs {
		if ref.LabelSelector == nil {
			put(x.byName, referenceOf(ref), binding)
		} else {
			put(x.bySelector, placeOf(ref), binding)
		}
	}
}

// dependents returns the bindings that depend on obj.
func (x *index) dependents(obj *unstructured.Unstructured) []types.NamespacedName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	gk := match.TemplateOf(obj).GroupKind()
	var out []types.NamespacedName
	for binding := range x.byName[reference{gk,
		types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}] {
		out = append(out, binding)
	}
	for binding := range x.bySelector[place{gk, obj.GetNamespace()}] {
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

func placeOf(ref configv1alpha1.DependentObjectReference) place {
	return place{match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace}
}

func put[K comparable](m map[K]map[types.NamespacedName]bool, k K, binding types.NamespacedName) {
	if m[k] == nil {
		m[k] = map[types.NamespacedName]bool{}
	}
	m[k][binding] = true
}

func drop[K comparable](m map[K]map[types.NamespacedName]bool, k K, binding types.NamespacedName) {
	delete(m[k], binding)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}
