package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

var stateVerbs = map[releasev1alpha1.ReleaseState]string{
	releasev1alpha1.StateRun:      releasev1alpha1.VerbResume,
	releasev1alpha1.StatePause:    releasev1alpha1.VerbPause,
	releasev1alpha1.StateAbort:    releasev1alpha1.VerbAbort,
	releasev1alpha1.StateRollback: releasev1alpha1.VerbRollback,
}

// annotationVerbs are the annotations that need a verb of their own, in the order in which they are checked.
var annotationVerbs = []struct{ annotation, verb string }{
	{releasev1alpha1.SkipStageAnnotation, releasev1alpha1.VerbSkip},
	{releasev1alpha1.RetryAnnotation, releasev1alpha1.VerbRetry},
	{releasev1alpha1.BreakGlassAnnotation, releasev1alpha1.VerbBreakGlass},
}

// Right is a verb on a release that a write needs.
type Right struct {
	Verb string
	// For describes the write, such as "spec.state: Pause".
	For string
}

// RightsFor returns the verbs that a write of a release needs beside create, update or patch. old is nil for a new
// release. A change of anything but the state, annotationVerbs and the reason for them needs the verb update, also
// in a patch. So a user with patch and pause can pause a release and change nothing else.
func RightsFor(old, r *releasev1alpha1.Release) []Right {
	var rights []Right
	if old != nil && stateOf(old) != stateOf(r) {
		rights = append(rights, Right{stateVerbs[stateOf(r)], fmt.Sprintf("spec.state: %s", stateOf(r))})
	}
	for _, a := range annotationVerbs {
		was, had := "", false
		if old != nil {
			was, had = old.Annotations[a.annotation], hasAnnotation(old, a.annotation)
		}
		switch value, has := r.Annotations[a.annotation], hasAnnotation(r, a.annotation); {
		case has && (!had || value != was):
			rights = append(rights, Right{a.verb, fmt.Sprintf("the annotation %s: %s", a.annotation, value)})
		case had && !has:
			rights = append(rights, Right{a.verb, "to remove the annotation " + a.annotation})
		}
	}
	if old == nil {
		return rights
	}
	was, is := withoutVerbs(old), withoutVerbs(r)
	if len(rights) > 0 {
		delete(was.Annotations, releasev1alpha1.ReleaseReasonAnnotation)
		delete(is.Annotations, releasev1alpha1.ReleaseReasonAnnotation)
	}
	if !equality.Semantic.DeepEqual(was, is) {
		rights = append(rights, Right{"update", "a change of more than spec.state"})
	}
	return rights
}

func stateOf(r *releasev1alpha1.Release) releasev1alpha1.ReleaseState {
	return cmp.Or(r.Spec.State, releasev1alpha1.StateRun)
}

func hasAnnotation(r *releasev1alpha1.Release, key string) bool {
	_, ok := r.Annotations[key]
	return ok
}

// withoutVerbs is a copy of a release without what has a verb of its own, and without what the API server sets.
func withoutVerbs(r *releasev1alpha1.Release) *releasev1alpha1.Release {
	r = r.DeepCopy()
	r.ManagedFields, r.ResourceVersion, r.Generation = nil, "", 0
	r.Status = releasev1alpha1.ReleaseStatus{}
	r.Spec.State = ""
	for _, a := range annotationVerbs {
		delete(r.Annotations, a.annotation)
	}
	delete(r.Annotations, VerbsAnnotation) // the hub sets it
	return r
}

// CheckAnnotations checks the annotations that skip, retry and start a stage, where a write changes them: they name the
// stage under way and its attempt, and need a reason. old is nil for a new release.
func CheckAnnotations(old, r *releasev1alpha1.Release) field.ErrorList {
	var errs field.ErrorList
	status := releasev1alpha1.ReleaseStatus{}
	var before map[string]string
	if old != nil {
		status, before = old.Status, old.Annotations
	}
	annotations := field.NewPath("metadata", "annotations")
	for _, a := range annotationVerbs {
		value, has := r.Annotations[a.annotation]
		if was, had := before[a.annotation]; !has || had && was == value {
			continue
		}
		problem, doing := "", "to start a stage in spite of ReleaseGuards"
		if a.verb == releasev1alpha1.VerbBreakGlass {
			if want, ok := BreakGlassValue(status); !ok {
				problem = "the release does not wait for a ReleaseGuard"
			} else if value != want {
				problem = "must be " + want + ": the release waits with this stage"
			}
		} else {
			problem, doing = badStage(status, a.verb, value), "to "+a.verb+" a stage"
		}
		if problem != "" {
			errs = append(errs, field.Invalid(annotations.Key(a.annotation), value, problem))
		} else if strings.TrimSpace(r.Annotations[releasev1alpha1.ReleaseReasonAnnotation]) == "" {
			errs = append(errs, field.Required(annotations.Key(releasev1alpha1.ReleaseReasonAnnotation),
				doing+" needs a reason"))
		}
	}
	return errs
}

// badStage returns why the annotation for skip or retry may not have the value; empty if it may.
func badStage(status releasev1alpha1.ReleaseStatus, verb, value string) string {
	k, problem := stageUnderWay(status)
	if problem != "" {
		return problem
	}
	stage := status.Stages[k]
	switch want := stageAttempt(stage); {
	case value != want:
		return fmt.Sprintf("must be %s: the release is at stage %s, attempt %d", want, stage.Name, stage.Attempt)
	case verb == releasev1alpha1.VerbRetry && stage.Phase != releasev1alpha1.StageFailed:
		return fmt.Sprintf("stage %s has not failed: it is %s", stage.Name, stage.Phase)
	}
	return ""
}

// BreakGlassValue returns the value of BreakGlassAnnotation for a release that waits for guards: the stage and the
// attempt that wait. ok is false if it waits for none.
func BreakGlassValue(status releasev1alpha1.ReleaseStatus) (value string, ok bool) {
	k := currentStage(status.Stages)
	if status.Guard == nil || k == len(status.Stages) {
		return "", false
	}
	stage := status.Stages[k]
	stage.Attempt = max(stage.Attempt, 1) // it is not entered yet if the release is queued
	return stageAttempt(stage), true
}

// stageAttempt is the value of the annotations for a stage.
func stageAttempt(stage releasev1alpha1.ReleaseStageStatus) string {
	return fmt.Sprintf("%s@%d", stage.Name, stage.Attempt)
}

// stageUnderWay is the index of the stage under way of a release that runs or is paused. problem says why there is
// none.
func stageUnderWay(status releasev1alpha1.ReleaseStatus) (k int, problem string) {
	k = currentStage(status.Stages)
	switch phase := status.Phase; {
	case phase == "":
		return 0, "the release has not started"
	case phase != releasev1alpha1.ReleaseRunning && phase != releasev1alpha1.ReleasePaused:
		return 0, fmt.Sprintf("no stage is under way: the release is %s", phase)
	case k == len(status.Stages):
		return 0, "no stage is under way: all stages have ended"
	}
	return k, ""
}

// currentStage is the index of the stage under way; the number of stages when all have ended.
func currentStage(stages []releasev1alpha1.ReleaseStageStatus) int {
	if k := slices.IndexFunc(stages, func(stage releasev1alpha1.ReleaseStageStatus) bool {
		return stage.EndedAt == nil
	}); k >= 0 {
		return k
	}
	return len(stages)
}

// CheckApproval checks that an approval counts for what its release waits for now. The user of the approval is not
// checked; see MayApprove. gate is the gate of the approval, nil with an error.
func CheckApproval(r *releasev1alpha1.Release,
	a *releasev1alpha1.ReleaseApproval) (gate *releasev1alpha1.ReleaseGate, err *field.Error) {
	spec := field.NewPath("spec")
	k, problem := stageUnderWay(r.Status)
	if problem != "" {
		return nil, field.Invalid(spec.Child("release"), a.Spec.Release, problem)
	}
	if r.Status.Strategy == nil || k >= len(r.Status.Strategy.Stages) {
		return nil, field.InternalError(spec.Child("release"), fmt.Errorf("the release has no strategy for stage %d", k))
	}
	stage := r.Status.Stages[k]
	position := positionOf(a)
	if name, value := mismatch(r, r.Status.Revision, stage, a); name != "" {
		return nil, field.Invalid(spec.Child(name), value, fmt.Sprintf(
			"the release is at stage %s, attempt %d, revision %s, and has the uid %s", stage.Name, stage.Attempt,
			r.Status.Revision, r.UID))
	}
	gates := gatesAt(r.Status.Strategy.Stages[k], position)
	i := slices.IndexFunc(gates, func(g releasev1alpha1.ReleaseGate) bool { return g.Name == a.Spec.Gate })
	if i < 0 {
		return nil, field.Invalid(spec.Child("gate"), a.Spec.Gate, fmt.Sprintf("stage %s has no gate of this name %s it",
			stage.Name, strings.ToLower(string(position))))
	}
	if isCheck(gates[i]) {
		return nil, field.Invalid(spec.Child("gate"), a.Spec.Gate, fmt.Sprintf("ReleaseCheck %s opens the gate, and no user",
			gates[i].CheckRef.Name))
	}
	open := slices.IndexFunc(stage.Gates, func(g releasev1alpha1.ReleaseGateStatus) bool {
		return g.Name == a.Spec.Gate && g.Position == position
	})
	if open < 0 {
		return nil, field.Invalid(spec.Child("gate"), a.Spec.Gate, fmt.Sprintf(
			"the gate does not wait for approvals yet: stage %s is %s", stage.Name, stage.Phase))
	}
	if phase := stage.Gates[open].Phase; phase != releasev1alpha1.GateWaiting {
		return nil, field.Invalid(spec.Child("gate"), a.Spec.Gate,
			fmt.Sprintf("the gate does not wait for approvals any more: it is %s", phase))
	}
	return &gates[i], nil
}

// mismatch is the field of an approval, and its value, that differs from the release, its revision or its stage; empty
// if none does.
func mismatch(r *releasev1alpha1.Release, revision string, stage releasev1alpha1.ReleaseStageStatus,
	a *releasev1alpha1.ReleaseApproval) (name string, value any) {
	switch {
	case a.Namespace != r.Namespace || a.Spec.Release != r.Name:
		return "release", a.Spec.Release
	case a.Spec.ReleaseUID != r.UID:
		return "releaseUID", a.Spec.ReleaseUID
	case a.Spec.Revision != revision:
		return "revision", a.Spec.Revision
	case a.Spec.Stage != stage.Name:
		return "stage", a.Spec.Stage
	case max(a.Spec.Attempt, 1) != stage.Attempt:
		return "attempt", a.Spec.Attempt
	}
	return "", nil
}

func positionOf(a *releasev1alpha1.ReleaseApproval) releasev1alpha1.GatePosition {
	return cmp.Or(a.Spec.Position, releasev1alpha1.GateBefore)
}

// MayApprove returns why the verdict of a user does not count at a gate with the rule; empty if it counts. If the
// author of the release is not known, everybody counts as another user.
func MayApprove(r *releasev1alpha1.Release, rule *releasev1alpha1.ReleaseApprovalRule,
	by releasev1alpha1.ReleaseUser) string {
	if rule == nil {
		return ""
	}
	if author := r.Spec.CreatedBy; rule.NotAuthor && author != nil && author.User == by.User {
		return fmt.Sprintf("%s created the release: another user must approve it", by.User)
	}
	if len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(subject releasev1alpha1.ReleaseSubject) bool {
		return isSubject(subject, r.Namespace, by)
	}) {
		return ""
	}
	return fmt.Sprintf("%s is none of those who may approve at this gate: %s", by.User, subjects(rule.From))
}

// subjects names subjects, such as "User ada, Group leads".
func subjects(all []releasev1alpha1.ReleaseSubject) string {
	names := make([]string, len(all))
	for i, subject := range all {
		names[i] = subject.Kind + " " + subject.Name
	}
	return strings.Join(names, ", ")
}

// isSubject reports whether a user is the subject, or in its group.
func isSubject(subject releasev1alpha1.ReleaseSubject, namespace string, by releasev1alpha1.ReleaseUser) bool {
	switch subject.Kind {
	case "User":
		return subject.Name == by.User
	case "Group":
		return slices.Contains(by.Groups, subject.Name)
	case "ServiceAccount":
		name := subject.Name
		if !strings.Contains(name, ":") {
			name = namespace + ":" + name
		}
		return by.User == "system:serviceaccount:"+name
	}
	return false
}

// DuplicateTarget names two targets that are the same workload, by their index; ok is false if there are none.
func DuplicateTarget(targets []releasev1alpha1.ReleaseTarget) (first, second int, ok bool) {
	for second = range targets {
		for first = range second {
			if sameTarget(targets[first].Ref, targets[second].Ref) {
				return first, second, true
			}
		}
	}
	return 0, 0, false
}
