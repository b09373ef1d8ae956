package release

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// VerbWrite is one write of a Request: it sets spec.state, or an annotation of annotationVerbs.
type VerbWrite struct {
	State             releasev1alpha1.ReleaseState
	Annotation, Value string
}

// Verb is the right that the write needs, beside patch.
func (w VerbWrite) Verb() string {
	for _, a := range annotationVerbs {
		if a.annotation == w.Annotation {
			return a.verb
		}
	}
	return stateVerbs[w.State]
}

// patch returns the JSON merge patch of the write.
func (w VerbWrite) patch(reason string) map[string]any {
	patch, annotations := map[string]any{}, map[string]any{}
	if w.State != "" {
		patch["spec"] = map[string]any{"state": w.State}
	}
	if w.Annotation != "" {
		annotations[w.Annotation] = w.Value
	}
	if reason != "" {
		annotations[releasev1alpha1.ReleaseReasonAnnotation] = reason
	}
	if len(annotations) > 0 {
		patch["metadata"] = map[string]any{"annotations": annotations}
	}
	return patch
}

// Request has the writes by which a user asks for a verb on a release.
type Request struct {
	// Writes are written in this order. There are none if the release is already as asked; Already then describes it.
	Writes  []VerbWrite
	Already string
	// Done describes the release after that, for people, such as "paused".
	Done string
}

// Patches returns the JSON merge patches of the writes. reason is for people, and may be empty. It is in the last patch
// alone, because a reason that does not change counts for an earlier verb.
func (q Request) Patches(reason string) []map[string]any {
	var patches []map[string]any
	for i, w := range q.Writes {
		if i < len(q.Writes)-1 {
			patches = append(patches, w.patch(""))
		} else {
			patches = append(patches, w.patch(reason))
		}
	}
	return patches
}

// RequestVerbs are the verbs of RequestFor, but for break-glass.
var RequestVerbs = []string{releasev1alpha1.VerbPause, releasev1alpha1.VerbResume, releasev1alpha1.VerbRetry,
	releasev1alpha1.VerbSkip, releasev1alpha1.VerbRollback, releasev1alpha1.VerbAbort}

// NeedsReason reports whether one of RequestVerbs needs a reason.
func NeedsReason(verb string) bool {
	return verb == releasev1alpha1.VerbSkip || verb == releasev1alpha1.VerbRetry
}

// OnlyRecords is why a Release of a change that was sent to clusters at once takes no verb but abort.
const OnlyRecords = "this release only records a change that was sent to clusters at once: to undo the change, revert " +
	"the template"

// NeedsTargets reports whether RequestFor reads the other releases of the namespace, and the targets of the release.
func NeedsTargets(r *releasev1alpha1.Release, verb string) bool {
	return verb == releasev1alpha1.VerbRollback && canReopen(&r.Status)
}

// RequestFor returns the change that asks for a verb on a release. An error names why the release cannot do it, and
// what to do instead. Of in, it reads the release and, if NeedsTargets, Others and the Targets that the user may read.
func RequestFor(in Input, verb string) (Request, error) {
	r := in.Release
	if IsRecord(r) && verb != releasev1alpha1.VerbAbort {
		return Request{}, errors.New(OnlyRecords)
	}
	switch verb {
	case releasev1alpha1.VerbPause:
		return pause(r)
	case releasev1alpha1.VerbResume:
		return resume(r)
	case releasev1alpha1.VerbAbort:
		return setState(r, releasev1alpha1.StateAbort, "aborted: pods stay as they are")
	case releasev1alpha1.VerbRollback:
		return in.rollback()
	case releasev1alpha1.VerbSkip:
		return changeStage(r, verb, releasev1alpha1.SkipStageAnnotation, "skipped")
	case releasev1alpha1.VerbRetry:
		return changeStage(r, verb, releasev1alpha1.RetryAnnotation, "started again")
	case releasev1alpha1.VerbBreakGlass:
		value, waits := BreakGlassValue(r.Status)
		if !waits {
			what, _ := Waits(r)
			return Request{}, fmt.Errorf("release %s does not wait for a ReleaseGuard: %s", r.Name, what)
		}
		return Request{Writes: []VerbWrite{{Annotation: releasev1alpha1.BreakGlassAnnotation, Value: value}},
			Done: "started in spite of ReleaseGuard " + r.Status.Guard.Name}, nil
	}
	return Request{}, fmt.Errorf("there is no verb %q on releases", verb)
}

// CheckState returns why a release cannot do what another spec.state asks for; nil if it can. in is as for RequestFor,
// with the release before the change.
func CheckState(in Input, state releasev1alpha1.ReleaseState) error {
	_, err := RequestFor(in, stateVerbs[state])
	if err == nil {
		return nil
	}
	// A failed rollback is requested again by two writes, of which the first one alone changes nothing.
	if again, _ := RequestFor(in, releasev1alpha1.VerbRollback); len(again.Writes) > 1 && again.Writes[0].State == state {
		return nil
	}
	return err
}

func pause(r *releasev1alpha1.Release) (Request, error) {
	switch {
	case r.Status.Phase == releasev1alpha1.ReleaseRollingBack:
		return Request{}, fmt.Errorf("release %s is rolling back, which cannot be paused", r.Name)
	case r.Spec.State == releasev1alpha1.StatePause && !r.Status.Phase.Ended():
		return Request{Already: fmt.Sprintf("release %s is already paused", r.Name)}, nil
	}
	return setState(r, releasev1alpha1.StatePause, "paused")
}

func resume(r *releasev1alpha1.Release) (Request, error) {
	switch {
	case r.Spec.State == releasev1alpha1.StatePause:
		return setState(r, releasev1alpha1.StateRun, "resumed")
	case r.Status.Phase == releasev1alpha1.ReleasePaused:
		what, next := Waits(r)
		return Request{}, fmt.Errorf("release %s cannot be resumed: %s; %s", r.Name, what, next)
	}
	return Request{}, fmt.Errorf("release %s is not paused: it is %s", r.Name, PhaseOf(r))
}

func (in Input) rollback() (Request, error) {
	r := in.Release
	back := VerbWrite{State: releasev1alpha1.StateRollback}
	request := Request{Writes: []VerbWrite{back}, Done: "rolled back"}
	switch {
	case r.Status.Phase == releasev1alpha1.ReleaseRollingBack:
		return Request{Already: fmt.Sprintf("release %s is already rolling back", r.Name)}, nil
	case !canReopen(&r.Status):
		return setState(r, back.State, request.Done)
	}
	if why := in.rollbackObstacle(); why != "" {
		return Request{}, fmt.Errorf("release %s cannot be rolled back: %s", r.Name, why)
	}
	switch {
	case r.Spec.State != releasev1alpha1.StateRollback:
	case r.Status.Phase == releasev1alpha1.ReleaseFailed:
		// The hub rolls back again when the state changes.
		request.Writes = []VerbWrite{{State: releasev1alpha1.StatePause}, back}
	default:
		return Request{Already: fmt.Sprintf("a rollback of release %s is requested already; the hub starts it if clusters "+
			"still have the revision of the release", r.Name)}, nil
	}
	return request, nil
}

// setState asks for a state of a release that has not ended.
func setState(r *releasev1alpha1.Release, state releasev1alpha1.ReleaseState, done string) (Request, error) {
	if r.Status.Phase.Ended() {
		return Request{}, fmt.Errorf("release %s has ended: it is %s", r.Name, r.Status.Phase)
	}
	if r.Spec.State == state {
		return Request{Already: fmt.Sprintf("release %s has spec.state: %s already", r.Name, state)}, nil
	}
	return Request{Writes: []VerbWrite{{State: state}}, Done: done}, nil
}

// changeStage skips the stage under way, or starts it again, in the attempt that it has now.
func changeStage(r *releasev1alpha1.Release, verb, annotation, done string) (Request, error) {
	value := ""
	if stage := StageUnderWay(r); stage != nil {
		value = stageAttempt(*stage)
	}
	if problem := badStage(r.Status, verb, value); problem != "" {
		return Request{}, fmt.Errorf("release %s: %s", r.Name, problem)
	}
	return Request{Writes: []VerbWrite{{Annotation: annotation, Value: value}}, Done: done}, nil
}

func PhaseOf(r *releasev1alpha1.Release) releasev1alpha1.ReleasePhase {
	return cmp.Or(r.Status.Phase, releasev1alpha1.ReleasePending)
}

// WaitingGates are the gates at which a release waits for approvals.
func WaitingGates(r *releasev1alpha1.Release) []releasev1alpha1.ReleaseGateStatus {
	stage := StageUnderWay(r)
	if stage == nil || r.Status.Phase != releasev1alpha1.ReleaseRunning {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(stage.Gates), func(g releasev1alpha1.ReleaseGateStatus) bool {
		return g.Phase != releasev1alpha1.GateWaiting || g.Check != nil
	})
}

// ApprovalFor returns the verdict of a user at a gate of the stage under way. It counts for the revision, the stage and
// the attempt that the release has now, and for no other.
func ApprovalFor(r *releasev1alpha1.Release, gate releasev1alpha1.ReleaseGateStatus,
	verdict releasev1alpha1.ApprovalVerdict, comment string) *releasev1alpha1.ReleaseApproval {
	stage := StageUnderWay(r)
	a := &releasev1alpha1.ReleaseApproval{}
	a.Namespace, a.GenerateName = r.Namespace, fmt.Sprintf("%s-%s-", LabelOf(r.Name), stage.Name)
	a.Spec = releasev1alpha1.ReleaseApprovalSpec{Release: r.Name, ReleaseUID: r.UID, Revision: r.Status.Revision,
		Stage: stage.Name, Position: gate.Position, Gate: gate.Name, Attempt: stage.Attempt, Verdict: verdict,
		Comment: comment}
	return a
}

// RuleOf returns the approval rule of a gate of the stage under way; nil means that one user may approve.
func RuleOf(r *releasev1alpha1.Release, gate releasev1alpha1.ReleaseGateStatus) *releasev1alpha1.ReleaseApprovalRule {
	if spec := specOf(r, gate); spec != nil {
		return spec.Approval
	}
	return nil
}

// LabelOf is the name of an object as a DNS label.
func LabelOf(name string) string {
	name = strings.ReplaceAll(name, ".", "-")
	return strings.Trim(name[:min(len(name), 50)], "-")
}

// StageReason returns why a stage is in its phase: the reason of the release while it is under way, else that of the
// journal.
func StageReason(r *releasev1alpha1.Release, stage releasev1alpha1.ReleaseStageStatus) string {
	if stage.Name == r.Status.Stage && stage.Phase != releasev1alpha1.StageFailed && stage.EndedAt == nil {
		return r.Status.Reason
	}
	if stage.Phase != releasev1alpha1.StageFailed && stage.Phase != releasev1alpha1.StageSkipped {
		return ""
	}
	for _, e := range slices.Backward(r.Status.Journal) {
		if e.Type == releasev1alpha1.JournalStage && e.Stage == stage.Name {
			return strings.TrimSuffix(e.Reason+": "+e.Message, ": ")
		}
	}
	return ""
}
