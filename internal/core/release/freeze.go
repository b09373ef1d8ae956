package release

import (
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// FrozenStage returns the stage during which a release keeps FederatedHPAs from scaling a workload; empty for none.
// plan is that of the workload's binding, and r the release of its name; both may be nil. The stage is read from the
// release, because the plan is not written when a stage ends.
func FrozenStage(plan *fleet.Plan, r *releasev1alpha1.Release) string {
	if plan == nil || r == nil || plan.UID != string(r.UID) || !FreezesAutoscaling(r.Status.Strategy) ||
		r.Status.Phase != releasev1alpha1.ReleaseRunning {
		return ""
	}
	stage := StageUnderWay(r)
	if stage == nil {
		return ""
	}
	// The other clusters take over the load of a lost one.
	if conditionOf(&r.Status, releasev1alpha1.ReleaseProgressing).Reason == releasev1alpha1.ReasonClusterUnreachable {
		return ""
	}
	switch stage.Phase {
	case releasev1alpha1.StageUpdating, releasev1alpha1.StageSoaking, releasev1alpha1.StageChecking:
		return stage.Name
	}
	return ""
}

// FreezesAutoscaling reports whether FederatedHPAs do not scale a workload while a stage is under way. The strategy may
// be nil.
func FreezesAutoscaling(strategy *releasev1alpha1.ReleaseStrategySpec) bool {
	return strategy != nil && strategy.Autoscaling == releasev1alpha1.AutoscalingFreeze
}
