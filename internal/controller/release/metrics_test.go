package release

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestReleasesThatWaitForAPersonAreCounted(t *testing.T) {
	var all []releasev1alpha1.Release
	for _, reason := range []string{releasev1alpha1.ReasonFleetHalted, releasev1alpha1.ReasonSoaking,
		releasev1alpha1.ReasonWaitingForApproval, releasev1alpha1.ReasonFleetHalted} {
		r := releasev1alpha1.Release{}
		r.Status.Phase = releasev1alpha1.ReleaseRunning
		r.Status.Conditions = []metav1.Condition{{Type: releasev1alpha1.ReleaseProgressing, Reason: reason}}
		all = append(all, r)
	}
	want := map[[3]string]int{{"Problem", "User", "FleetHalted"}: 2, {"Attention", "Approver", "WaitingForApproval"}: 1}
	if got := demands(all); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
