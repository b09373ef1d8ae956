// Package release decides the next step of a release: from the release, its strategy, the approvals and what members
// report, to the status of the release and the plan on the bindings of its targets. core/workload/fleet carries plans
// out. Nothing here reads a cluster or a clock.
package release

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
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
	if IsRecord(in.Release) {
		s.observeRecord()
		return s.step()
	}
	for range 8 + 8*len(s.status.Stages) + 8*32 {
		if !s.advance() {
			break
		}
	}
	return s.step()
}

// stepper is a release on its way through its states.
type stepper struct {
	Input
	status releasev1alpha1.ReleaseStatus
	now    time.Time
	next   Step
	wakeAt time.Time
	// changed is true if something happened that is worth a write.
	changed bool
	// waits is the reason of Progressing for what the stage waits for, with a message.
	waits, waitsFor string
	// guard is what the release waits for at ReleaseGuards.
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
	for _, t := range in.Release.Status.Targets {
		if t.Name == target {
			return t
		}
	}
	return releasev1alpha1.ReleaseTargetStatus{}
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

// advance takes one transition and reports whether there may be another one.
func (s *stepper) advance() bool {
	switch s.status.Phase {
	case "", releasev1alpha1.ReleasePending:
		return s.accept()
	case releasev1alpha1.ReleaseQueued:
		return s.endedByOthers() || s.start()
	case releasev1alpha1.ReleaseRunning:
		return s.endedByOthers() || s.run()
	case releasev1alpha1.ReleasePaused:
		return s.endedByOthers() || s.resume()
	case releasev1alpha1.ReleaseRollingBack:
		return s.endedByOthers() || s.rollBack()
	}
	return s.reopen()
}

// endedByOthers ends the release where a newer one replaces it, its user aborts it, or a workload is another one.
func (s *stepper) endedByOthers() bool {
	if s.Release.Spec.State == releasev1alpha1.StateAbort {
		s.end(releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "")
		return true
	}
	for _, t := range s.status.Targets {
		if s.Targets[t.Name].replaced(t) {
			s.end(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonTargetReplaced,
				fmt.Sprintf("the workload of target %s was deleted and created again", t.Name))
			return true
		}
	}
	if name := s.replacedBy(); name != "" {
		s.end(releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReasonSuperseded, "by release "+name)
		return true
	}
	if s.Release.Spec.State == releasev1alpha1.StateRollback && s.status.Phase != releasev1alpha1.ReleaseRollingBack {
		if s.status.Phase == releasev1alpha1.ReleaseQueued {
			s.end(releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "before it started")
			return true
		}
		s.startRollback(releasev1alpha1.ReasonUserRequest, "")
		return true
	}
	return false
}

// accept goes from Pending to Queued, or refuses.
func (s *stepper) accept() bool {
	if s.Release.Spec.State == releasev1alpha1.StateAbort {
		s.end(releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "")
		return false
	}
	a := Accept(s.Input)
	if s.lacksVersions(a) {
		s.status.Phase = releasev1alpha1.ReleasePending
		return false
	}
	if !s.accepted(a) {
		return false
	}
	s.status.Strategy = s.strategy().DeepCopy()
	s.status.Targets = a.Targets
	to := make([]string, len(a.Targets))
	for i, t := range a.Targets {
		to[i] = t.To
	}
	s.status.Revision, _ = hashOf(to) // texts
	s.next.ConfigMaps, s.next.Revisions = a.ConfigMaps, a.Revisions
	for _, stage := range s.status.Strategy.Stages {
		s.status.Stages = append(s.status.Stages, releasev1alpha1.ReleaseStageStatus{Name: stage.Name,
			Phase: releasev1alpha1.StagePending})
	}
	s.phase(releasev1alpha1.ReleaseQueued, "Accepted", a.Message)
	return true
}

// accepted sets the condition Accepted, and ends a release that was refused. A new release waits a moment for what it
// names, so that all of it can be created together. One that the hub started waits for as long as that takes, while its
// workload exists: the hub does not start it again.
func (s *stepper) accepted(a Acceptance) bool {
	ok := a.Reason == releasev1alpha1.ReasonPlanned
	s.condition(releasev1alpha1.ReleaseAccepted, status(ok), a.Reason, a.Message)
	until := s.Release.CreationTimestamp.Add(missingGrace)
	switch {
	case ok:
	case a.isMissing() && startedByHub(s.Release) && a.Reason != releasev1alpha1.ReasonTargetNotFound:
		s.status.Phase, s.status.Strategy, s.status.Revision = releasev1alpha1.ReleasePending, nil, ""
		s.status.Targets, s.status.Stages = nil, nil
		s.wait(a.Reason, "%s", a.Message)
	case s.status.Phase != releasev1alpha1.ReleaseQueued && a.isMissing() && s.now.Before(until):
		s.status.Phase = releasev1alpha1.ReleasePending
		s.wait(a.Reason, "%s", a.Message)
		s.wake(until)
	default:
		s.end(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRejected, a.Message)
	}
	return ok
}

// lacksVersions reports whether a release waits for versions of ConfigMaps that could not be created.
func (s *stepper) lacksVersions(a Acceptance) bool {
	if s.VersionsRefused == "" || len(a.ConfigMaps) == 0 {
		return false
	}
	s.wait(releasev1alpha1.ReasonConfigMapRefused, "%s", s.VersionsRefused)
	s.wake(s.now.Add(versionsRetry))
	return true
}

// versionsRetry is when to create versions of ConfigMaps again that could not be created.
const versionsRetry = time.Minute

// missingGrace is for how long after its creation a release waits for what it names.
const missingGrace = 30 * time.Second

// isMissing reports whether a release was refused for something that does not exist yet, or that no stage selects yet.
func (a Acceptance) isMissing() bool {
	switch a.Reason {
	case releasev1alpha1.ReasonStrategyNotFound, releasev1alpha1.ReasonTargetNotFound, releasev1alpha1.ReasonTargetNotHeld,
		releasev1alpha1.ReasonRevisionNotFound, releasev1alpha1.ReasonStagesEmpty, releasev1alpha1.ReasonCheckNotFound,
		releasev1alpha1.ReasonClustersUnassigned:
		return true
	}
	return false
}

// start goes from Queued to Running when no other release of the targets goes first, and ReleaseGuards permit it.
func (s *stepper) start() bool {
	if s.Release.Spec.Supersede == releasev1alpha1.SupersedeReplace && s.waitsToReplace() {
		return false
	}
	if other := s.before(); other != "" {
		s.wait(releasev1alpha1.ReasonQueued, "release %s goes first", other)
		return false
	}
	if s.Release.Spec.State == releasev1alpha1.StatePause {
		s.wait(releasev1alpha1.ReasonPausedByUser, "set state: Run to start")
		return false
	}
	in := s.Input
	in.Release = in.Release.DeepCopy()
	in.Release.Status = s.status
	a := Accept(in)
	if !s.accepted(a) {
		return false
	}
	planned := in.Release.DeepCopy()
	setClusters(&planned.Status, a.Clusters)
	if s.waitsForGuards(planned, 0, true) {
		return false
	}
	if s.lacksVersions(a) {
		return false
	}
	s.status.Targets, s.status.Stages = a.Targets, planned.Status.Stages
	s.next.ConfigMaps, s.next.Revisions = a.ConfigMaps, a.Revisions
	for k := range s.status.Stages {
		if gate := s.guardView().guardGate(planned, k); gate != nil {
			stage := &s.status.Strategy.Stages[k]
			stage.Before = append(stage.Before, *gate)
		}
	}
	in.Release.Status = s.status
	if _, hash, err := Preview(in); err == nil {
		s.status.PlanHash = hash
	}
	s.status.StartedAt = s.time()
	s.phase(releasev1alpha1.ReleaseRunning, "Started", "")
	return true
}

// setClusters sets the clusters of the stages of a release that starts.
func setClusters(status *releasev1alpha1.ReleaseStatus, byStage [][]string) {
	for k := range status.Stages {
		stage := &status.Stages[k]
		if stage.SameClusters = k > 0 && slices.Equal(byStage[k], byStage[k-1]); !stage.SameClusters {
			stage.ClusterNames = byStage[k]
		}
	}
}

// waitsToReplace reports whether windows keep a release from starting that would replace another one. The other one
// continues until they open.
func (s *stepper) waitsToReplace() bool {
	if len(s.Guards) == 0 || s.underWay() == "" {
		return false
	}
	in := s.Input
	in.Release = in.Release.DeepCopy()
	in.Release.Status = *s.status.DeepCopy()
	a := Accept(in)
	if a.Reason != releasev1alpha1.ReasonPlanned {
		return false
	}
	setClusters(&in.Release.Status, a.Clusters)
	o := s.guardView().closed(in.Release, 0)
	if o == nil || s.breaksGlass(in.Release.Status.Stages[0]) {
		return false
	}
	s.waitFor(o)
	return true
}

// current is the index of the stage under way; the number of stages when all have ended.
func (s *stepper) current() int { return currentStage(s.status.Stages) }

// run advances the stage under way.
func (s *stepper) run() bool {
	if s.Release.Spec.State == releasev1alpha1.StatePause {
		s.phase(releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByUser, "")
		return true
	}
	k := s.current()
	if k == len(s.status.Stages) {
		s.end(releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, keptMessage(&s.status))
		return true
	}
	stage := &s.status.Stages[k]
	if stage.Phase != releasev1alpha1.StagePending && s.skip(k) {
		return true
	}
	switch stage.Phase {
	case releasev1alpha1.StagePending:
		if s.returns() && !s.synced() {
			return false // what clusters have is not known yet
		}
		if why := s.nothingToDo(k); why != "" {
			s.endStage(k, releasev1alpha1.StageSkipped, "NothingToDo", why)
			return true
		}
		stage.Attempt = 1
		s.stagePhase(k, releasev1alpha1.StageGated, "Entered", "")
		return true
	case releasev1alpha1.StageGated:
		if !s.gates(k, releasev1alpha1.GateBefore) {
			return s.status.Phase != releasev1alpha1.ReleaseRunning || stage.Phase != releasev1alpha1.StageGated
		}
		reserved := s.reservation(k)
		if s.waitsForGuards(s.reserving(k, reserved), k, false) {
			return false
		}
		stage.Reserved = reserved
		stage.StartedAt, stage.ProgressAt, stage.Available = s.time(), s.time(), 0
		stage.BegunTargets = s.ready(k, nil)
		s.stagePhase(k, releasev1alpha1.StageUpdating, "Started", "")
		return true
	case releasev1alpha1.StageUpdating:
		return s.update(k)
	case releasev1alpha1.StageSoaking:
		return s.soak(k)
	case releasev1alpha1.StageChecking:
		if !s.gates(k, releasev1alpha1.GateAfter) {
			return s.status.Phase != releasev1alpha1.ReleaseRunning || stage.Phase != releasev1alpha1.StageChecking
		}
		s.endStage(k, releasev1alpha1.StageDone, "Done", "")
		return true
	}
	return false
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

// returns reports whether the release brings back the revision that all clusters had before the last release, which
// has not reached all of them.
func (s *stepper) returns() bool {
	return !slices.ContainsFunc(s.status.Targets, func(t releasev1alpha1.ReleaseTargetStatus) bool {
		return t.From != t.To
	})
}

// nothingToDo returns why a stage replaces no pod; empty if it does. No cluster matches, its share is rounded to that
// of the stage before it, or its clusters still have the revision to which the release returns. A stage whose clusters
// have no pods now asks its gates: clusters that were evicted or scaled to zero may return, and no user has approved
// them.
func (s *stepper) nothingToDo(k int) string {
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
func (s *stepper) updatesJoined(k int) bool {
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
func (s *stepper) haveRevision(names []string) bool {
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
func (s *stepper) addsNoPod(k int, names []string) bool {
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

// update waits until the pods of the stage are new and available.
func (s *stepper) update(k int) bool {
	if !s.synced() {
		return s.overdue(k)
	}
	stage := &s.status.Stages[k]
	spec := s.status.Strategy.Stages[k]
	o := s.observe(k)
	if s.lose(o) {
		return true
	}
	if o.failure != "" {
		s.fail(k, o.failure, o.message, o.failedTargets...)
		return true
	}
	if ready := s.ready(k, o.reachedTargets); len(ready) > len(stage.BegunTargets) {
		stage.BegunTargets, stage.ProgressAt = ready, s.time()
		s.changed = true
		return true
	}
	if o.reached && len(stage.BegunTargets) == len(s.Release.Spec.Targets) {
		stage.ReachedAt, stage.ProgressAt = s.time(), s.time()
		s.status.SoakUntil = s.timeAfter(spec.Soak.Duration)
		s.stagePhase(k, releasev1alpha1.StageSoaking, "Reached", "")
		return true
	}
	deadline := duration(spec.Deadline, 30*time.Minute)
	late, persist := s.late(o, deadline, &stage.Available, &stage.ProgressAt)
	s.changed = s.changed || persist
	if late {
		s.fail(k, releasev1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("no new pod has become available for %s", deadline),
			o.behindTargets()...)
		return true
	}
	switch {
	case o.onlyLost:
		s.wait(releasev1alpha1.ReasonClusterUnreachable, "%s", text.Names(o.lost, 10))
	case len(stage.BegunTargets) < len(s.Release.Spec.Targets):
		s.waitForDependencies(*stage, o.reachedTargets)
	}
	return false
}

// waitForDependencies names the targets that wait for others in a stage. reached has the targets that have reached it.
func (s *stepper) waitForDependencies(stage releasev1alpha1.ReleaseStageStatus, reached map[string]bool) {
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

// overdue fails a stage that cannot be observed for the time of its deadline.
func (s *stepper) overdue(k int) bool {
	stage, deadline := &s.status.Stages[k], duration(s.status.Strategy.Stages[k].Deadline, 30*time.Minute)
	if s.waits == "" {
		return false
	}
	if stage.Phase == releasev1alpha1.StageSoaking {
		deadline += s.status.Strategy.Stages[k].Soak.Duration
	}
	late, persist := s.late(observation{}, deadline, &stage.Available, &stage.ProgressAt)
	s.changed = s.changed || persist
	if late {
		s.fail(k, releasev1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("for %s: %s", deadline, s.waitsFor))
	}
	return late
}

// late reports whether no pod has become available for the time of the deadline; persist is true if since or available
// has changed. They are written at most ten times in that time.
func (s *stepper) late(o observation, deadline time.Duration, available *int64,
	since **metav1.Time) (late, persist bool) {
	if *since == nil {
		*since = s.time()
		return false, true
	}
	if o.onlyLost {
		return false, false
	}
	passed := s.now.Sub((*since).Time)
	switch {
	case o.available > *available && passed >= deadline/10:
		*available, *since = o.available, s.time()
		s.wake((*since).Add(deadline))
		return false, true
	case o.available > *available:
		s.wake((*since).Add(deadline / 10))
	case passed >= deadline:
		return true, false
	default:
		s.wake((*since).Add(deadline))
	}
	return false, false
}

// soak waits until the pods of the stage were available without interruption.
func (s *stepper) soak(k int) bool {
	if !s.synced() {
		return s.overdue(k)
	}
	o := s.observe(k)
	if s.lose(o) {
		return true
	}
	if o.failure != "" {
		s.fail(k, o.failure, o.message, o.failedTargets...)
		return true
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
		s.status.SoakUntil = s.timeAfter(s.status.Strategy.Stages[k].Soak.Duration)
		s.changed = true
	}
	if s.now.Before(s.status.SoakUntil.Time) {
		s.wake(s.status.SoakUntil.Time)
		return false
	}
	s.status.SoakUntil = nil
	s.stagePhase(k, releasev1alpha1.StageChecking, "Soaked", "")
	return true
}

// unsteady fails a stage whose pods are not available if it did not soak within its deadline and the time of soaking
// since it was reached. So pods that come and go do not hold the release for ever.
func (s *stepper) unsteady(k int, o observation) bool {
	stage, spec := &s.status.Stages[k], s.status.Strategy.Stages[k]
	if o.onlyLost || stage.ProgressAt == nil {
		return false
	}
	deadline := duration(spec.Deadline, 30*time.Minute)
	if until := stage.ProgressAt.Add(spec.Soak.Duration + deadline); s.now.Before(until) {
		s.wake(until)
		return false
	}
	s.fail(k, releasev1alpha1.ReasonDeadlineExceeded,
		fmt.Sprintf("pods did not stay available for %s within %s: %s", spec.Soak.Duration, spec.Soak.Duration+deadline,
			text.Names(o.behind, 3)), o.behindTargets()...)
	return true
}

// fail acts on the failure of a stage. A stage fails before it has started only at a gate. The release never continues
// then: that would be as if the gate had passed. targets are those whose revision is the reason.
func (s *stepper) fail(k int, reason, message string, targets ...string) {
	s.status.SoakUntil = nil
	for i := range s.status.Targets {
		t := &s.status.Targets[i]
		t.Failed = t.Failed || slices.Contains(targets, t.Name)
	}
	if stage := &s.status.Stages[k]; len(stage.BegunTargets) > 0 {
		o := s.observe(k)
		stage.Counts, stage.Clusters = o.counts, o.clusters // a rollback does not count them any more
	}
	s.condition(releasev1alpha1.ReleaseHealthy, metav1.ConditionFalse, reason, message)
	action := failureAction(s.status.Strategy, k)
	if action == releasev1alpha1.FailureContinue && s.status.Stages[k].Phase == releasev1alpha1.StageGated {
		action = releasev1alpha1.FailurePause
	}
	switch action {
	case releasev1alpha1.FailureRollback:
		s.stagePhase(k, releasev1alpha1.StageFailed, reason, message)
		s.startRollback(reason, message)
	case releasev1alpha1.FailureContinue:
		s.endStage(k, releasev1alpha1.StageFailed, reason, message)
	default:
		s.pauseByFailure(k, reason, message)
	}
}

func (s *stepper) pauseByFailure(k int, reason, message string) {
	s.stagePhase(k, releasev1alpha1.StageFailed, reason, message)
	s.phase(releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, reason)
}

// resume leaves Paused where its user asks for that.
func (s *stepper) resume() bool {
	k := s.current()
	if k == len(s.status.Stages) {
		s.phase(releasev1alpha1.ReleaseRunning, "Resumed", "")
		return true
	}
	stage := &s.status.Stages[k]
	run := s.Release.Spec.State == releasev1alpha1.StateRun || s.Release.Spec.State == ""
	switch {
	case !run:
		return false
	case s.skip(k):
	case stage.Phase != releasev1alpha1.StageFailed:
		if stage.ProgressAt != nil {
			stage.ProgressAt = s.time()
		}
		s.status.SoakUntil = nil
	case s.Release.Annotations[releasev1alpha1.RetryAnnotation] == stageAttempt(*stage):
		by := s.verbFor(releasev1alpha1.RetryAnnotation)
		s.journal(releasev1alpha1.JournalVerb, stage.Name, "", by.User, "Retry", by.Reason)
		stage.Attempt++
		stage.Gates, stage.BegunTargets, stage.ReachedAt = nil, nil, nil
		for i := range s.status.Targets {
			s.status.Targets[i].Failed = false
		}
		s.condition(releasev1alpha1.ReleaseHealthy, metav1.ConditionUnknown, releasev1alpha1.ReasonNotObserved, "")
		s.stagePhase(k, releasev1alpha1.StageGated, "Retried", "")
	default:
		return false
	}
	s.phase(releasev1alpha1.ReleaseRunning, "Resumed", "")
	return true
}

// lose keeps the list of clusters that do not answer, and acts on those that have not for too long.
func (s *stepper) lose(o observation) (again bool) {
	rule := s.status.Strategy.OnLostCluster
	after := duration(rule.After, 10*time.Minute)
	s.status.LostClusters = slices.DeleteFunc(s.status.LostClusters, func(l releasev1alpha1.LostClusterStatus) bool {
		if o.isLost[l.Name] {
			return false
		}
		s.journal(releasev1alpha1.JournalCluster, "", l.Name, "", "Returned", "")
		if k := s.current(); k < len(s.status.Stages) && s.status.Stages[k].ProgressAt != nil {
			s.status.Stages[k].ProgressAt = s.time()
		}
		again = true
		return true
	})
	for _, name := range o.lost {
		i := slices.IndexFunc(s.status.LostClusters, func(l releasev1alpha1.LostClusterStatus) bool { return l.Name == name })
		if i < 0 {
			s.journal(releasev1alpha1.JournalCluster, "", name, "", "Lost", "the cluster does not answer")
			s.status.LostClusters = append(s.status.LostClusters, releasev1alpha1.LostClusterStatus{Name: name,
				Since: *s.time()})
			again = true
			continue
		}
		l := &s.status.LostClusters[i]
		if l.Skipped || rule.Action != releasev1alpha1.LostClusterSkip && rule.Action != releasev1alpha1.LostClusterFail {
			continue
		}
		due := l.Since.Add(after)
		switch {
		case s.now.Before(due):
			s.wake(due)
		case rule.Action == releasev1alpha1.LostClusterSkip:
			l.Skipped = true
			s.journal(releasev1alpha1.JournalCluster, "", name, "", "Skipped",
				fmt.Sprintf("it does not answer for %s", after))
			again = true
		case s.status.Phase == releasev1alpha1.ReleaseRunning:
			s.fail(s.current(), releasev1alpha1.ReasonClusterUnreachable,
				fmt.Sprintf("cluster %s does not answer for %s", name, after))
			return true
		}
	}
	return again
}

// startRollback goes to RollingBack, or fails where there is no revision to go back to.
func (s *stepper) startRollback(reason, message string) {
	for _, t := range s.status.Targets {
		if t.From == "" && hasBegun(&s.status) {
			s.end(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed,
				fmt.Sprintf("the revision of target %s before this release is not known", t.Name))
			return
		}
		target := s.Targets[t.Name]
		if obstacle := target.deleted(target.revision(t.From)); obstacle != "" && hasBegun(&s.status) {
			s.end(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed,
				fmt.Sprintf("target %s: %s", t.Name, obstacle))
			return
		}
	}
	s.status.EndedAt, s.status.SoakUntil, s.status.Progress = nil, nil, ""
	s.status.Rollback = &releasev1alpha1.ReleaseRollbackStatus{Reason: reason, StartedAt: *s.time(), ProgressAt: s.time()}
	if steps := s.rollbackSteps(); len(steps) > 0 {
		s.status.Rollback.Stage = steps[0].name
	}
	s.phase(releasev1alpha1.ReleaseRollingBack, reason, message)
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

// rollBack advances the rollback.
func (s *stepper) rollBack() bool {
	steps := s.rollbackSteps()
	if len(steps) == 0 {
		s.rolledBack()
		return true
	}
	deadline := duration(s.status.Strategy.Rollback.Deadline, 30*time.Minute)
	if !s.synced() {
		late, persist := s.late(observation{}, deadline, &s.status.Rollback.Available, &s.status.Rollback.ProgressAt)
		s.changed = s.changed || persist
		if late {
			s.end(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed,
				fmt.Sprintf("for %s: %s", deadline, s.waitsFor))
		}
		return late
	}
	at := slices.IndexFunc(steps, func(step rollbackStep) bool { return step.name == s.status.Rollback.Stage })
	at = max(at, 0)
	o := s.observeClusters(steps[at].clusters, true)
	if s.lose(o) {
		return true
	}
	late, persist := s.late(o, deadline, &s.status.Rollback.Available, &s.status.Rollback.ProgressAt)
	s.changed = s.changed || persist
	switch {
	case o.refused == "" && o.reached && at+1 == len(steps):
		s.rolledBack()
		return true
	case o.refused == "" && o.reached:
		s.status.Rollback.Stage = steps[at+1].name
		s.status.Rollback.ProgressAt, s.status.Rollback.Available = s.time(), 0
		s.journal(releasev1alpha1.JournalStage, steps[at].name, "", "", "RolledBack", "")
		return true
	case o.refused != "" || late:
		message := fmt.Sprintf("no pod of the former revision has become available for %s", deadline)
		if o.refused != "" {
			message = "refused in " + o.refused
		}
		s.end(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed, message)
		return true
	}
	return false
}

func (s *stepper) rolledBack() {
	s.end(releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, s.status.Rollback.Reason)
}

// reopen rolls a release back that has ended, where its user asks for that. After a failed rollback, only a change of
// the spec asks again.
func (s *stepper) reopen() bool {
	if !asksToReopen(s.Release, &s.status) ||
		s.status.Phase == releasev1alpha1.ReleaseFailed && s.Release.Generation == s.status.ObservedGeneration ||
		s.reopenObstacle() != "" {
		return false
	}
	s.startRollback(releasev1alpha1.ReasonUserRequest, "")
	return true
}

// asksToReopen reports whether the user of a release that has ended asks for a rollback.
func asksToReopen(r *releasev1alpha1.Release, status *releasev1alpha1.ReleaseStatus) bool {
	return r.Spec.State == releasev1alpha1.StateRollback && canReopen(status) && !IsRecord(r)
}

// reopenObstacle is rollbackObstacle with the status of this step.
func (s *stepper) reopenObstacle() string {
	in, r := s.Input, *s.Release
	r.Status = s.status
	in.Release = &r
	return in.rollbackObstacle()
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
