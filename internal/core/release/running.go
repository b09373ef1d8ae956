package release

import (
	"fmt"
	"slices"
	"strings"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// running is a release that updates clusters, stage by stage.
type running struct{ *stepper }

// next advances the stage under way.
func (s running) next() transition {
	if s.Release.Spec.State == releasev1alpha1.StatePause {
		return enter(releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByUser, "")
	}
	k := s.current()
	if k == len(s.status.Stages) {
		return enter(releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, keptMessage(&s.status))
	}
	stage := &s.status.Stages[k]
	if stage.Phase != releasev1alpha1.StagePending && s.skip(k) {
		return again
	}
	switch stage.Phase {
	case releasev1alpha1.StagePending:
		if s.returns() && !s.synced() {
			return stay // what clusters have is not known yet
		}
		if why := s.nothingToDo(k); why != "" {
			s.endStage(k, releasev1alpha1.StageSkipped, "NothingToDo", why)
			return again
		}
		stage.Attempt = 1
		s.stagePhase(k, releasev1alpha1.StageGated, "Entered", "")
		return again
	case releasev1alpha1.StageGated:
		if passed, t := s.gates(k, releasev1alpha1.GateBefore); !passed {
			return t
		}
		reserved := s.reservation(k)
		if s.waitsForGuards(s.reserving(k, reserved), k, false) {
			return stay
		}
		stage.Reserved = reserved
		stage.StartedAt, stage.ProgressAt, stage.Available = s.time(), s.time(), 0
		stage.BegunTargets = s.ready(k, nil)
		s.stagePhase(k, releasev1alpha1.StageUpdating, "Started", "")
		return again
	case releasev1alpha1.StageUpdating:
		return s.update(k)
	case releasev1alpha1.StageSoaking:
		return s.soak(k)
	case releasev1alpha1.StageChecking:
		if passed, t := s.gates(k, releasev1alpha1.GateAfter); !passed {
			return t
		}
		s.endStage(k, releasev1alpha1.StageDone, "Done", "")
		return again
	}
	return stay
}

// returns reports whether the release brings back the revision that all clusters had before the last release, which
// has not reached all of them.
func (s running) returns() bool {
	return !slices.ContainsFunc(s.status.Targets, func(t releasev1alpha1.ReleaseTargetStatus) bool {
		return t.From != t.To
	})
}

// nothingToDo returns why a stage replaces no pod; empty if it does. No cluster matches, its share is rounded to that
// of the stage before it, or its clusters still have the revision to which the release returns. A stage whose clusters
// have no pods now asks its gates: clusters that were evicted or scaled to zero may return, and no user has approved
// them.
func (s running) nothingToDo(k int) string {
	names := clusterNames(s.status.Stages, k)
	switch {
	case len(names) == 0 && !s.updatesJoined(k):
		return "it selects no cluster of the workloads"
	case s.addsNoPod(k, names):
		return "the stage before it covers its pods"
	case s.returns() && s.haveRevision(names):
		return "its clusters have the revision already"
	}
	return ""
}

// updatesJoined reports whether stage k is the last one and updates clusters that are in no stage.
func (s running) updatesJoined(k int) bool {
	if k+1 < len(s.status.Stages) {
		return false
	}
	return slices.ContainsFunc(s.Release.Spec.Targets, func(spec releasev1alpha1.ReleaseTarget) bool {
		b, plan := s.Targets[spec.Name].Binding, s.forward(spec.Name)
		return b != nil && plan.Joining == string(releasev1alpha1.NewClusterInclude) &&
			slices.ContainsFunc(b.BindingSpec().Clusters, func(t workv1alpha2.TargetCluster) bool { return plan.Joined(t.Name) })
	})
}

// haveRevision reports whether all these clusters have pods, and their Works make all of them those of the revision
// that is released.
func (s running) haveRevision(names []string) bool {
	have := map[string]bool{}
	for _, spec := range s.Release.Spec.Targets {
		for _, p := range s.Targets[spec.Name].Progress {
			if slices.Contains(names, p.Cluster) && (!p.Current || p.Released < p.Replicas) {
				return false
			}
			have[p.Cluster] = have[p.Cluster] || p.Replicas > 0
		}
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !have[name] })
}

// addsNoPod reports whether a stage adds no pod to the stage before it because its share is rounded.
func (s running) addsNoPod(k int, names []string) bool {
	for _, spec := range s.Release.Spec.Targets {
		t := s.Targets[spec.Name]
		if t.Binding == nil {
			return false
		}
		plan := s.forward(spec.Name)
		clusters, replicas := t.replicas(s.target(spec.Name).Unit == releasev1alpha1.UnitCluster)
		var pods int64
		for _, name := range names {
			i := slices.Index(clusters, name)
			if i < 0 {
				return false
			}
			pods += replicas[i]
		}
		if pods == 0 {
			return false
		}
		before, after := plan.Targets(clusters, replicas, k), plan.Targets(clusters, replicas, k+1)
		if !slices.Equal(before, after) {
			return false
		}
	}
	return true
}

// update waits until the pods of the stage are new and available.
func (s running) update(k int) transition {
	if !s.synced() {
		return s.overdue(k)
	}
	stage := &s.status.Stages[k]
	spec := s.status.Strategy.Stages[k]
	o := s.observe(k)
	if t := s.lose(o); t != stay {
		return t
	}
	if o.failure != "" {
		return s.fail(k, o.failure, o.message, o.failedTargets...)
	}
	if ready := s.ready(k, o.reachedTargets); len(ready) > len(stage.BegunTargets) {
		stage.BegunTargets, stage.ProgressAt = ready, s.time()
		s.changed = true
		return again
	}
	if o.reached && len(stage.BegunTargets) == len(s.Release.Spec.Targets) {
		stage.ReachedAt, stage.ProgressAt = s.time(), s.time()
		s.status.SoakUntil = timeOf(s.now.Add(spec.Soak.Duration))
		s.stagePhase(k, releasev1alpha1.StageSoaking, "Reached", "")
		return again
	}
	deadline := duration(spec.Deadline, 30*time.Minute)
	if s.late(o, deadline, &stage.Available, &stage.ProgressAt) {
		return s.fail(k, releasev1alpha1.ReasonDeadlineExceeded,
			fmt.Sprintf("no new pod has become available for %s", deadline), o.behindTargets()...)
	}
	switch {
	case o.onlyLost:
		s.wait(releasev1alpha1.ReasonClusterUnreachable, "%s", text.Names(o.lost, 10))
	case len(stage.BegunTargets) < len(s.Release.Spec.Targets):
		s.waitForDependencies(*stage, o.reachedTargets)
	}
	return stay
}

// waitForDependencies names the targets that wait for others in a stage. reached has the targets that have reached it.
func (s running) waitForDependencies(stage releasev1alpha1.ReleaseStageStatus, reached map[string]bool) {
	var waiting, needed []string
	for _, t := range s.Release.Spec.Targets {
		if slices.Contains(stage.BegunTargets, t.Name) {
			continue
		}
		waiting = append(waiting, t.Name)
		for _, name := range t.DependsOn {
			if slices.Contains(stage.BegunTargets, name) && !reached[name] && !slices.Contains(needed, name) {
				needed = append(needed, name)
			}
		}
	}
	s.wait(releasev1alpha1.ReasonDependencyNotReady, "in stage %s, %s waits until %s is updated", stage.Name,
		strings.Join(waiting, ", "), strings.Join(needed, ", "))
}

// soak waits until the pods of the stage were available without interruption.
func (s running) soak(k int) transition {
	if !s.synced() {
		return s.overdue(k)
	}
	o := s.observe(k)
	if t := s.lose(o); t != stay {
		return t
	}
	if o.failure != "" {
		return s.fail(k, o.failure, o.message, o.failedTargets...)
	}
	stage := &s.status.Stages[k]
	switch {
	case !o.reached && s.status.SoakUntil != nil:
		s.status.SoakUntil = nil
		s.journal(releasev1alpha1.JournalCluster, stage.Name, text.Names(o.behind, 3), "", "Interrupted",
			"pods are not available")
		return s.unsteady(k, o)
	case !o.reached:
		return s.unsteady(k, o)
	case s.status.SoakUntil == nil:
		s.status.SoakUntil = timeOf(s.now.Add(s.status.Strategy.Stages[k].Soak.Duration))
		s.changed = true
	}
	if s.now.Before(s.status.SoakUntil.Time) {
		s.wake(s.status.SoakUntil.Time)
		return stay
	}
	s.status.SoakUntil = nil
	s.stagePhase(k, releasev1alpha1.StageChecking, "Soaked", "")
	return again
}

// unsteady fails a stage whose pods are not available if it did not soak within its deadline and the time of soaking
// since it was reached. So pods that come and go do not hold the release for ever.
func (s running) unsteady(k int, o observation) transition {
	stage, spec := &s.status.Stages[k], s.status.Strategy.Stages[k]
	if o.onlyLost || stage.ProgressAt == nil {
		return stay
	}
	deadline := duration(spec.Deadline, 30*time.Minute)
	if until := stage.ProgressAt.Add(spec.Soak.Duration + deadline); s.now.Before(until) {
		s.wake(until)
		return stay
	}
	return s.fail(k, releasev1alpha1.ReasonDeadlineExceeded,
		fmt.Sprintf("pods did not stay available for %s within %s: %s", spec.Soak.Duration, spec.Soak.Duration+deadline,
			text.Names(o.behind, 3)), o.behindTargets()...)
}

// overdue fails a stage that cannot be observed for the time of its deadline.
func (s running) overdue(k int) transition {
	stage, deadline := &s.status.Stages[k], duration(s.status.Strategy.Stages[k].Deadline, 30*time.Minute)
	if s.waits == "" {
		return stay
	}
	if stage.Phase == releasev1alpha1.StageSoaking {
		deadline += s.status.Strategy.Stages[k].Soak.Duration
	}
	if s.late(observation{}, deadline, &stage.Available, &stage.ProgressAt) {
		return s.fail(k, releasev1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("for %s: %s", deadline, s.waitsFor))
	}
	return stay
}
