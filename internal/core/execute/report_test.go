package execute_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

const reportedConfigMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: default}
data: {a: b}
`

var reportTime = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)

// withCondition gives a Work one more condition of generation 2, which is not the Work's generation.
func withCondition(kind string, status metav1.ConditionStatus, reason string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) {
		meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			ObservedGeneration: 2, Message: "before"})
	}
}

// withReport gives a Work the last report of its object.
func withReport(w *workv1alpha1.Work) {
	w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}}
}

// summary lists the conditions as "Type=Status Reason generation", sorted, and the reported health.
func summary(w workv1alpha1.WorkStatus) string {
	var lines []string
	for _, c := range w.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s %d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
	}
	slices.Sort(lines)
	for _, m := range w.ManifestStatuses {
		lines = append(lines, "health "+string(m.Health))
	}
	return strings.Join(lines, "\n")
}

func TestReport(t *testing.T) {
	manifest := object(t, reportedConfigMap)
	healthy := &execute.Reading{Object: manifest, Health: interpret.Healthy}
	rejected := &execute.Failure{Cause: errors.New("no"), Reason: workv1alpha1.ReasonRejected, Message: "no"}
	silent := &execute.Failure{Cause: errors.New("no"), Reason: workv1alpha1.ReasonUnreachable, Message: "no",
		Unreachable: true}
	type changes = []func(*workv1alpha1.Work)
	for name, test := range map[string]struct {
		work    changes
		outcome execute.Outcome
		want    string
	}{
		"a new object was created": {changes{unapplied}, execute.Outcome{Reading: healthy}, `
Applied=True AppliedSuccessful 3
Dispatching=True Dispatching 0
health Healthy`},
		"the object was applied after a failure": {
			changes{withCondition(workv1alpha1.WorkApplied, metav1.ConditionFalse, workv1alpha1.ReasonAppliedFailed),
				withCondition(workv1alpha1.WorkFailure, metav1.ConditionTrue, workv1alpha1.ReasonRejected),
				withCondition(workv1alpha1.WorkHandsOff, metav1.ConditionTrue, workv1alpha1.ReasonHandsOff),
				withCondition(workv1alpha1.WorkHeldAfterRestore, metav1.ConditionTrue, workv1alpha1.ReasonRestored),
				withCondition(workv1alpha1.WorkContested, metav1.ConditionTrue, workv1alpha1.ReasonChangedRepeatedly),
				withCondition(workv1alpha1.WorkScaledByMember, metav1.ConditionTrue, workv1alpha1.ReasonAutoscaled)},
			execute.Outcome{Reading: healthy}, `
Applied=True AppliedSuccessful 3
Dispatching=True Dispatching 0
health Healthy`},
		"an autoscaler scales it, and somebody changes it": {nil,
			execute.Outcome{Reading: healthy, ScaledBy: "an autoscaler", Contested: "a user"}, `
Applied=True AppliedSuccessful 3
Contested=True ChangedRepeatedly 0
Dispatching=True Dispatching 0
ScaledByMember=True Autoscaled 0
health Healthy`},
		"the object is another Work's": {changes{withReport}, execute.Outcome{}, `
Applied=True AppliedSuccessful 3
Dispatching=True Dispatching 0`},
		"its health cannot be read": {changes{withReport},
			execute.Outcome{Reading: &execute.Reading{Object: manifest, Health: interpret.Unknown,
				HealthErr: errors.New("no script")}}, `
Applied=True AppliedSuccessful 3
Dispatching=True Dispatching 0
InterpretHealth=False InterpreterFailed 0
health Unknown`},
		"its status cannot be read": {changes{withReport},
			execute.Outcome{Reading: &execute.Reading{Object: manifest, Health: interpret.Degraded,
				StatusErr: errors.New("no script")}}, `
Applied=True AppliedSuccessful 3
Dispatching=True Dispatching 0
InterpretStatus=False InterpreterFailed 0
health Healthy`},
		"it was suspended before it was applied": {changes{unapplied, suspended}, execute.Outcome{}, `
Dispatching=False SuspendDispatching 0`},
		"it was suspended while a user kept the hub off": {
			changes{suspended, withCondition(workv1alpha1.WorkFailure, metav1.ConditionTrue, workv1alpha1.ReasonHandsOff)},
			execute.Outcome{Reading: healthy}, `
Applied=True  3
Dispatching=False SuspendDispatching 0
health Healthy`},
		"it was suspended after a rejection": {
			changes{suspended, withCondition(workv1alpha1.WorkFailure, metav1.ConditionTrue, workv1alpha1.ReasonRejected)},
			execute.Outcome{Reading: healthy}, `
Applied=True  3
Dispatching=False SuspendDispatching 0
Failure=True Rejected 2
health Healthy`},

		"hands off what is applied": {nil, execute.Outcome{Reading: healthy, HandsOff: "the annotation"}, `
Applied=True  3
Dispatching=True Dispatching 0
HandsOff=True HandsOff 3
health Healthy`},
		"hands off before this generation was applied": {changes{changed},
			execute.Outcome{Reading: healthy, HandsOff: "the annotation"}, `
Applied=False HandsOff 3
Dispatching=True Dispatching 0
Failure=True HandsOff 3
HandsOff=True HandsOff 4
health Healthy`},
		"hands off a repair that was rejected": {
			changes{withCondition(workv1alpha1.WorkApplied, metav1.ConditionFalse, workv1alpha1.ReasonAppliedFailed),
				withCondition(workv1alpha1.WorkFailure, metav1.ConditionTrue, workv1alpha1.ReasonRejected)},
			execute.Outcome{Reading: healthy, HandsOff: "the annotation"}, `
Applied=False HandsOff 2
Dispatching=True Dispatching 0
Failure=True HandsOff 2
HandsOff=True HandsOff 3
health Healthy`},
		"hands off what is suspended": {changes{changed, suspended},
			execute.Outcome{Reading: healthy, HandsOff: "the annotation"}, `
Applied=True  3
Dispatching=False SuspendDispatching 0
HandsOff=True HandsOff 4
health Healthy`},
		"held after a restore": {changes{changed}, execute.Outcome{Reading: healthy, Restored: "it differs"}, `
Applied=False HubRestored 3
Dispatching=True Dispatching 0
Failure=True HubRestored 4
HeldAfterRestore=True HubRestored 4
health Healthy`},

		"rejected, and the object is there": {changes{withReport}, execute.Outcome{Failure: rejected}, `
Applied=False AppliedFailed 3
Dispatching=True Dispatching 0
Failure=True Rejected 3
health Healthy`},
		"rejected, and the object is gone": {changes{withReport},
			execute.Outcome{Failure: &execute.Failure{Cause: errors.New("no"), Reason: "Rejected", Gone: true}}, `
Applied=False AppliedFailed 3
Dispatching=True Dispatching 0
Failure=True Rejected 3`},
		"the interpreter cannot retain": {nil,
			execute.Outcome{Failure: &execute.Failure{Reason: workv1alpha1.ReasonNotSent,
				Cause: &interpret.Error{Operation: "Retain", About: "retain", Cause: errors.New("no script")}}}, `
Applied=False AppliedFailed 3
Dispatching=True Dispatching 0
Failure=True NotSent 3
Retain=False InterpreterFailed 0`},
		"a member that is silent keeps what was applied": {changes{withReport}, execute.Outcome{Failure: silent}, `
Applied=True  3
Dispatching=True Dispatching 0
health Healthy`},
		"a member is silent about a new generation": {changes{changed}, execute.Outcome{Failure: silent}, `
Applied=False AppliedFailed 3
Dispatching=True Dispatching 0
Failure=True Unreachable 4`},
		"a new generation is rejected": {changes{changed}, execute.Outcome{Failure: rejected}, `
Applied=False AppliedFailed 3
Dispatching=True Dispatching 0
Failure=True Rejected 4`},
		"a member is silent about a suspended Work": {changes{unapplied, suspended},
			execute.Outcome{Failure: silent}, `
Dispatching=False SuspendDispatching 0`},
		"another hub manages the member": {nil,
			execute.Outcome{Failure: &execute.Failure{Cause: errors.New("no"), Unreachable: true, OtherHub: "hub b"}}, `
Applied=True  3
Dispatching=False HeldByAnotherHub 0`},

		"hands off a deletion": {changes{changed, deleting, withReport}, execute.Outcome{HandsOff: "the annotation"}, `
Applied=True  3
HandsOff=True HandsOff 4
health Healthy`},
		"a deletion is held after a restore": {changes{changed, deleting, withReport},
			execute.Outcome{Restored: "another template"}, `
Applied=True  3
Failure=True HubRestored 4
HeldAfterRestore=True HubRestored 4
health Healthy`},
	} {
		t.Run(name, func(t *testing.T) {
			w := work(t, reportedConfigMap, test.work...)
			before := summary(w.Status)
			test.outcome.Manifest = manifest
			status, _ := execute.Report(w, test.outcome, reportTime)
			if got := summary(status); got != strings.TrimSpace(test.want) {
				t.Errorf("got\n%s\nwant%s", got, test.want)
			}
			if summary(w.Status) != before {
				t.Error("the Work was changed")
			}
			w.Status = status
			if again, _ := execute.Report(w, test.outcome, reportTime.Add(time.Hour)); summary(again) != summary(status) {
				t.Errorf("the same outcome later gives\n%s\nwant\n%s", summary(again), summary(status))
			}
		})
	}
}

func TestReportReadsAgain(t *testing.T) {
	rolling := &execute.Reading{Object: object(t, `{"apiVersion":"apps/v1","kind":"Deployment"}`),
		Health: interpret.Progressing, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}}
	for name, test := range map[string]struct {
		reading *execute.Reading
		change  func(*workv1alpha1.Work)
		want    time.Duration
	}{
		"healthy":               {&execute.Reading{Health: interpret.Healthy}, nil, 0},
		"rolling out":           {rolling, nil, interpret.ProgressDeadline},
		"suspended":             {rolling, suspended, 0},
		"its health is unknown": {&execute.Reading{HealthErr: errors.New("no")}, nil, 30 * time.Second},
		"its status is unknown": {&execute.Reading{StatusErr: errors.New("no")}, nil, 30 * time.Second},
	} {
		w := work(t, reportedConfigMap)
		if test.change != nil {
			test.change(w)
		}
		outcome := execute.Outcome{Manifest: object(t, reportedConfigMap), Reading: test.reading}
		status, again := execute.Report(w, outcome, reportTime)
		if again != test.want {
			t.Errorf("%s: read again after %s, want %s", name, again, test.want)
		}
		if again != interpret.ProgressDeadline {
			continue
		}
		w.Status = status
		if _, again = execute.Report(w, outcome, reportTime.Add(time.Minute)); again != test.want-time.Minute {
			t.Errorf("%s: a minute later it is read again after %s", name, again)
		}
		status, again = execute.Report(w, outcome, reportTime.Add(test.want))
		if again != 0 || status.ManifestStatuses[0].Health != workv1alpha1.ResourceUnhealthy {
			t.Errorf("%s: at the deadline it is %s, and read again after %s", name, status.ManifestStatuses[0].Health, again)
		}
	}
}

func TestReadLimitsTheStatus(t *testing.T) {
	const limit = 256 << 10
	for bytes, room := range map[int]int{1: limit, 1100 << 10: limit, 1300 << 10: 100 << 10, 1490 << 10: 0} {
		w := &workv1alpha1.Work{}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: make([]byte, bytes)}}}
		for size, fits := range map[int]bool{room: true, room + 1: false} {
			observed := object(t, `{"apiVersion":"demo.io/v1","kind":"Thing","metadata":{"name":"a"}}`)
			text := strings.Repeat("x", max(0, size-len(`{"text":""}`)))
			observed.Object["status"] = map[string]any{"text": text}
			r := execute.Read(context.Background(), interpret.New(builtin.Tier()), w, observed)
			if room > 0 && fits != (r.StatusErr == nil) || room == 0 && r.StatusErr == nil {
				t.Errorf("beside %d bytes, a status of %d: %v", bytes, size, r.StatusErr)
			}
		}
	}
}

func TestUrgent(t *testing.T) {
	cleaned := object(t, `{"apiVersion":"batch/v1","kind":"Job","spec":{"ttlSecondsAfterFinished":10}}`)
	healthy := execute.Outcome{Reading: &execute.Reading{Object: cleaned, Health: interpret.Healthy}}
	unknown := execute.Outcome{Reading: &execute.Reading{Object: cleaned, Health: interpret.Unknown}}
	for name, test := range map[string]struct {
		before   *execute.Outcome
		after    execute.Outcome
		observed *unstructured.Unstructured
		want     bool
	}{
		"a new object is there":           {nil, unknown, object(t, reportedConfigMap), false},
		"a new object is healthy":         {nil, healthy, object(t, reportedConfigMap), true},
		"a new object will be cleaned up": {nil, unknown, cleaned, true},
		"nothing changed":                 {&healthy, healthy, cleaned, false},
		"the health changed":              {&healthy, unknown, cleaned, true},
		"a condition changed": {&healthy, execute.Outcome{Reading: healthy.Reading, ScaledBy: "x"}, cleaned,
			true},
	} {
		was := work(t, reportedConfigMap, unapplied)
		if test.before != nil {
			test.before.Manifest = object(t, reportedConfigMap)
			was.Status, _ = execute.Report(was, *test.before, reportTime)
		}
		test.after.Manifest = object(t, reportedConfigMap)
		is := was.DeepCopy()
		is.Status, _ = execute.Report(was, test.after, reportTime.Add(time.Second))
		if got := execute.Urgent(was, is, test.observed); got != test.want {
			t.Errorf("%s: urgent %t, want %t", name, got, test.want)
		}
	}
}
