package dependency

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/companion"
)

// eventMadeByMembers: the object does not follow its workload to the clusters, because they create their own.
//
//reference:event Warning on object that points at a template
const eventMadeByMembers = "MadeByMembers"

// leaders indexes the bindings that may have companions, by the keys under which companions are found.
type leaders struct{ inverse[string] }

// followedBy returns the bindings that obj may follow. Usually there are none.
func (l *leaders) followedBy(obj *unstructured.Unstructured) []types.NamespacedName {
	if !companion.IsKind(obj.GroupVersionKind().GroupKind()) {
		return nil
	}
	return l.find(companion.Reaches(obj)...)
}

// forgetLeader removes a binding without companions.
func (r *reconciler) forgetLeader(key types.NamespacedName) {
	r.leaders.set(key, nil)
	r.made.Forget(key)
}

// accompanied adds the companions of a template to refs. After a restart, while they are unknown, the recorded ones
// stay. again is the delay until the next look; 0 means never.
func (r *reconciler) accompanied(b workv1alpha2.Binding, tpl *unstructured.Unstructured,
	refs []configv1alpha1.DependentObjectReference) (all []configv1alpha1.DependentObjectReference, again time.Duration) {
	reached := companion.ReachedBy(tpl)
	if len(reached) == 0 {
		return refs, 0
	}
	kinds := companion.Kinds()
	r.Templates.Want(kinds...)
	// Index the keys before the lookup, so that no change is missed.
	r.leaders.set(client.ObjectKeyFromObject(b), reached)

	unknown := slices.DeleteFunc(kinds, func(gk schema.GroupKind) bool {
		return r.Templates.Served(gk) && r.Templates.Synced(gk)
	})
	follow, made := companion.Find(tpl, r.Templates.PointingAt(tpl))
	if len(unknown) > 0 {
		for _, ref := range recorded(b) {
			if gk := match.GroupKind(ref.APIVersion, ref.Kind); slices.Contains(unknown, gk) {
				follow = append(follow, ref)
				again = unsyncedRetry
				if !r.Templates.Served(gk) {
					again = takenRetry
				}
			}
		}
	}
	r.emitMadeByMembers(client.ObjectKeyFromObject(b), tpl, made)
	return dependency.Merge(refs, follow), again
}

// recorded returns the recorded dependencies in the binding's own namespace. Companions and rights exist only there,
// and users can write anything into the annotation. An invalid annotation is ignored and rewritten.
func recorded(b workv1alpha2.Binding) []configv1alpha1.DependentObjectReference {
	refs, _ := propagate.RecordedDependencies(b)
	return slices.DeleteFunc(refs, func(ref configv1alpha1.DependentObjectReference) bool {
		return ref.Namespace != b.GetNamespace()
	})
}

// emitMadeByMembers records an event about companions that members create themselves, once until the list changes.
func (r *reconciler) emitMadeByMembers(leader types.NamespacedName, tpl *unstructured.Unstructured,
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
	if !r.made.IsNew(leader, strings.Join(names, ",")) {
		return
	}
	for _, obj := range made {
		r.events.Eventf(obj, corev1.EventTypeWarning, eventMadeByMembers,
			"it is not propagated with %s %s, because the members create their own: remove the annotation %s from the former, or delete this object",
			tpl.GetKind(), tpl.GetName(), kind.AutoGenerateAnnotation)
	}
}
