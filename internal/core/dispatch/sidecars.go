package dispatch

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// Lacking says what a SidecarSet lacks to be in force in a cluster that it goes to, by its Work there, nil for none; empty for nothing,
// and for what no waiting gives it: it was refused, is held back by its users, is going, or was applied for longer than patience
// without anybody in the cluster taking note. Pods are injected into when they are made, so that workloads wait for it.
func Lacking(sidecars *workv1alpha1.Work, now time.Time, patience time.Duration) string {
	if sidecars == nil {
		return "is not sent there yet"
	}
	if sidecars.DeletionTimestamp != nil || sidecars.Spec.SuspendDispatching != nil && *sidecars.Spec.SuspendDispatching {
		return ""
	}
	applied := meta.FindStatusCondition(sidecars.Status.Conditions, workv1alpha1.WorkApplied)
	switch {
	case applied == nil:
		return "is not applied there yet"
	case applied.Status != metav1.ConditionTrue, now.Sub(applied.LastTransitionTime.Time) >= patience:
		return ""
	}
	for _, m := range sidecars.Status.ManifestStatuses {
		var status struct {
			ObservedGeneration int64 `json:"observedGeneration"`
		}
		if m.Status != nil && json.Unmarshal(m.Status.Raw, &status) == nil && status.ObservedGeneration > 0 {
			return ""
		}
	}
	return "was not seen there by OpenKruise yet"
}
