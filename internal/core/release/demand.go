package release

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/finding"
)

// Actor is who must act on a release.
type Actor string

// The actors.
const (
	// NoActor: the release goes on by itself, waits as requested, or has ended.
	NoActor Actor = ""
	// User is whoever releases the workload.
	User Actor = "User"
	// Approver may approve a gate.
	Approver Actor = "Approver"
	// Operator looks after clusters, checks and ReleaseGuards.
	Operator Actor = "Operator"
)

// Demand is an action that a release needs from people.
type Demand struct {
	Actor Actor
	// Severity is Waiting without an actor, Problem if the release goes on only after the actor did something, and
	// otherwise Attention.
	Severity finding.Severity
	// Reason decides it: that of a condition; empty for a release that the hub has not seen.
	Reason string
	// What the release waits for, or its end. Next is the action of the actor; empty if there is nothing to do.
	What, Next string
	// Since is when the release began to wait for that; zero if that is not known.
	Since metav1.Time
}

// rule is the demand that follows from a reason. next is for reasons for which Waits has no command.
type rule struct {
	actor    Actor
	severity finding.Severity
	next     string
}

// demandRule returns the rule of a reason of a condition of releases. Without a rule of its own, the release goes on by
// itself, waits as requested, or has ended.
func demandRule(reason string) rule {
	switch reason {
	case releasev1alpha1.ReasonWaitingForApproval:
		return rule{actor: Approver, severity: finding.Attention}
	case releasev1alpha1.ReasonPausedByFailure, releasev1alpha1.ReasonRollbackFailed,
		releasev1alpha1.ReasonStrategyNotFound, releasev1alpha1.ReasonTargetNotHeld, releasev1alpha1.ReasonStagesEmpty,
		releasev1alpha1.ReasonClustersUnassigned, releasev1alpha1.ReasonCheckNotFound,
		// A record of a direct change.
		releasev1alpha1.ReasonCopyUnhealthy, releasev1alpha1.ReasonPodsFailed, releasev1alpha1.ReasonRefused,
		releasev1alpha1.ReasonDeadlineExceeded, releasev1alpha1.ReasonGateFailed, releasev1alpha1.ReasonCheckFailed:
		return rule{actor: User, severity: finding.Problem}
	case releasev1alpha1.ReasonTargetNotFound:
		return rule{User, finding.Problem, "create the workload and its policy again, or abort the release"}
	case releasev1alpha1.ReasonRevisionNotFound:
		return rule{User, finding.Problem, "restore the ReleaseRevision, or start a release of another revision"}
	case releasev1alpha1.ReasonFleetHalted:
		return rule{User, finding.Problem, "undo that change of the template, or abort the release"}
	case releasev1alpha1.ReasonConfigMapRefused:
		return rule{User, finding.Problem, "fix the reason; the hub tries again each minute"}
	case releasev1alpha1.ReasonInternalError:
		return rule{Operator, finding.Problem, "abort the release, and report it with `argosy release status -o json`"}
	case releasev1alpha1.ReasonNotRolledBack:
		return rule{User, finding.Attention, "start a release of another revision, and delete this one"}
	case releasev1alpha1.ReasonCheckInconclusive, releasev1alpha1.ReasonCheckUnavailable:
		return rule{actor: User, severity: finding.Attention}
	case releasev1alpha1.ReasonClusterUnreachable:
		return rule{Operator, finding.Attention, "`argosy status` shows why"}
	case releasev1alpha1.ReasonErrorBudgetUnknown:
		return rule{actor: Operator, severity: finding.Attention}
	case releasev1alpha1.ReasonMemberChanged:
		return rule{Operator, finding.Attention, "stop the client that changes it; `argosy why` names the fields"}
	}
	return rule{severity: finding.Waiting}
}

// DemandOf decides who must act on a release, and how urgent that is.
func DemandOf(r *releasev1alpha1.Release) Demand {
	if r.DeletionTimestamp != nil {
		return Demand{Severity: finding.Waiting, What: "it is being deleted"}
	}
	c := decisive(r)
	must := demandRule(c.Reason)
	d := Demand{Actor: must.actor, Severity: must.severity, Reason: c.Reason, Since: c.LastTransitionTime}
	d.What, d.Next = Waits(r)
	d.Next = cmp.Or(d.Next, must.next)
	return d
}

// decisive returns the condition of a release that decides who must act.
func decisive(r *releasev1alpha1.Release) metav1.Condition {
	progressing := conditionOf(&r.Status, releasev1alpha1.ReleaseProgressing)
	switch progressing.Reason {
	case releasev1alpha1.ReasonFinished:
		return conditionOf(&r.Status, releasev1alpha1.ReleaseConditionSucceeded)
	case releasev1alpha1.ReasonNotRolledBack, releasev1alpha1.ReasonCatchingUp:
		return progressing
	}
	other := conditionOf(&r.Status, releasev1alpha1.ReleaseDrifted)
	healthy := conditionOf(&r.Status, releasev1alpha1.ReleaseHealthy)
	if IsRecord(r) && healthy.Status == metav1.ConditionFalse {
		other = healthy
	}
	if must := demandRule(progressing.Reason); must.actor == NoActor && other.Reason != "" {
		if must := demandRule(other.Reason); must.actor != NoActor {
			return other
		}
	}
	return progressing
}

// conditionOf returns a condition of a release; the zero value if there is none.
func conditionOf(status *releasev1alpha1.ReleaseStatus, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
