package release

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
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

func TestReplicasOfAClusterThatIsLeftAreThoseReported(t *testing.T) {
	target := Target{Progress: []fleet.ClusterProgress{{Cluster: "left", Replicas: 3}},
		Binding: &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{
			Clusters: []workv1alpha2.TargetCluster{{Name: "new", Replicas: 2}}}}}
	for cluster, want := range map[string]int64{"left": 3, "new": 2, "other": 0} {
		if got := target.replicasIn(cluster); got != want {
			t.Errorf("%s has %d replicas, want %d", cluster, got, want)
		}
	}
}
