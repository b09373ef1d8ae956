package release

import (
	"fmt"
	"slices"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// canReopen reports whether a release has ended in a phase from which it may be rolled back: it has succeeded, was
// aborted, or its rollback has failed.
func canReopen(status *releasev1alpha1.ReleaseStatus) bool {
	return status.Phase == releasev1alpha1.ReleaseSucceeded || status.Phase == releasev1alpha1.ReleaseAborted ||
		status.Phase == releasev1alpha1.ReleaseFailed && status.Rollback != nil
}

// rollbackObstacle returns why a release that has ended cannot be rolled back, with what to do instead; empty if it
// can. The hub decides by it, and so does whoever asks for a rollback. It checks only the targets that are known.
func (in Input) rollbackObstacle() string {
	r := in.Release
	const another = "; start a release with --revision instead"
	switch {
	case !canReopen(&r.Status):
		return fmt.Sprintf("it has ended: it is %s", r.Status.Phase)
	case !hasBegun(&r.Status):
		return "it has updated no pods"
	}
	for _, other := range in.rivals() {
		if !other.Status.Phase.UnderWay() && (other.Status.StartedAt == nil || r.Status.EndedAt == nil ||
			other.Status.StartedAt.Before(r.Status.EndedAt)) {
			continue
		}
		i := slices.IndexFunc(other.Spec.Targets, func(t releasev1alpha1.ReleaseTarget) bool { return targets(r, t.Ref) })
		ref := other.Spec.Targets[i].Ref
		return fmt.Sprintf("release %s of %s %s has followed; roll that one back, or start a release with --revision",
			other.Name, ref.Kind, ref.Name)
	}
	if name := in.replacedBy(); name != "" { // the rollback would end at once
		return fmt.Sprintf("release %s is about to replace it; abort that one first", name)
	}
	for _, t := range r.Status.Targets {
		target, known := in.Targets[t.Name]
		plan := target.plan()
		own := plan != nil && plan.UID == string(r.UID)
		effective := target.effective()
		if effective == "" && target.Current != nil {
			effective = target.Current.Name
		}
		switch {
		case t.From == "":
			return fmt.Sprintf("the revision of target %s before it is not known%s", t.Name, another)
		case !known:
		case target.Template == nil, target.Binding == nil:
			return fmt.Sprintf("the workload of target %s does not exist, or no policy propagates it", t.Name)
		case target.replaced(t):
			return fmt.Sprintf("the workload of target %s was deleted and created again%s", t.Name, another)
		case own && r.Status.Phase == releasev1alpha1.ReleaseFailed: // the plan of the rollback is held
		case plan != nil && !own:
			return fmt.Sprintf("release %s has followed for target %s%s", plan.Release, t.Name, another)
		case effective != t.To:
			return fmt.Sprintf("clusters have another revision of target %s now%s", t.Name, another)
		}
		if obstacle := target.deleted(target.revision(t.From)); obstacle != "" {
			return fmt.Sprintf("target %s: %s", t.Name, obstacle)
		}
	}
	return ""
}

// hasBegun reports whether pods may be new.
func hasBegun(status *releasev1alpha1.ReleaseStatus) bool {
	return slices.ContainsFunc(status.Stages, func(stage releasev1alpha1.ReleaseStageStatus) bool {
		return stage.StartedAt != nil
	})
}
