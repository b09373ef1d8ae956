package dispatch

import (
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// Suspensions are the Works of the binding that are to be suspended, or to go on, though the decision does not make
// them anew: what is wrong with a template or an override, or waits for a placement, keeps no one from stopping what
// was sent before.
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
		want := suspended(in.Binding.BindingSpec().Suspension, target.Name)
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

// comesFrom reports whether a Work is that of the binding, and not of another whose Work has the same name.
func comesFrom(w *workv1alpha1.Work, from origin) bool {
	for key, value := range from.annotations {
		if w.Annotations[key] != value {
			return false
		}
	}
	return true
}
