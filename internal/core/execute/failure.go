package execute

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// FailureOf returns the condition that says why w is not carried out. It is nil if w is carried out, and for a Work
// whose status a hub of an earlier version wrote. w may be nil.
func FailureOf(w *workv1alpha1.Work) *metav1.Condition {
	if w == nil {
		return nil
	}
	failure := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkFailure)
	if failure == nil || failure.Status != metav1.ConditionTrue {
		return nil
	}
	return failure
}
