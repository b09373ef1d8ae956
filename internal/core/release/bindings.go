package release

import (
	"cmp"
	"slices"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// bindings returns the state that the bindings of the targets must have, by the status alone. A release that has ended
// changes only bindings that still have its plan.
func (s *stepper) bindings() map[string]BindingState {
	all := map[string]BindingState{}
	if IsRecord(s.Release) {
		return all
	}
	for _, t := range s.status.Targets {
		target := s.Targets[t.Name]
		if target.Binding == nil || target.Template == nil {
			continue
		}
		plan := target.plan()
		own := plan != nil && plan.UID == string(s.Release.UID)
		if target.replaced(t) {
			if own {
				all[t.Name] = BindingState{} // the plan is of the workload that was deleted
			}
			continue
		}
		switch phase := s.status.Phase; {
		case phase == releasev1alpha1.ReleaseRunning:
			all[t.Name] = BindingState{s.forward(t.Name), t.To}
		case phase == releasev1alpha1.ReleasePaused,
			own && (phase == releasev1alpha1.ReleaseAborted || phase == releasev1alpha1.ReleaseSuperseded ||
				phase == releasev1alpha1.ReleaseFailed) && s.status.Rollback == nil:
			p := s.forward(t.Name)
			p.Hold = true
			all[t.Name] = BindingState{p, t.To}
		case phase == releasev1alpha1.ReleaseRollingBack && hasBegun(&s.status):
			all[t.Name] = BindingState{s.backward(t.Name), t.From}
		case own && (phase == releasev1alpha1.ReleaseAborted || phase == releasev1alpha1.ReleaseSuperseded ||
			phase == releasev1alpha1.ReleaseFailed):
			p := s.backward(t.Name)
			p.Hold = true
			all[t.Name] = BindingState{p, t.From}
		case own && phase == releasev1alpha1.ReleaseSucceeded &&
			(target.catchesUp(&s.status) || len(KeptClusters(&s.status)) > 0):
			p := s.forward(t.Name)
			p.Done, p.Joining = true, string(releasev1alpha1.NewClusterInclude)
			all[t.Name] = BindingState{p, t.To}
		case own && phase == releasev1alpha1.ReleaseSucceeded:
			all[t.Name] = BindingState{nil, target.pinned(t.To)}
		case own && phase == releasev1alpha1.ReleaseRolledBack:
			all[t.Name] = BindingState{nil, target.pinned(t.From)}
		}
	}
	return all
}

// pinned returns the revision that the binding names when all clusters have a revision: nothing if the template has it
// too, unless changes of the template wait for a release. Pods of the template do not read versions of ConfigMaps.
func (t Target) pinned(revision string) string {
	if t.Current != nil && len(Versions(t.Current)) == 0 && t.Current.Name == revision && t.Template != nil &&
		t.Template.GetAnnotations()[releasev1alpha1.ReleaseStrategyAnnotation] == "" {
		return ""
	}
	return revision
}

// plan is a plan of a target for a revision, without stages.
func (s *stepper) plan(t releasev1alpha1.ReleaseTargetStatus, revision string) *fleet.Plan {
	failure := s.status.Strategy.Failure
	p := &fleet.Plan{Release: s.Release.Name, UID: string(s.Release.UID), Revision: revision, From: t.From,
		Unit: string(t.Unit), FailedPods: "0", Continue: failure.Action == releasev1alpha1.FailureContinue,
		SameRevision: s.status.Strategy.Failover == releasev1alpha1.FailoverSameRevision}
	if failure.MaxFailedPods != nil {
		p.FailedPods = failure.MaxFailedPods.String()
	}
	for _, l := range s.status.LostClusters {
		if l.Skipped {
			p.Skipped = append(p.Skipped, l.Name)
		}
	}
	return p
}

// forward is the plan of a target on its way to the new revision.
func (s *stepper) forward(name string) *fleet.Plan {
	status := s.target(name)
	p := s.plan(status, status.To)
	p.Joining = s.joining()
	p.Stages = s.planStages(name)
	for k, stage := range s.status.Stages {
		// A stage makes pods of a target new only if the target has begun it. When all stages have ended, only what a user
		// has skipped is left out.
		p.Stages[k].Skip = skippedByUser(stage) || s.status.Phase != releasev1alpha1.ReleaseSucceeded &&
			stage.EndedAt != nil && !slices.Contains(stage.BegunTargets, name)
	}
	p.At = s.current()
	if p.At < len(s.status.Stages) && slices.Contains(s.status.Stages[p.At].BegunTargets, name) {
		p.At++
	}
	return p
}

// joining is Plan.Joining.
func (s *stepper) joining() string {
	return string(cmp.Or(s.status.Strategy.OnNewCluster, releasev1alpha1.NewClusterInclude))
}

// planStages are the stages of a target as they were accepted.
func (s *stepper) planStages(name string) []fleet.PlanStage {
	byStage := make([][]string, len(s.status.Stages))
	for k := range byStage {
		byStage[k] = clusterNames(s.status.Stages, k)
	}
	return planStages(s.status.Strategy, byStage, s.target(name).Unit == releasev1alpha1.UnitCluster)
}

// skippedByUser reports whether a user has skipped a stage. A stage that had nothing to do has no attempt.
func skippedByUser(stage releasev1alpha1.ReleaseStageStatus) bool {
	return stage.Phase == releasev1alpha1.StageSkipped && stage.Attempt > 0
}

// KeptClusters are the clusters that keep the former revision until another release, because a user has skipped the
// stage that would have completed them.
func KeptClusters(status *releasev1alpha1.ReleaseStatus) (kept []string) {
	decided := map[string]bool{}
	for k := len(status.Stages) - 1; k >= 0; k-- {
		for _, c := range clusterNames(status.Stages, k) {
			switch {
			case decided[c]:
			case skippedByUser(status.Stages[k]):
				kept = append(kept, c)
				decided[c] = true
			default:
				decided[c] = true
			}
		}
	}
	// An earlier stage may have completed some of them.
	for k, stage := range status.Stages {
		if status.Strategy != nil && stage.Phase == releasev1alpha1.StageDone && completes(status.Strategy, k) {
			names := clusterNames(status.Stages, k)
			kept = slices.DeleteFunc(kept, func(c string) bool { return slices.Contains(names, c) })
		}
	}
	slices.Sort(kept)
	return kept
}

// keptMessage is about KeptClusters; empty if there are none.
func keptMessage(status *releasev1alpha1.ReleaseStatus) string {
	kept := KeptClusters(status)
	if len(kept) == 0 {
		return ""
	}
	return "a user has skipped a stage, so pods of the former revision stay until another release in " +
		text.Names(kept, 3)
}

// keeps reports whether a cluster keeps the former revision: one of KeptClusters, or one that joined where the last
// stage was skipped.
func keeps(status *releasev1alpha1.ReleaseStatus, cluster string) bool {
	n := len(status.Stages)
	return slices.Contains(KeptClusters(status), cluster) ||
		n > 0 && skippedByUser(status.Stages[n-1]) && !slices.Contains(clustersOf(status.Stages), cluster)
}

// rollbackStep is a step of a rollback: the clusters that go back, and how much of their pods is old after it.
type rollbackStep struct {
	name     string
	clusters []string
	stages   []int // that are rolled back, of the strategy
}

// rollbackSteps are the steps of a rollback: of the stages that have begun, all at once or the last one first.
func (s *stepper) rollbackSteps() []rollbackStep {
	var begun []int
	for k, stage := range s.status.Stages {
		if stage.StartedAt != nil {
			begun = append(begun, k)
		}
	}
	if len(begun) == 0 {
		return nil
	}
	if s.status.Strategy.Rollback.Order == releasev1alpha1.RollbackReverse {
		slices.Reverse(begun)
		steps := make([]rollbackStep, len(begun))
		for i, k := range begun {
			steps[i] = rollbackStep{s.status.Stages[k].Name, clusterNames(s.status.Stages, k), []int{k}}
		}
		return steps
	}
	all := rollbackStep{name: "all", stages: begun}
	for _, k := range begun {
		for _, c := range clusterNames(s.status.Stages, k) {
			if !slices.Contains(all.clusters, c) {
				all.clusters = append(all.clusters, c)
			}
		}
	}
	return []rollbackStep{all}
}

// backward is the plan of a target on its way to the former revision.
func (s *stepper) backward(name string) *fleet.Plan {
	status := s.target(name)
	p := s.plan(status, status.From)
	p.Joining = string(releasev1alpha1.NewClusterDefer)
	if len(s.status.Stages) > 0 && s.status.Stages[len(s.status.Stages)-1].StartedAt != nil {
		p.Joining = string(releasev1alpha1.NewClusterInclude)
	}
	p.Continue = true // the revision that fails leaves
	if status.To != status.From {
		p.RollsBack = status.To
	}
	forward := s.planStages(name)
	for i, step := range s.rollbackSteps() {
		stage := fleet.PlanStage{Name: step.name, Clusters: step.clusters, Part: [2]int64{1, 1},
			WholeClusters: forward[0].WholeClusters}
		if len(step.stages) == 1 {
			k := step.stages[0]
			stage.WholeClusters, stage.InOrder = forward[k].WholeClusters, forward[k].InOrder
			stage.Part = oldAfter(forward, k)
		}
		p.Stages = append(p.Stages, stage)
		if step.name == s.status.Rollback.Stage {
			p.At = i + 1
		}
	}
	return p
}

// oldAfter is the part of the pods that is old when stage k is rolled back: all but those of the stage before it with
// the same clusters. Numbers of pods cannot be a part of so many; then all are old.
func oldAfter(stages []fleet.PlanStage, k int) [2]int64 {
	for i := k - 1; i >= 0; i-- {
		if s := stages[i]; sameNames(s.Clusters, stages[k].Clusters) && s.Pods == 0 {
			return [2]int64{max(s.Part[1]-s.Part[0], 0), s.Part[1]}
		}
	}
	return [2]int64{1, 1}
}

// sameNames compares names in any order.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func (s *stepper) target(name string) releasev1alpha1.ReleaseTargetStatus {
	return targetOf(&s.status, name)
}

// targetOf is the status of a target; only its name if it has none.
func targetOf(status *releasev1alpha1.ReleaseStatus, name string) releasev1alpha1.ReleaseTargetStatus {
	for _, t := range status.Targets {
		if t.Name == name {
			return t
		}
	}
	return releasev1alpha1.ReleaseTargetStatus{Name: name}
}
