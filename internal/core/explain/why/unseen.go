package why

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// WorksInStatus returns the Works of a binding as its status reports them, for users who may not read Works. Conditions
// that the status does not repeat are missing.
func WorksInStatus(b workv1alpha2.Binding) []workv1alpha1.Work {
	if b == nil {
		return nil
	}
	ref := b.BindingSpec().Resource
	var works []workv1alpha1.Work
	for _, item := range b.BindingStatus().AggregatedStatus {
		w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: names.ExecutionSpace(item.ClusterName),
			Name:      names.WorkFor(b.GetName(), match.GroupKind(ref.APIVersion, ref.Kind), ref.Name, ref.Namespace)}}
		applied := metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			Reason: workv1alpha1.ReasonAppliedSuccessful}
		if !item.Applied {
			applied.Status, applied.Reason, applied.Message = metav1.ConditionFalse, workv1alpha1.ReasonAppliedFailed,
				item.AppliedMessage
		}
		if item.Applied || item.AppliedMessage != "" {
			w.Status.Conditions = []metav1.Condition{applied}
		}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: item.Status, Health: item.Health}}
		if dispatch.Suspended(b, item.ClusterName) {
			yes := true
			w.Spec.SuspendDispatching = &yes
		}
		works = append(works, w)
	}
	return works
}
