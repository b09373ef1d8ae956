package release

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

const (
	// recordStage is the name of the only stage of a record.
	recordStage = "direct"
	// recordDeadline is for how long a record waits without another available pod.
	recordDeadline = 30 * time.Minute
)

// IsRecord reports whether a release only observes a change that was sent to clusters at once. It has no plan, waits
// for nothing, and nothing waits for it.
func IsRecord(r *releasev1alpha1.Release) bool {
	return r.Spec.Trigger != nil && r.Spec.Trigger.Type == releasev1alpha1.TriggerDirect
}

// RecordToStart returns the release that records a direct change of a workload; nil if there is nothing to record. The
// strategy of in is not used. baseline is a revision to store instead: the hub sees the workload for the first time.
func RecordToStart(in StartInput) (record *releasev1alpha1.Release, baseline *releasev1alpha1.ReleaseRevision) {
	target := Target{Binding: in.Binding}
	if StrategyOf(in.Template) != "" || target.effective() != "" || target.plan() != nil {
		return nil, nil // a release decides what clusters get
	}
	if divided, _ := fleet.Staged(in.Template, true); !divided {
		if whole, _ := fleet.Staged(in.Template, false); !whole {
			return nil, nil // Enforce does not refuse its changes either
		}
	}
	last, ref := newest(in.Releases), ReferenceOf(in.Template)
	switch {
	case len(in.Stored) == 0 && last == nil:
		return nil, in.Current
	case last == nil && in.Stored[in.Current.Name] != nil, last != nil && had(last, ref, in.Current.Name):
		return nil, nil
	}
	r := startedRelease(in, last, releasev1alpha1.TriggerDirect)
	r.Spec.Strategy = &releasev1alpha1.ReleaseStrategySpec{Stages: []releasev1alpha1.ReleaseStage{{Name: recordStage}},
		Unassigned: releasev1alpha1.UnassignedLastStage}
	return r, nil
}

// recording is a release that only observes.
type recording struct{ *stepper }

// next takes the next step of a record.
func (s recording) next() transition {
	switch {
	case s.status.Phase.Ended():
		return stay
	case s.status.Phase == "":
		return s.accept()
	}
	t, status := s.Targets[s.Release.Spec.Targets[0].Name], s.status.Targets[0]
	switch {
	case s.Release.Spec.State == releasev1alpha1.StateAbort:
		return enter(releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "")
	case t.replaced(status), t.Template == nil, t.Binding == nil:
		return enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonTargetReplaced, "the workload was deleted")
	case t.Current.Name != status.To:
		return enter(releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded, "by another change")
	case t.effective() != "" || t.plan() != nil:
		return enter(releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded, "by releases of the workload")
	}
	stage := &s.status.Stages[0]
	o := s.observe(0)
	if o.reached && len(t.Progress) > 0 {
		stage.ReachedAt = s.time()
		stage.Counts, stage.Clusters = o.counts, nil
		s.endStage(0, releasev1alpha1.StageDone, "Done", "")
		return enter(releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "")
	}
	if o.failure != "" {
		s.condition(releasev1alpha1.ReleaseHealthy, metav1.ConditionFalse, o.failure, o.message)
	}
	if !s.late(o, recordDeadline, &stage.Available, &stage.ProgressAt) {
		return stay
	}
	message := fmt.Sprintf("no new pod has become available for %s", recordDeadline)
	stage.Counts, stage.Clusters = o.counts, o.clusters
	s.endStage(0, releasev1alpha1.StageFailed, releasev1alpha1.ReasonDeadlineExceeded, message)
	return enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonIncomplete, message)
}

// accept begins to observe, or ends if the change is gone already.
func (s recording) accept() transition {
	spec := s.Release.Spec.Targets[0]
	t := s.Targets[spec.Name]
	if t.Template == nil || t.Binding == nil || t.Current == nil {
		s.condition(releasev1alpha1.ReleaseAccepted, metav1.ConditionFalse, releasev1alpha1.ReasonTargetNotFound, "")
		return enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRejected, "the workload does not exist any more")
	}
	s.condition(releasev1alpha1.ReleaseAccepted, metav1.ConditionTrue, releasev1alpha1.ReasonPlanned,
		"the change was sent to all clusters at once; this release observes it")
	to := s.Release.Spec.Trigger.Revision
	s.status.Strategy = s.Release.Spec.Strategy.DeepCopy()
	s.status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: spec.Name, From: s.recordedBefore(t, to), To: to,
		UID: t.Template.GetUID(), Unit: releasev1alpha1.UnitCluster}}
	s.status.Revision = hashOf([]string{to})
	if t.Current.Name == to && t.Revisions[to] == nil {
		s.out.Revisions = append(s.out.Revisions, t.Current)
	}
	s.status.StartedAt = s.time()
	s.status.Stages = []releasev1alpha1.ReleaseStageStatus{{Name: recordStage, Phase: releasev1alpha1.StageUpdating,
		Attempt: 1, ClusterNames: s.clusterNames(), BegunTargets: []string{spec.Name}, StartedAt: s.time(),
		ProgressAt: s.time()}}
	return enter(releasev1alpha1.ReleaseRunning, "Started", "")
}

// recordedBefore is the revision of a target before a record: that of the last release, or else the newest stored one;
// empty if there is none.
func (s recording) recordedBefore(t Target, to string) string {
	var earlier []releasev1alpha1.Release
	for _, r := range s.Others {
		if !sameRelease(&r, s.Release) && older(&r, s.Release) && targets(&r, s.Release.Spec.Targets[0].Ref) {
			earlier = append(earlier, r)
		}
	}
	if last := newest(earlier); last != nil {
		for i, spec := range last.Spec.Targets {
			if sameTarget(spec.Ref, s.Release.Spec.Targets[0].Ref) && i < len(last.Status.Targets) {
				return last.Status.Targets[i].To
			}
		}
	}
	var name string
	var at metav1.Time
	for _, r := range t.Revisions {
		if r.Name != to && (name == "" || at.Before(&r.CreationTimestamp) ||
			at.Equal(&r.CreationTimestamp) && r.Name > name) {
			name, at = r.Name, r.CreationTimestamp
		}
	}
	return name
}

// IsLastRecord reports whether a release records the last change of its workload. The next change is compared with it.
func IsLastRecord(in Input) bool {
	return IsRecord(in.Release) && !slices.ContainsFunc(in.Others, func(r releasev1alpha1.Release) bool {
		return targets(&r, in.Release.Spec.Targets[0].Ref) && older(in.Release, &r)
	})
}
