package release

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/finding"
)

// ofRelease finds the condition in the directive of a reason.
var ofRelease = regexp.MustCompile(`(?m)^//reference:reason (\w+) of Release$`)

// reasonsOfReleases returns the reasons of the conditions of releases with their condition, from the source of the API.
func reasonsOfReleases(t *testing.T) map[string]string {
	t.Helper()
	reasons := map[string]string{}
	paths, err := filepath.Glob("../../../api/release/v1alpha1/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, is := d.(*ast.GenDecl)
			if !is || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if !strings.HasPrefix(value.Names[0].Name, "Reason") {
					continue
				}
				for _, doc := range []*ast.CommentGroup{value.Doc, group.Doc} {
					if doc == nil {
						continue
					}
					var lines []string
					for _, c := range doc.List { // Text omits directives
						lines = append(lines, c.Text)
					}
					if found := ofRelease.FindStringSubmatch(strings.Join(lines, "\n")); found != nil {
						reason, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
						if err != nil {
							t.Fatal(err)
						}
						reasons[reason] = found[1]
						break
					}
				}
			}
		}
	}
	return reasons
}

var began = metav1.NewTime(time.Unix(1_800_000_000, 0))

// releaseWith returns a release whose condition has a reason, as the hub writes it.
func releaseWith(condition, reason string) *releasev1alpha1.Release {
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-7"}}
	set := func(kind string, status metav1.ConditionStatus, reason string) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			Message: "the message", LastTransitionTime: began})
	}
	r.Status.Phase = releasev1alpha1.ReleaseRunning
	progressing := releasev1alpha1.ReasonStageUpdating
	switch condition {
	case releasev1alpha1.ReleaseAccepted:
		set(condition, metav1.ConditionFalse, reason)
		r.Status.Phase, progressing = releasev1alpha1.ReleasePending, reason
	case releasev1alpha1.ReleaseProgressing:
		progressing = reason
		if reason == releasev1alpha1.ReasonFinished || reason == releasev1alpha1.ReasonNotRolledBack ||
			reason == releasev1alpha1.ReasonCatchingUp {
			r.Status.Phase = releasev1alpha1.ReleaseSucceeded
		}
	case releasev1alpha1.ReleaseConditionSucceeded:
		set(condition, metav1.ConditionFalse, reason)
		if reason != releasev1alpha1.ReasonUnderWay {
			r.Status.Phase, progressing = releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonFinished
		}
	case releasev1alpha1.ReleaseHealthy: // of a record: another release is paused or rolled back
		set(condition, metav1.ConditionFalse, reason)
		r.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerDirect}
	default:
		set(condition, metav1.ConditionTrue, reason)
	}
	set(releasev1alpha1.ReleaseProgressing, metav1.ConditionFalse, progressing)
	return r
}

// A new reason needs a rule before this test passes.
func TestEveryReasonHasOneActorSeverityAndNextStep(t *testing.T) {
	waits := map[string]struct {
		Actor
		finding.Severity
	}{
		"WaitingForApproval": {Approver, finding.Attention},
		"PausedByFailure":    {User, finding.Problem}, "RollbackFailed": {User, finding.Problem},
		"StrategyNotFound": {User, finding.Problem}, "TargetNotHeld": {User, finding.Problem},
		"StagesEmpty": {User, finding.Problem}, "ClustersUnassigned": {User, finding.Problem},
		"CheckNotFound": {User, finding.Problem}, "TargetNotFound": {User, finding.Problem},
		"RevisionNotFound": {User, finding.Problem}, "FleetHalted": {User, finding.Problem},
		"ConfigMapRefused": {User, finding.Problem}, "CopyUnhealthy": {User, finding.Problem},
		"PodsFailed": {User, finding.Problem}, "Refused": {User, finding.Problem},
		"DeadlineExceeded": {User, finding.Problem}, "GateFailed": {User, finding.Problem},
		"CheckFailed": {User, finding.Problem}, "NotRolledBack": {User, finding.Attention},
		"CheckInconclusive": {User, finding.Attention}, "CheckUnavailable": {User, finding.Attention},
		"ClusterUnreachable": {Operator, finding.Attention}, "ErrorBudgetUnknown": {Operator, finding.Attention},
		"MemberChanged": {Operator, finding.Attention}, "InternalError": {Operator, finding.Problem},
	}
	waitsForNone := strings.Fields(`
		Planned StageUpdating Soaking Checking RollingBack CatchingUp Queued DependencyNotReady UnderWay AsExpected NotObserved
		PausedByUser OutsideWindow Frozen LimitReached ErrorBudgetSpent
		Finished Completed RolledBack Incomplete Aborted Superseded Rejected TargetReplaced KindNotStaged PlanTooLarge
		AnnotationsPresent ForeignRollout PartitionOverridden RevisionBlocked SameRevision AnotherUnderWay DependencyCycle
		ConfigNotPropagated ConfigMapTaken ConfigMapNotFound
		TemplateChanged OverrideChanged Stored DatabaseUnavailable NoDatabase Behind`)
	reasons := reasonsOfReleases(t)
	if len(reasons) < 60 {
		t.Fatalf("%d reasons are found", len(reasons))
	}
	for reason, condition := range reasons {
		want, must := waits[reason]
		if !must {
			if !slices.Contains(waitsForNone, reason) {
				t.Errorf("%s of %s has no rule: who must act?", reason, condition)
			}
			want.Severity = finding.Waiting
		}
		delete(waits, reason)
		d := DemandOf(releaseWith(condition, reason))
		if d.Actor != want.Actor || d.Severity != want.Severity || d.What == "" || must && d.Next == "" {
			t.Errorf("%s of %s: %+v, want %q with %s and what and next", reason, condition, d, want.Actor, want.Severity)
		}
		if must && (d.Reason != reason || !d.Since.Equal(&began) || !strings.Contains(d.What, "the message") &&
			!strings.HasPrefix(reason, "Check")) {
			t.Errorf("%s of %s: the demand is %+v", reason, condition, d)
		}
	}
	for reason := range waits {
		t.Errorf("%s is no reason of releases", reason)
	}
}

func TestReleaseWithoutAnActor(t *testing.T) {
	deleted := releaseWith(releasev1alpha1.ReleaseProgressing, releasev1alpha1.ReasonPausedByFailure)
	deleted.DeletionTimestamp = &began
	catchingUp := releaseWith(releasev1alpha1.ReleaseProgressing, releasev1alpha1.ReasonCatchingUp)
	catchingUp.Status.Conditions = append(catchingUp.Status.Conditions, metav1.Condition{
		Type: releasev1alpha1.ReleaseConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Completed"})
	for name, r := range map[string]*releasev1alpha1.Release{
		"new": {}, "deleted": deleted, "catching up": catchingUp,
		"a later reason": releaseWith(releasev1alpha1.ReleaseProgressing, "FromALaterVersion"),
	} {
		if d := DemandOf(r); d.Actor != NoActor || d.Severity != finding.Waiting || d.What == "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A rollback that cannot go on says so, although its reason is RollingBack.
func TestRollbackNamesWhatItWaitsFor(t *testing.T) {
	if d := DemandOf(releaseWith(releasev1alpha1.ReleaseProgressing, releasev1alpha1.ReasonRollingBack)); d.What !=
		"it goes back to the former revision; it waits: the message" {
		t.Errorf("it says %q", d.What)
	}
}
