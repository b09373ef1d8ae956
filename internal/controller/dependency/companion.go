package dependency

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// eventMadeByMembers: the object does not follow its workload to the clusters, because they create their own.
//
//reference:event Warning on object that points at a template
const eventMadeByMembers = "MadeByMembers"

// leaders are the bindings that take along what points at their templates, by the keys by which that is found.
type leaders struct {
	mu   sync.RWMutex
	keys map[types.NamespacedName][]string
	by   map[string]map[types.NamespacedName]bool
}

// set replaces the keys of a binding; none takes it out.
func (l *leaders) set(binding types.NamespacedName, keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Equal(l.keys[binding], keys) {
		return
	}
	if l.keys == nil {
		l.keys = map[types.NamespacedName][]string{}
		l.by = map[string]map[types.NamespacedName]bool{}
	}
	for _, key := range l.keys[binding] {
		drop(l.by, key, binding)
	}
	delete(l.keys, binding)
	if len(keys) == 0 {
		return
	}
	l.keys[binding] = keys
	for _, key := range keys {
		put(l.by, key, binding)
	}
}

// at are the bindings that obj may follow, in no order, each once; none mostly.
func (l *leaders) at(obj *unstructured.Unstructured) []types.NamespacedName {
	if !dependency.IsCompanion(obj.GroupVersionKind().GroupKind()) {
		return nil
	}
	reaches := dependency.Reaches(obj)
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := map[types.NamespacedName]bool{}
	for _, key := range reaches {
		maps.Copy(all, l.by[key])
	}
	return slices.Collect(maps.Keys(all))
}

// alone forgets a binding that nothing follows.
func (r *reconciler) alone(key types.NamespacedName) {
	r.leaders.set(key, nil)
	r.made.Forget(key)
}

// accompanied are refs, what a template depends on, and what points at it. What pointed at it before does so still
// where that is not known, as at a start; again is when to look then, 0 for never.
func (r *reconciler) accompanied(b workv1alpha2.Binding, tpl *unstructured.Unstructured,
	refs []configv1alpha1.DependentObjectReference) (all []configv1alpha1.DependentObjectReference, again time.Duration) {
	reached := dependency.ReachedBy(tpl)
	if len(reached) == 0 {
		return refs, 0
	}
	kinds := dependency.CompanionKinds()
	r.Templates.Want(kinds...)
	// Before anything is looked up: what appears from here on wakes this binding.
	r.leaders.set(client.ObjectKeyFromObject(b), reached)

	unknown := slices.DeleteFunc(kinds, func(gk schema.GroupKind) bool {
		return r.Templates.Served(gk) && r.Templates.Synced(gk)
	})
	follow, made := dependency.Companions(tpl, r.Templates.PointingAt(tpl))
	if len(unknown) > 0 {
		for _, ref := range recorded(b) {
			if gk := propagate.GroupKind(ref.APIVersion, ref.Kind); slices.Contains(unknown, gk) {
				follow = append(follow, ref)
				again = unsyncedRetry
				if !r.Templates.Served(gk) {
					again = takenRetry
				}
			}
		}
	}
	r.tellMade(client.ObjectKeyFromObject(b), tpl, made)
	return dependency.With(refs, follow), again
}

// recorded are the dependencies in a binding's annotation that are of its own namespace: what points at a template, or
// reports for it, is nowhere else, and whoever may write the annotation could name anything. What nobody can read says
// nothing; it is written anew.
func recorded(b workv1alpha2.Binding) []configv1alpha1.DependentObjectReference {
	refs, _ := dependency.Recorded(b)
	return slices.DeleteFunc(refs, func(ref configv1alpha1.DependentObjectReference) bool {
		return ref.Namespace != b.GetNamespace()
	})
}

// tellMade tells of companions that do not follow, since members make such ones by themselves: once, until they are
// others.
func (r *reconciler) tellMade(leader types.NamespacedName, tpl *unstructured.Unstructured,
	made []*unstructured.Unstructured) {
	if len(made) == 0 {
		r.made.Forget(leader)
		return
	}
	var names []string
	for _, obj := range made {
		names = append(names, obj.GetName())
	}
	slices.Sort(names)
	if !r.made.News(leader, strings.Join(names, ",")) {
		return
	}
	for _, obj := range made {
		r.events.Eventf(obj, corev1.EventTypeWarning, eventMadeByMembers,
			"it is not propagated with %s %s, because the members create their own: remove the annotation %s from the former, or delete this object",
			tpl.GetKind(), tpl.GetName(), dependency.AutoGenerateAnnotation)
	}
}
