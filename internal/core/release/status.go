package release

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

const (
	journalSize   = 64
	messageLength = 256
)

func (s *stepper) time() *metav1.Time { return timeOf(s.now) }

func timeOf(t time.Time) *metav1.Time { return new(metav1.NewTime(t)) }

// wake asks for another step at a time.
func (s *stepper) wake(at time.Time) {
	if s.wakeAt.IsZero() || at.Before(s.wakeAt) {
		s.wakeAt = at
	}
}

// wait says what the release waits for.
func (s *stepper) wait(reason, format string, args ...any) {
	s.waits, s.waitsFor = reason, fmt.Sprintf(format, args...)
}

// journal adds an entry. If there are too many, it makes room, see trimJournal.
func (s *stepper) journal(kind releasev1alpha1.JournalType, stage, cluster, actor, reason, message string) {
	s.status.Journal = append(s.status.Journal, releasev1alpha1.ReleaseJournalEntry{Seq: LastSeq(&s.status) + 1,
		At: *s.time(), Type: kind, Stage: stage, Cluster: cluster, Actor: actor, Reason: reason, Message: cut(message)})
	s.status.Journal = trimJournal(s.status.Journal, s.status.RecordedSeq)
	s.changed = true
}

func cut(message string) string { return text.Cut(message, messageLength) }

func (s *stepper) stagePhase(k int, p releasev1alpha1.ReleaseStagePhase, reason, message string) {
	s.status.Stages[k].Phase = p
	s.journal(releasev1alpha1.JournalStage, s.status.Stages[k].Name, "", "", reason, message)
}

func (s *stepper) endStage(k int, p releasev1alpha1.ReleaseStagePhase, reason, message string) {
	s.status.Stages[k].EndedAt, s.status.Stages[k].Reserved, s.status.SoakUntil = s.time(), nil, nil
	s.stagePhase(k, p, reason, message)
}

// step returns the step of the release. A status in which nothing happened is returned as it was, so that numbers that
// change all the time are not written.
func (s *stepper) step() Step {
	out := s.out
	out.Bindings = s.bindings()
	if !s.wakeAt.IsZero() {
		out.RequeueAfter = max(s.wakeAt.Sub(s.Now), time.Second)
	}
	if !equality.Semantic.DeepEqual(s.status.Guard, s.guard) {
		s.status.Guard, s.changed = s.guard, true
	}
	s.setConditions()
	if s.changed || s.status.Progress == "" && s.newPods() != "" || s.status.ObservedGeneration != s.Release.Generation {
		s.status.ObservedGeneration = s.Release.Generation
		s.summarize()
	}
	out.Status = s.status
	if s.status.Phase == releasev1alpha1.ReleaseRolledBack {
		for _, t := range s.status.Targets {
			if r := s.Targets[t.Name].revision(t.To); t.Failed && t.To != t.From && r != nil && r.Status.Blocked == nil &&
				s.Release.Status.Phase != releasev1alpha1.ReleaseRolledBack {
				out.Block = append(out.Block, t.To)
			}
		}
		if len(out.Block) > 0 {
			out.Blocked = &releasev1alpha1.RevisionBlock{Reason: s.status.Rollback.Reason, Release: s.Release.Name,
				At: *s.time()}
			if c := conditionOf(&s.status, releasev1alpha1.ReleaseHealthy); c.Status == metav1.ConditionFalse {
				out.Blocked.Reason = c.Reason // what failed, also if a user asked for the rollback
			}
		}
	}
	if reflect.DeepEqual(out.Status, s.Release.Status) {
		out.Status = *s.Release.Status.DeepCopy()
	}
	return out
}

// setConditions sets Progressing, Healthy, Succeeded and Drifted by the phase.
func (s *stepper) setConditions() {
	progressing, reason, message := metav1.ConditionFalse, s.waits, s.waitsFor
	k := s.current()
	switch phase := s.status.Phase; {
	case reason == releasev1alpha1.ReasonInternalError:
	case phase.Ended():
		reason, message = releasev1alpha1.ReasonFinished, ""
		if phase == releasev1alpha1.ReleaseSucceeded && s.catchesUp() {
			progressing, reason = metav1.ConditionTrue, releasev1alpha1.ReasonCatchingUp
		} else if asksToReopen(s.Release, &s.status) {
			if obstacle := s.asIs().rollbackObstacle(); obstacle != "" {
				reason, message = releasev1alpha1.ReasonNotRolledBack, obstacle
			}
		}
	case phase == releasev1alpha1.ReleasePaused:
		reason = releasev1alpha1.ReasonPausedByUser
		if k < len(s.status.Stages) && s.status.Stages[k].Phase == releasev1alpha1.StageFailed {
			reason, message = releasev1alpha1.ReasonPausedByFailure, "stage "+s.status.Stages[k].Name+" has failed"
			if c := conditionOf(&s.status, releasev1alpha1.ReleaseHealthy); c.Status == metav1.ConditionFalse &&
				c.Message != "" {
				message += ": " + c.Message
			}
		}
	case phase == releasev1alpha1.ReleaseRollingBack:
		progressing, reason, message = metav1.ConditionTrue, releasev1alpha1.ReasonRollingBack, s.waitsFor
	case reason != "":
		if reason == releasev1alpha1.ReasonStageUpdating || reason == releasev1alpha1.ReasonChecking {
			progressing = metav1.ConditionTrue
		}
	case phase == releasev1alpha1.ReleaseRunning && k < len(s.status.Stages):
		progressing = metav1.ConditionTrue
		switch s.status.Stages[k].Phase {
		case releasev1alpha1.StageSoaking:
			reason = releasev1alpha1.ReasonSoaking
		case releasev1alpha1.StageChecking:
			reason = releasev1alpha1.ReasonChecking
		default:
			reason = releasev1alpha1.ReasonStageUpdating
		}
		message = "stage " + s.status.Stages[k].Name
	default:
		reason = releasev1alpha1.ReasonQueued
	}
	s.condition(releasev1alpha1.ReleaseProgressing, progressing, reason, message)
	if !s.status.Phase.Ended() {
		s.condition(releasev1alpha1.ReleaseConditionSucceeded, metav1.ConditionUnknown, releasev1alpha1.ReasonUnderWay, "")
	}
	if meta.FindStatusCondition(s.status.Conditions, releasev1alpha1.ReleaseHealthy) == nil {
		s.condition(releasev1alpha1.ReleaseHealthy, metav1.ConditionUnknown, releasev1alpha1.ReasonNotObserved, "")
	}
	if k > 0 && s.status.Phase == releasev1alpha1.ReleaseRunning || s.status.Phase == releasev1alpha1.ReleaseSucceeded {
		s.healthy(k)
	}
	s.setDrifted()
	s.setRevisionChanged()
}

// healthy sets Healthy to True when a stage has ended well.
func (s *stepper) healthy(k int) {
	for _, stage := range s.status.Stages[:min(k, len(s.status.Stages))] {
		if stage.Phase == releasev1alpha1.StageFailed {
			return
		}
	}
	s.condition(releasev1alpha1.ReleaseHealthy, metav1.ConditionTrue, releasev1alpha1.ReasonAsExpected, "")
}

// setDrifted compares what the templates have now with what is released, and names members that change it. A change of
// a template or an override comes first.
func (s *stepper) setDrifted() {
	reason, message := "", ""
	for _, spec := range s.Release.Spec.Targets {
		var names []string
		for _, p := range s.Targets[spec.Name].Progress {
			if p.Contested && !s.status.Phase.Ended() {
				names = append(names, p.Cluster)
			}
		}
		if len(names) > 0 {
			reason, message = releasev1alpha1.ReasonMemberChanged, fmt.Sprintf("a client in %s changes target %s repeatedly, "+
				"and the hub reverts that: `argosy why` names the fields", text.Names(names, 3), spec.Name)
		}
	}
	for _, spec := range s.Release.Spec.Targets {
		t := s.Targets[spec.Name]
		if to := s.target(spec.Name).To; to != "" && spec.To.Revision == "" && !s.status.Phase.Ended() {
			if r := Drift(t.revision(to), t.Current); r != "" {
				reason, message = r, "target "+spec.Name+" has changed since the release was accepted"
			}
		}
	}
	s.conditionIf(releasev1alpha1.ReleaseDrifted, reason, message)
}

// conditionIf sets a condition to True, or removes it if there is no reason.
func (s *stepper) conditionIf(kind, reason, message string) {
	if reason != "" {
		s.condition(kind, metav1.ConditionTrue, reason, message)
	} else if meta.RemoveStatusCondition(&s.status.Conditions, kind) {
		s.changed = true
	}
}

// setRevisionChanged names replicas that run another revision since failover moved them. The plans in the bindings must
// be those of this release.
func (s *stepper) setRevisionChanged() {
	var lines []string
	for _, spec := range s.Release.Spec.Targets {
		if p := s.Targets[spec.Name].plan(); p != nil && p.UID == string(s.Release.UID) {
			lines = append(lines, s.Targets[spec.Name].RevisionChanges...)
		}
	}
	kind, message := releasev1alpha1.ReleaseRevisionChanged, text.Lines(lines, 10)
	if message == "" {
		s.conditionIf(kind, "", "")
		return
	}
	if conditionOf(&s.status, kind).Message != message {
		s.journal(releasev1alpha1.JournalCluster, "", "", "", kind, message)
	}
	s.conditionIf(kind, kind, message)
}

// catchesUp reports whether clusters are left that get the revision after the release.
func (s *stepper) catchesUp() bool {
	return slices.ContainsFunc(s.status.Targets, func(t releasev1alpha1.ReleaseTargetStatus) bool {
		target := s.Targets[t.Name]
		plan := target.plan()
		return plan != nil && plan.UID == string(s.Release.UID) && target.catchesUp(&s.status)
	})
}

// catchesUp reports whether clusters lack the revision of the plan and will get it.
func (t Target) catchesUp(status *releasev1alpha1.ReleaseStatus) bool {
	return slices.ContainsFunc(t.Progress, func(p fleet.ClusterProgress) bool {
		return (!p.Current || p.Lost || !p.Reached) && !keeps(status, p.Cluster)
	})
}

// summarize sets the fields that tables show, and the counts of stages.
func (s *stepper) summarize() {
	s.status.Stage = ""
	k := s.current()
	if k < len(s.status.Stages) && s.status.Phase.UnderWay() {
		s.status.Stage = s.status.Stages[k].Name
	}
	if s.status.Phase == releasev1alpha1.ReleaseRollingBack {
		s.status.Stage = s.status.Rollback.Stage
	}
	s.status.Reason = ""
	if c := conditionOf(&s.status, releasev1alpha1.ReleaseAccepted); c.Status != metav1.ConditionTrue {
		s.status.Reason = c.Reason
	}
	if s.status.Phase.Ended() {
		s.status.Reason = cmp.Or(s.status.Reason, conditionOf(&s.status, releasev1alpha1.ReleaseConditionSucceeded).Reason)
	}
	s.status.Reason = cmp.Or(s.status.Reason, conditionOf(&s.status, releasev1alpha1.ReleaseProgressing).Reason)
	if !s.planned() {
		return // members report about another revision
	}
	s.status.Progress = cmp.Or(s.newPods(), s.status.Progress)
	for i := range s.status.Stages {
		stage := &s.status.Stages[i]
		if stage.StartedAt == nil || i != k && i != k-1 || s.status.Phase != releasev1alpha1.ReleaseRunning &&
			s.status.Phase != releasev1alpha1.ReleasePaused {
			continue
		}
		o := s.observe(i)
		stage.Counts, stage.Clusters = o.counts, o.clusters
	}
}

// planned reports whether the progress of all targets is about the revision that the release brings: while a rollback
// is under way, the former one.
func (s *stepper) planned() bool {
	return len(s.status.Targets) > 0 && !slices.ContainsFunc(s.status.Targets,
		func(t releasev1alpha1.ReleaseTargetStatus) bool {
			revision := t.To
			if s.status.Rollback != nil {
				revision = t.From
			}
			p := s.Targets[t.Name].plan()
			return !IsRecord(s.Release) && (p == nil || p.UID != string(s.Release.UID) || p.Revision != revision)
		})
}

// newPods is the value of status.progress; empty while it is not known. Nothing is known of pods in lost clusters.
func (s *stepper) newPods() string {
	var available, replicas int64
	for _, spec := range s.Release.Spec.Targets {
		for _, p := range s.Targets[spec.Name].Progress {
			replicas += p.Replicas
			if !p.Lost {
				available += p.Available
			}
		}
	}
	if replicas == 0 || !s.planned() {
		return ""
	}
	return fmt.Sprintf("%d/%d", available, replicas)
}
