package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// One report has every condition, so that the controller writes the status once.
func TestReportHasAllConditionsOfAPass(t *testing.T) {
	revise := &interpret.Error{Operation: configv1alpha1.InterpreterOperationReviseReplica, About: "revise",
		Cause: errors.New("line 3")}
	bad := Decision{
		Results: []Result{
			{Cluster: "m1", Err: &kruise.Lossy{Kind: "StatefulSet", APIVersion: "v1", Fields: []string{"spec.x"}}},
			{Cluster: "m2", Err: revise}},
		Conditions: []fleet.Condition{{Type: fleet.FleetHalted, Message: "halted"}},
		Pulling:    []string{"m1 pulls"},
	}
	began, later := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	other := metav1.Condition{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, LastTransitionTime: began}
	problems := []string{workv1alpha2.VersionServed, workv1alpha2.ImagesPulled, workv1alpha2.SidecarsInForce,
		workv1alpha2.WorksWritten}

	if got := (Decision{}).Report([]metav1.Condition{other}, nil, nil, began); len(got) != 1 {
		t.Errorf("without a failure, conditions were added: %+v", got)
	}
	conditions := bad.Report([]metav1.Condition{other}, []string{"m1 waits"}, []string{"too large"}, began)
	for _, kind := range append(problems, string(configv1alpha1.InterpreterOperationReviseReplica)) {
		if c := meta.FindStatusCondition(conditions, kind); c == nil || c.Status != metav1.ConditionFalse || c.Message == "" {
			t.Errorf("%s is %+v, want False", kind, c)
		}
	}
	if !meta.IsStatusConditionTrue(conditions, fleet.FleetHalted) || len(conditions) != 7 {
		t.Errorf("conditions %+v, want FleetHalted and 7 in all", conditions)
	}
	again := bad.Report(conditions, []string{"m1 waits"}, []string{"too large"}, later)
	if !slices.Equal(again, conditions) {
		t.Errorf("the same report changed the conditions to %+v", again)
	}

	failed := Decision{Err: errors.New("no")}.Report(conditions, nil, []string{"no"}, later)
	for i, c := range failed {
		if c.Type != workv1alpha2.WorksWritten && c != conditions[i] {
			t.Errorf("a decision that failed as a whole changed %s to %+v", c.Type, c)
		}
	}
	if c := meta.FindStatusCondition(failed, workv1alpha2.WorksWritten); c.Message != "no" {
		t.Errorf("WorksWritten is %+v", c)
	}

	good := Decision{}.Report(conditions, nil, nil, later)
	for _, kind := range problems {
		if c := meta.FindStatusCondition(good, kind); c == nil || c.Status != metav1.ConditionTrue ||
			!c.LastTransitionTime.Equal(&later) {
			t.Errorf("%s is %+v, want True since the failure ended", kind, c)
		}
	}
	if len(good) != 1+len(problems) {
		t.Errorf("conditions %+v, want no condition of the fleet or of an interpreter", good)
	}
}

func TestAnnotationsRecordStateMissingInWorks(t *testing.T) {
	got := Decision{Progress: "2", Routed: "m1"}.Annotations(map[string]string{"a": "b",
		wellknown.OrdinalsAnnotation:        "old",
		wellknown.RolloutProgressAnnotation: "1"})
	want := map[string]string{"a": "b", wellknown.RolloutProgressAnnotation: "2", wellknown.RoutedToAnnotation: "m1"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("annotations %v, want %v", got, want)
	}
	if got := (Decision{}).Annotations(nil); got != nil {
		t.Errorf("annotations %v, want none", got)
	}
}

func TestConditionReviseReplicaNamesTheClusters(t *testing.T) {
	const revise = configv1alpha1.InterpreterOperationReviseReplica
	fails := func(cluster string, operation configv1alpha1.InterpreterOperation) Result {
		return Result{Cluster: cluster,
			Err: fmt.Errorf("make the work: %w",
				&interpret.Error{Operation: operation, About: "revise c", Cause: errors.New("line 3")})}
	}
	for _, tc := range []struct {
		results []Result
		want    string
	}{
		{[]Result{{Cluster: "a"}, fails("b", configv1alpha1.InterpreterOperationRetain)}, ""},
		{[]Result{{Cluster: "a"}, fails("b", revise)}, `cluster "b": revise c: line 3`},
		{[]Result{fails("a", revise), fails("b", revise)}, `clusters ["a" "b"]: revise c: line 3`},
		{[]Result{fails("a", revise), fails("b", revise), fails("c", revise), fails("d", revise),
			fails("e", revise)}, `clusters ["a" "b" "c"] and 2 more: revise c: line 3`},
	} {
		err := Decision{Results: tc.results}.unrevised()
		if got := fmt.Sprint(err); err != nil && got != tc.want || err == nil && tc.want != "" {
			t.Errorf("got %s, want %s", got, tc.want)
		}
		if (interpret.FaultOf(err, revise) != nil) != (tc.want != "") {
			t.Errorf("%v: no fault of ReviseReplica", err)
		}
	}
}
