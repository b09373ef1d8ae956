package why

import (
	"github.com/argosy-io/argosy/internal/core/propagate"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestWaitingReleaseIsAFindingOfItsWorkload(t *testing.T) {
	template := &unstructured.Unstructured{}
	template.SetAPIVersion("apps.kruise.io/v1beta1")
	template.SetKind("CloneSet")
	template.SetNamespace("shop")
	template.SetName("web")
	rel := func(name, workload string, phase releasev1alpha1.ReleasePhase, reason string) releasev1alpha1.Release {
		r := releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		r.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
			APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: workload}}}
		r.Status.Phase, r.Status.Reason = phase, reason
		r.Status.Conditions = []metav1.Condition{{Type: releasev1alpha1.ReleaseProgressing,
			Status: metav1.ConditionFalse, Reason: reason, Message: "gates sign of stage prod"},
			{Type: releasev1alpha1.ReleaseRevisionChanged, Status: metav1.ConditionTrue,
				Message: "6 replicas of cluster a moved to b, which runs revision R2"}}
		return r
	}
	answer := Explain(Facts{Observed: propagate.Observed{Template: template}, Releases: []releasev1alpha1.Release{
		rel("r4", "web", releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure),
		rel("r3", "web", releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval),
		rel("r2", "web", releasev1alpha1.ReleaseSucceeded, ""),
		rel("r1", "db", releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval),
	}})
	var got []Finding
	for _, f := range answer.Findings {
		if strings.HasPrefix(f.What, "release ") {
			got = append(got, f)
		}
	}
	if len(got) != 2 || got[0].Severity != Problem || !strings.HasPrefix(got[0].What, "release r4: it is paused") ||
		got[1].Severity != Attention || got[1].What !=
		"release r3: it waits for approval: gates sign of stage prod; 6 replicas of cluster a moved to b, which runs "+
			"revision R2 (WaitingForApproval)" ||
		got[1].Next != "`argosy release approve r3 -n shop`" {
		t.Errorf("the findings are %+v", got)
	}
}

func TestReleaseWaitingForACheckShowsItsLastSample(t *testing.T) {
	template := &unstructured.Unstructured{}
	template.SetAPIVersion("apps.kruise.io/v1beta1")
	template.SetKind("CloneSet")
	template.SetNamespace("shop")
	template.SetName("web")
	r := releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r1"}}
	r.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}}}
	r.Status.Phase, r.Status.Reason = releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonCheckUnavailable
	r.Status.Conditions = []metav1.Condition{{Type: releasev1alpha1.ReleaseProgressing, Status: metav1.ConditionFalse,
		Reason: releasev1alpha1.ReasonCheckUnavailable}}
	r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{{Name: "prod", Phase: releasev1alpha1.StageChecking, Attempt: 1,
		Gates: []releasev1alpha1.ReleaseGateStatus{{Name: "errors", Phase: releasev1alpha1.GateWaiting,
			Check: &releasev1alpha1.ReleaseCheckStatus{Name: "c", Verdict: releasev1alpha1.CheckError,
				Message: "the server answers 503"}}}}}
	facts := Facts{Observed: propagate.Observed{Template: template}, Releases: []releasev1alpha1.Release{r}}
	for _, f := range Explain(facts).Findings {
		if f.Severity == Attention && strings.Contains(f.What, "release r1: it waits for checks that have no result: "+
			"errors of stage prod (Error, last the server answers 503)") && strings.Contains(f.Next, "argosy release skip r1") {
			return
		}
	}
	t.Error("no finding names the check")
}

func TestAutoscalerThatAReleaseFreezesWaits(t *testing.T) {
	template := &unstructured.Unstructured{}
	template.SetAPIVersion("apps.kruise.io/v1beta1")
	template.SetKind("CloneSet")
	template.SetNamespace("shop")
	template.SetName("web")
	f := autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "by-load"}}
	f.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps.kruise.io/v1alpha1",
		Kind: "CloneSet", Name: "web"}
	f.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.AbleToScale,
		Status: corev1.ConditionFalse, Reason: autoscalingv1alpha1.ReasonFrozen,
		Message: "release r1 has autoscaling: Freeze"}}
	var got []Finding
	facts := Facts{Observed: propagate.Observed{Template: template}, Scalers: []autoscalingv1alpha1.FederatedHPA{f}}
	for _, finding := range Explain(facts).Findings {
		if strings.Contains(finding.What, "FederatedHPA") {
			got = append(got, finding)
		}
	}
	if len(got) != 1 || got[0].Severity != Waiting ||
		got[0].What != "FederatedHPA by-load waits: release r1 has autoscaling: Freeze" {
		t.Errorf("the findings are %+v", got)
	}
}
