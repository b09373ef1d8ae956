package execute

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// HubID is the identity of a hub. It is on each object that the hub writes. An object without it counts as this hub's.
// An empty HubID writes and reads no such marks.
type HubID string

// Plan is like the function Plan, but for an object that another hub may have written while it managed the member. Such
// an object is not deleted, because users of the other hub may need it. It is taken back if this hub applied it before;
// otherwise it is a conflict.
func (h HubID) Plan(w *workv1alpha1.Work, desired, observed *unstructured.Unstructured) Action {
	by := ""
	if h != "" && observed != nil {
		by = field(observed, "annotations", wellknown.HubAnnotation)
	}
	foreign := by != "" && by != string(h)
	if foreign && ownerOf(observed, w) == ours {
		switch {
		case w.DeletionTimestamp != nil:
			return Action{Kind: Nothing, Reason: "the object was last written by another hub (" + by + "), so it is kept"}
		case !Suspended(w) && !CreateOnly(w) && appliedGeneration(w) == 0 &&
			strategy(w, desired) != workv1alpha2.ConflictResolutionOverwrite:
			return Action{Kind: Conflict, Reason: otherHub(w, desired, by)}
		}
	}
	action := Plan(w, desired, observed)
	if action.Kind == Conflict {
		if former, _ := h.FormerCluster(observed, cluster(w)); former != "" {
			action.Reason = formerCluster(w, desired, former)
		}
	}
	if foreign && action.Kind == Nothing && action.Reason == asDesired {
		action = Action{Kind: Apply, Reason: "the object was last written by another hub (" + by + ")", Object: desired}
	}
	if action.Kind == Create || action.Kind == Apply {
		action.Object = h.Marked(action.Object)
	}
	return action
}

// Marked returns a copy of the manifest with the mark of this hub. The mark is no difference: it is added to writes
// that are due anyway.
func (h HubID) Marked(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	if h == "" {
		return manifest
	}
	clone := func(m map[string]any, key string) map[string]any {
		inner, _ := m[key].(map[string]any)
		inner = maps.Clone(inner)
		if inner == nil {
			inner = map[string]any{}
		}
		m[key] = inner
		return inner
	}
	out := &unstructured.Unstructured{Object: maps.Clone(manifest.Object)}
	clone(clone(out.Object, "metadata"), "annotations")[wellknown.HubAnnotation] = string(h)
	return out
}

func otherHub(w *workv1alpha1.Work, desired *unstructured.Unstructured, by string) string {
	return fmt.Sprintf("resource(kind=%s, %s/%s) in the cluster %s was sent by another hub (%s); to take it over, set conflictResolution: Overwrite in the policy, "+
		"or adopt it with `argosy adopt`", desired.GetKind(), desired.GetNamespace(), desired.GetName(), cluster(w), by)
}

func formerCluster(w *workv1alpha1.Work, desired *unstructured.Unstructured, former string) string {
	return fmt.Sprintf("resource(kind=%[1]s, %[2]s/%[3]s) in the cluster %[4]s is of this hub, from when the cluster was joined as %[5]s; to take it over, set conflictResolution: Overwrite in the policy, "+
		"or delete it with `argosy orphans delete %[6]s %[3]s%[7]s -C %[4]s --yes`", desired.GetKind(),
		desired.GetNamespace(), desired.GetName(), cluster(w), former, desired.GroupVersionKind().GroupKind(),
		namespaceFlag(desired))
}

// Suspended reports whether dispatching of w is suspended.
func Suspended(w *workv1alpha1.Work) bool {
	return w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching
}
