package dispatch

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

func TestWhatWorkloadsWaitForOfTheirSidecars(t *testing.T) {
	work := func(applied metav1.ConditionStatus, status string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		if applied != "" {
			w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied, LastTransitionTime: metav1.Now()}}
		}
		if status != "" {
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(status)}}}
		}
		return w
	}
	now := metav1.Now()
	unnoticed := work(metav1.ConditionTrue, "")
	unnoticed.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
	going, heldBack := work("", ""), work("", "")
	going.DeletionTimestamp = &now
	heldBack.Spec.SuspendDispatching = new(true)
	for _, c := range []struct {
		name    string
		work    *workv1alpha1.Work
		lacking string
	}{
		{"there is no Work", nil, "is not sent there yet"},
		{"nothing became of it", work("", ""), "is not applied there yet"},
		{"it was refused", work(metav1.ConditionFalse, ""), ""},
		{"it was applied", work(metav1.ConditionTrue, ""), "was not seen there by OpenKruise yet"},
		{"it has a status of nobody", work(metav1.ConditionTrue, `{"matchedPods":0}`), "was not seen there by OpenKruise yet"},
		{"its status is no object", work(metav1.ConditionTrue, `[]`), "was not seen there by OpenKruise yet"},
		{"it was not seen for long", unnoticed, ""},
		{"it was seen", work(metav1.ConditionTrue, `{"observedGeneration":1,"matchedPods":0}`), ""},
		{"it is going", going, ""},
		{"its users hold it back", heldBack, ""},
	} {
		if got := Lacking(c.work, now.Time, time.Minute); got != c.lacking {
			t.Errorf("%s: it %q, want %q", c.name, got, c.lacking)
		}
	}
}
