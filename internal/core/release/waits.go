package release

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// Waits describes what a release waits for or how it ended, for people, and replicas that run another revision. next
// tells users how to continue; it is empty if there is nothing to do.
func Waits(r *releasev1alpha1.Release) (what, next string) {
	what, next = waits(r)
	for _, kind := range []string{releasev1alpha1.ReleaseRevisionChanged, releasev1alpha1.ReleaseDrifted} {
		if c := conditionOf(&r.Status, kind); c.Message != "" {
			what += "; " + c.Message
		}
	}
	return what, cmp.Or(next, demandRule(decisive(r).Reason).next)
}

// waits is Waits without the replicas, and without a next step where the rule of the reason has one.
func waits(r *releasev1alpha1.Release) (what, next string) {
	run := func(verb string, flags ...string) string {
		words := append([]string{verb, r.Name, "-n", r.Namespace}, flags...)
		return fmt.Sprintf("`argosy release %s`", strings.Join(words, " "))
	}
	const because = "--reason TEXT"
	s := &r.Status
	progressing, succeeded := conditionOf(&r.Status, releasev1alpha1.ReleaseProgressing),
		conditionOf(&r.Status, releasev1alpha1.ReleaseConditionSucceeded)
	if accepted := conditionOf(&r.Status, releasev1alpha1.ReleaseAccepted); accepted.Status == metav1.ConditionFalse {
		if s.Phase == releasev1alpha1.ReleasePending {
			next := fmt.Sprintf("fix the reason within %.0f s of its creation, or start another release", missingGrace.Seconds())
			if startedByHub(r) {
				next = "fix the reason; the release then continues"
			}
			return "it waits to be accepted: " + reasonAnd(accepted), next
		}
		return "it was refused: " + reasonAnd(accepted), "fix the reason, then start another release"
	}
	if progressing.Reason == releasev1alpha1.ReasonNotRolledBack {
		return fmt.Sprintf("it is %s, and cannot be rolled back: %s", s.Phase, progressing.Message), ""
	}
	if IsRecord(r) {
		return recordWaits(s.Phase, conditionOf(&r.Status, releasev1alpha1.ReleaseHealthy), succeeded)
	}
	switch s.Phase {
	case "", releasev1alpha1.ReleasePending:
		if progressing.Reason == releasev1alpha1.ReasonConfigMapRefused {
			break
		}
		return "the hub has not accepted it yet", ""
	case releasev1alpha1.ReleaseSucceeded:
		if progressing.Reason == releasev1alpha1.ReasonCatchingUp {
			return "it has succeeded; clusters that were lost or that joined are updated now", ""
		}
		if message := keptMessage(s); message != "" {
			return "it has succeeded; " + message, "start another release to update them"
		}
		return "it has succeeded", ""
	case releasev1alpha1.ReleaseRolledBack:
		what = "it was rolled back"
		if s.Rollback != nil {
			what += ": " + s.Rollback.Reason
		}
		return what, "fix the change, then start a release of another revision"
	case releasev1alpha1.ReleaseAborted:
		next = "start another release"
		if (Input{Release: r}).rollbackObstacle() == "" {
			next += ", or go back: " + run("rollback")
		}
		return "it was aborted; pods stay as they are, new and old", next
	case releasev1alpha1.ReleaseSuperseded:
		return strings.TrimSpace("it was replaced " + succeeded.Message), ""
	case releasev1alpha1.ReleaseFailed:
		if s.Rollback != nil {
			return "it has failed: " + reasonAnd(succeeded), "fix the reason, then go back again: " + run("rollback") +
				"; or start another release, and delete this one"
		}
		return "it has failed: " + reasonAnd(succeeded), "fix the reason, then start another release"
	}
	switch progressing.Reason {
	case releasev1alpha1.ReasonQueued:
		return "it is queued: " + progressing.Message, ""
	case releasev1alpha1.ReasonWaitingForApproval:
		what = "it waits for approval: " + progressing.Message
		if who := approvers(r); who != "" {
			what += "; " + who
		}
		return what, run("approve")
	case releasev1alpha1.ReasonFrozen, releasev1alpha1.ReasonOutsideWindow, releasev1alpha1.ReasonLimitReached,
		releasev1alpha1.ReasonErrorBudgetSpent, releasev1alpha1.ReasonErrorBudgetUnknown:
		next = "wait"
		if progressing.Reason == releasev1alpha1.ReasonErrorBudgetUnknown {
			next = "fix the slo of the ReleaseGuard or what it asks"
		}
		return "it waits: " + progressing.Message, next + ", or as an emergency " + run("break-glass", because)
	case releasev1alpha1.ReasonPausedByUser:
		return "a user has paused it", run("resume")
	case releasev1alpha1.ReasonPausedByFailure:
		return "it is paused: " + progressing.Message, fmt.Sprintf("fix the reason, then %s; or go back: %s",
			run("retry", because), run("rollback"))
	case releasev1alpha1.ReasonClusterUnreachable:
		return "clusters do not answer: " + progressing.Message, ""
	case releasev1alpha1.ReasonSoaking:
		what = "stage " + s.Stage + " must stay healthy"
		if s.SoakUntil != nil {
			what += " until " + s.SoakUntil.UTC().Format(time.RFC3339)
		}
		return what, ""
	case releasev1alpha1.ReasonRollingBack:
		what = "it goes back to the former revision"
		if s.Rollback != nil {
			what += ": " + s.Rollback.Reason
		}
		if progressing.Message != "" {
			what += "; it waits: " + progressing.Message
		}
		return what, ""
	case releasev1alpha1.ReasonChecking:
		return "it waits for checks: " + waitingChecks(r), ""
	case releasev1alpha1.ReasonCheckInconclusive, releasev1alpha1.ReasonCheckUnavailable:
		return "it waits for checks that have no result: " + waitingChecks(r), fmt.Sprintf(
			"fix the ReleaseCheck or what it asks; or end the stage: %s; or go back: %s",
			run("skip", because), run("rollback"))
	case releasev1alpha1.ReasonDependencyNotReady:
		return progressing.Message, ""
	case releasev1alpha1.ReasonStageUpdating:
		return "stage " + s.Stage + " is under way", ""
	}
	if demandRule(progressing.Reason).actor != NoActor {
		return "it waits: " + progressing.Message, ""
	}
	return reasonAnd(progressing), ""
}

func waitingChecks(r *releasev1alpha1.Release) string {
	var all []string
	for _, c := range CheckCalls(r) {
		one := fmt.Sprintf("%s of stage %s", c.Gate, c.Stage)
		if detail := CheckText(&c.Status); detail != "" {
			one += " (" + detail + ")"
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return "stage " + r.Status.Stage
	}
	return strings.Join(all, ", ")
}

// recordWaits is Waits of a record. No command changes what it observes.
func recordWaits(phase releasev1alpha1.ReleasePhase, healthy, succeeded metav1.Condition) (what, next string) {
	const undo = "to undo the change, revert the template"
	switch phase {
	case releasev1alpha1.ReleaseSucceeded:
		return "all clusters have the change, which was sent to them at once", ""
	case releasev1alpha1.ReleaseSuperseded:
		return strings.TrimSpace("it was replaced " + succeeded.Message), ""
	case releasev1alpha1.ReleaseAborted:
		return "it was aborted: the change is no longer observed", ""
	case releasev1alpha1.ReleaseFailed:
		return "it has failed: " + reasonAnd(succeeded), undo
	}
	what = "the change was sent to clusters at once, and is observed until all have it"
	if healthy.Status == metav1.ConditionFalse {
		return what + "; " + reasonAnd(healthy), undo
	}
	return what, ""
}

func reasonAnd(c metav1.Condition) string {
	return strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
}

// StageUnderWay is the stage that a release is in; nil before the first stage and after the last one.
func StageUnderWay(r *releasev1alpha1.Release) *releasev1alpha1.ReleaseStageStatus {
	if k := currentStage(r.Status.Stages); k < len(r.Status.Stages) && r.Status.Stages[k].Attempt > 0 {
		return &r.Status.Stages[k]
	}
	return nil
}
