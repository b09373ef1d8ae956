package execute

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Hub is the identity of the hub that acts. Each object that it writes carries it; one without is older than that, and
// as good as its own. The empty Hub marks nothing and heeds no mark.
type Hub string

// Plan is Plan for an object that another hub may have written since this one did, each while it held the member. Of
// such an object:
//
//	not deleted: the other hub's users may need it
//	taken back where this hub has applied it before
//	a conflict where it has not, to be resolved like any other
func (h Hub) Plan(w *workv1alpha1.Work, desired, observed *unstructured.Unstructured) Action {
	by := ""
	if h != "" && observed != nil {
		by = field(observed, "annotations", workv1alpha2.HubAnnotation)
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
	if foreign && action.Kind == Nothing && action.Reason == asDesired {
		action = Action{Kind: Apply, Reason: "the object was last written by another hub (" + by + ")", Object: desired}
	}
	if action.Kind == Create || action.Kind == Apply {
		action.Object = h.marked(w, action.Object)
	}
	return action
}

// marked is a copy of the manifest that says which hub wrote it, and names w by its present name. These marks come with
// the write that is due anyway: they are no differences, and the first is not listed among the annotations that the
// manifest comes with.
func (h Hub) marked(w *workv1alpha1.Work, manifest *unstructured.Unstructured) *unstructured.Unstructured {
	if h == "" && field(manifest, "annotations", workv1alpha2.WorkNameAnnotation) == w.Name {
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
	annotations := clone(clone(out.Object, "metadata"), "annotations")
	annotations[workv1alpha2.WorkNameAnnotation] = w.Name
	if h != "" {
		annotations[workv1alpha2.HubAnnotation] = string(h)
	}
	return out
}

func otherHub(w *workv1alpha1.Work, desired *unstructured.Unstructured, by string) string {
	return fmt.Sprintf("resource(kind=%s, %s/%s) in the cluster %s was sent by another hub (%s); to take it over, set conflictResolution: Overwrite in the policy, "+
		"or adopt it with `argosy adopt`", desired.GetKind(), desired.GetNamespace(), desired.GetName(), cluster(w), by)
}

// Suspended reports whether dispatching of w is suspended.
func Suspended(w *workv1alpha1.Work) bool {
	return w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching
}
