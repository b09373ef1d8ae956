// Package release decides the next step of a release: from the release, its strategy, the approvals and what members
// report, to the status of the release and the plan on the bindings of its targets. core/workload/fleet carries plans
// out. Nothing here reads a cluster or a clock.
package release

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Input has all that the next step of a release depends on. All of it is read-only.
type Input struct {
	Release *releasev1alpha1.Release
	// Strategy is the one that the release names or has; nil if it does not exist. It counts until the release is
	// accepted.
	Strategy *releasev1alpha1.ReleaseStrategySpec
	// Targets by their names in the release.
	Targets map[string]Target
	// Clusters that are registered, by name.
	Clusters map[string]*clusterv1alpha1.Cluster
	// Approvals of this release; others are ignored.
	Approvals []releasev1alpha1.ReleaseApproval
	// Checks are the states of checks by their keys, as of their last samples. The stored state counts for others.
	Checks map[string]releasev1alpha1.ReleaseCheckStatus
	// ReleaseChecks has the names of the ReleaseChecks of the namespace; nil if they are not known.
	ReleaseChecks map[string]bool
	// Others are all releases of the namespace. This one, and those of other workloads, are ignored.
	Others []releasev1alpha1.Release
	// Guards that may select this release.
	Guards []Guard
	// Peers are all releases of the hub. They are only needed if a guard has limits.
	Peers []releasev1alpha1.Release
	// VersionsRefused is why the ConfigMaps of the step that follows without it could not be created; empty if they could.
	VersionsRefused string
	Now             time.Time
}

// BindingState is the state that the binding of a target must have.
type BindingState struct {
	// Plan is the value of fleet.PlanAnnotation; nil if the binding has no plan.
	Plan *fleet.Plan
	// Revision is the value of fleet.EffectiveRevisionAnnotation; empty if the binding names none.
	Revision string
}

// Step is the next step of a release. Write its parts in the order of the fields.
type Step struct {
	// ConfigMaps are versions to create.
	ConfigMaps []*unstructured.Unstructured
	// Revisions are to be stored, if they are not.
	Revisions []*releasev1alpha1.ReleaseRevision
	// Block are revisions, by name, that must not be released again, and Blocked why.
	Block   []string
	Blocked *releasev1alpha1.RevisionBlock
	// Status of the release.
	Status releasev1alpha1.ReleaseStatus
	// Bindings by target; a target that is not in it keeps what its binding says.
	Bindings map[string]BindingState
	// RequeueAfter is the time after which to ask again though nothing has happened; 0 for never.
	RequeueAfter time.Duration
}

// Next decides the next step of a release. The same input gives the same step, and a step that was written and is given
// back changes nothing.
func Next(in Input) Step {
	s := &stepper{Input: in, status: *in.Release.Status.DeepCopy(),
		now: in.Now.UTC().Add(time.Second - 1).Truncate(time.Second)}
	s.advance(transitionLimit)
	return s.step()
}

// stepper is a release on its way through its states.
type stepper struct {
	Input
	status releasev1alpha1.ReleaseStatus
	now    time.Time
	out    Step
	wakeAt time.Time
	// changed is true if something happened that is worth a write.
	changed bool
	// waits is the reason of Progressing for what the stage waits for, with a message.
	waits, waitsFor string
	// guard has the ReleaseGuard that the release waits for, and its limit.
	guard *releasev1alpha1.ReleaseGuardWait
}

func (in Input) strategy() *releasev1alpha1.ReleaseStrategySpec {
	if in.Release.Status.Strategy != nil {
		return in.Release.Status.Strategy
	}
	return in.Strategy
}

// chosen has the revisions of a target that was accepted.
func (in Input) chosen(target string) releasev1alpha1.ReleaseTargetStatus {
	return targetOf(&in.Release.Status, target)
}

// rivals are the other releases that have a target of this one.
func (in Input) rivals() []releasev1alpha1.Release {
	var rivals []releasev1alpha1.Release
	for _, other := range in.Others {
		if other.Name == in.Release.Name || other.Namespace != in.Release.Namespace || IsRecord(&other) {
			continue
		}
		if slices.ContainsFunc(other.Spec.Targets, func(a releasev1alpha1.ReleaseTarget) bool {
			return slices.ContainsFunc(in.Release.Spec.Targets, func(b releasev1alpha1.ReleaseTarget) bool {
				return sameTarget(a.Ref, b.Ref)
			})
		}) {
			rivals = append(rivals, other)
		}
	}
	return rivals
}

// underWay is the name of a rival that is under way.
func (in Input) underWay() string {
	for _, other := range in.rivals() {
		if other.Status.Phase.UnderWay() {
			return other.Name
		}
	}
	return ""
}

// before is the name of a rival that goes first.
func (in Input) before() string {
	if name := in.underWay(); name != "" {
		return name
	}
	for _, other := range in.rivals() {
		if waits := startedByHub(&other) && other.Status.Phase == releasev1alpha1.ReleasePending; waits {
			continue // it is not accepted, and waits for that without a limit
		}
		if !other.Status.Phase.Ended() && older(&other, in.Release) || in.bindingsLag(&other) {
			return other.Name
		}
	}
	return ""
}

// bindingsLag reports whether a rival has succeeded but a binding still has its unfinished plan, which looks like that
// of a release that was aborted; see Target.formerName.
func (in Input) bindingsLag(rival *releasev1alpha1.Release) bool {
	for _, t := range in.Targets {
		if p := t.plan(); p != nil && !p.Done && p.UID == string(rival.UID) &&
			rival.Status.Phase == releasev1alpha1.ReleaseSucceeded {
			return true
		}
	}
	return false
}

// replacedBy is the name of a newer rival that replaces this release. One that ReleaseGuards do not let start replaces
// none yet.
func (in Input) replacedBy() string {
	for _, other := range in.rivals() {
		if other.Spec.Supersede == releasev1alpha1.SupersedeReplace && other.Status.Phase == releasev1alpha1.ReleaseQueued &&
			other.Status.Guard == nil && older(in.Release, &other) {
			return other.Name
		}
	}
	return ""
}

// older orders releases by creation, then by name.
func older(a, b *releasev1alpha1.Release) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

func duration(d *metav1.Duration, unset time.Duration) time.Duration {
	if d == nil {
		return unset
	}
	return d.Duration
}

func status(ok bool) metav1.ConditionStatus {
	if ok {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func (s *stepper) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	if meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message: message, LastTransitionTime: *s.time(), ObservedGeneration: s.Release.Generation}) {
		s.changed = true
	}
}

// current is the index of the stage under way; the number of stages when all have ended.
func (s *stepper) current() int { return currentStage(s.status.Stages) }

// asIs is the input with the status of this step.
func (s *stepper) asIs() Input {
	in, r := s.Input, *s.Release
	r.Status = *s.status.DeepCopy()
	in.Release = &r
	return in
}

// skip ends the stage under way where its user asks for that. The stage makes no more pods new, also when the release
// has succeeded: its gates have not passed.
func (s *stepper) skip(k int) bool {
	stage := &s.status.Stages[k]
	if s.Release.Annotations[releasev1alpha1.SkipStageAnnotation] != stageAttempt(*stage) {
		return false
	}
	by := s.verbFor(releasev1alpha1.SkipStageAnnotation)
	s.journal(releasev1alpha1.JournalVerb, stage.Name, "", by.User, "SkipStage", by.Reason)
	stage.Phase = releasev1alpha1.StageSkipped
	s.endStage(k, releasev1alpha1.StageSkipped, "SkippedByUser", keptMessage(&s.status))
	return true
}

// ready are the targets whose dependencies have reached stage k, beside those that have begun.
func (s *stepper) ready(k int, reached map[string]bool) []string {
	begun := s.status.Stages[k].BegunTargets
	var all []string
	for _, t := range s.Release.Spec.Targets {
		if slices.Contains(begun, t.Name) ||
			!slices.ContainsFunc(t.DependsOn, func(name string) bool { return !reached[name] }) {
			all = append(all, t.Name)
		}
	}
	return all
}

// begunTargets are the targets of which pods may be new.
func (s *stepper) begunTargets() (names []string) {
	for _, t := range s.status.Targets {
		if slices.ContainsFunc(s.status.Stages, func(stage releasev1alpha1.ReleaseStageStatus) bool {
			return slices.Contains(stage.BegunTargets, t.Name)
		}) {
			names = append(names, t.Name)
		}
	}
	return names
}

// endedByOthers ends the release where a newer one replaces it, its user aborts it, or a workload is another one.
func (s *stepper) endedByOthers() transition {
	if s.Release.Spec.State == releasev1alpha1.StateAbort {
		return enter(releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "")
	}
	for _, t := range s.status.Targets {
		if s.Targets[t.Name].replaced(t) {
			return enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonTargetReplaced,
				fmt.Sprintf("the workload of target %s was deleted and created again", t.Name))
		}
	}
	if name := s.replacedBy(); name != "" {
		return enter(releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded, "by release "+name)
	}
	if s.Release.Spec.State == releasev1alpha1.StateRollback && s.status.Phase != releasev1alpha1.ReleaseRollingBack {
		if s.status.Phase == releasev1alpha1.ReleaseQueued {
			return enter(releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "before it started")
		}
		return s.startRollback(releasev1alpha1.ReasonUserRequest, "")
	}
	return stay
}
