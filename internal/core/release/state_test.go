package release

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestTransitionsWithoutAnEndAreReported(t *testing.T) {
	for limit, fault := range map[int]bool{1: true, 2: false} { // it is aborted, then it stays
		s := &stepper{Input: Input{Release: &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Name: "r"},
			Spec: releasev1alpha1.ReleaseSpec{State: releasev1alpha1.StateAbort}}}, now: time.Unix(1e9, 0)}
		s.advance(limit)
		status := s.step().Status
		progressing := meta.FindStatusCondition(status.Conditions, releasev1alpha1.ReleaseProgressing)
		if got := progressing.Reason == releasev1alpha1.ReasonInternalError; got != fault {
			t.Errorf("limit %d: Progressing is %+v", limit, progressing)
		}
		if fault && !strings.Contains(progressing.Message, "more than 1 transitions in one step, now in phase Aborted") {
			t.Errorf("the message is %q", progressing.Message)
		}
		if status.Phase != releasev1alpha1.ReleaseAborted {
			t.Errorf("limit %d: the phase is %s", limit, status.Phase)
		}
	}
}
