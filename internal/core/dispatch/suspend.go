package dispatch

import (
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// Suspensions returns the Works of the binding to suspend or resume that the decision does not rewrite. Users can so
// suspend Works although the template or an override is invalid, or the placement is pending.
func Suspensions(in Input, d Decision) []*workv1alpha1.Work {
	made := map[string]bool{}
	for _, r := range d.Results {
		made[r.Cluster] = r.Err == nil
	}
	from := originOf(in.Binding)
	var out []*workv1alpha1.Work
	for _, target := range Targets(in.Binding) {
		w := in.Existing[target.Name]
		if w == nil || w.DeletionTimestamp != nil || made[target.Name] && d.Err == nil || !comesFrom(w, from) {
			continue
		}
		want := Suspended(in.Binding, target.Name)
		if isTrue(w.Spec.SuspendDispatching) == want {
			continue
		}
		w = w.DeepCopy()
		w.Spec.SuspendDispatching = nil
		if want {
			w.Spec.SuspendDispatching = new(true)
		}
		out = append(out, w)
	}
	return out
}

// comesFrom reports whether a Work belongs to the binding, not to another one whose Work has the same name.
func comesFrom(w *workv1alpha1.Work, from origin) bool {
	for key, value := range from.annotations {
		if w.Annotations[key] != value {
			return false
		}
	}
	return true
}
