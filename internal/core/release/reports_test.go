package release_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestARefusalIsShownInTheWordsOfTheMember(t *testing.T) {
	for _, action := range []string{"Pause", "Rollback"} {
		w := newWorld(t, cloneSet, 5, 5)
		r := w.release("r1", "stages: [{name: all}]\nfailure: {action: "+action+"}")
		w.watch = func() { w.members[0].refuses = "quota exceeded: " + strings.Repeat("cpu ", 100) }
		w.pass(time.Minute)
		clusters := r.Status.Stages[0].Clusters
		if len(clusters) == 0 || clusters[0].Name != "c1" || clusters[0].Phase != releasev1alpha1.ClusterFailed ||
			!strings.HasPrefix(clusters[0].Message, "quota exceeded: cpu") || len(clusters[0].Message) > 256 {
			t.Errorf("%s: clusters of the stage are %+v", action, clusters)
		}
		if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseHealthy); c.Reason !=
			releasev1alpha1.ReasonRefused || !strings.Contains(c.Message, "c1") {
			t.Errorf("%s: Healthy is %+v", action, c)
		}
	}
}

func TestHealthyNamesAFailedGateAndAMissedDeadline(t *testing.T) {
	for name, reason := range map[string]string{"gate": releasev1alpha1.ReasonGateFailed,
		"deadline": releasev1alpha1.ReasonDeadlineExceeded} {
		w := newWorld(t, cloneSet, 5, 5)
		r := w.release("r1", "stages: [{name: all, before: [{name: go}], deadline: 10m}]\nfailure: {action: Pause, "+
			"maxFailedPods: 10, maxFailedClusters: 2}")
		w.rest()
		if name == "gate" {
			w.reject(r, "all", "go", "ann")
		} else {
			w.members[0].fails["web:2"] = true
			w.approve(r, "all", "go", "ann")
		}
		w.pass(time.Hour)
		c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseHealthy)
		if c.Status != "False" || c.Reason != reason || r.Status.Reason != releasev1alpha1.ReasonPausedByFailure {
			t.Errorf("%s: Healthy is %+v, and the release is %s (%s)", name, c, r.Status.Phase, r.Status.Reason)
		}
	}
}
