package release_test

import (
	"slices"
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

// flap makes a new pod of c1 unavailable, and available again.
func (w *world) flap(r *releasev1alpha1.Release) {
	w.t.Helper()
	for _, m := range w.members {
		i := slices.Index(m.images, "web:2")
		m.ready[i] = false
		m.fails["web:2"] = true
		w.report(m, w.works[m.name], "web:2")
		work := w.works[m.name].DeepCopy()
		work.Status.ManifestStatuses[0].Health = "Unknown" // it is unavailable, not failed
		w.works[m.name] = work
	}
	w.reconcile(r)
	for _, m := range w.members {
		m.fails["web:2"] = false
	}
	w.rest()
}

func TestPodsThatComeAndGoFailTheStage(t *testing.T) {
	w := newWorld(t, cloneSet, repeat(2, 20)...)
	r := w.release("r1", "stages: [{name: half, to: {percent: 50}, soak: 20m, deadline: 10m}, {name: rest}]")
	w.rest()
	start := w.now
	for r.Status.Phase == releasev1alpha1.ReleaseRunning && w.now.Sub(start) < 2*time.Hour {
		w.pass(time.Minute)
		w.flap(r)
	}
	w.expect("after flapping", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, "web:2", 20)
	if got := w.now.Sub(start); got != 30*time.Minute {
		t.Errorf("the stage failed after %s, want 30m", got)
	}
	interrupted := 0
	for _, e := range r.Status.Journal {
		if len(e.Cluster) > 0 && e.Reason == "Interrupted" {
			interrupted++
			if e.Cluster != "c1, c10, c11 and 17 more" {
				t.Errorf("the journal names the clusters %q", e.Cluster)
			}
		}
	}
	if interrupted == 0 {
		t.Error("the journal has no interruption")
	}
	r.Annotations[releasev1alpha1.RetryAnnotation] = "half@1"
	w.pass(time.Hour)
	w.expect("after a retry", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 40)
}

func TestALongMessageKeepsItsBeginning(t *testing.T) {
	w := newWorld(t, cloneSet, 1)
	r := w.release("r1", "stages: [{name: all, before: [{name: go}]}]")
	w.rest()
	w.reject(r, "all", "go", strings.Repeat("c", 250))
	w.rest()
	last := ""
	for _, e := range r.Status.Journal {
		if strings.Contains(e.Message, "ccc") {
			last = e.Message
		}
	}
	if len(last) <= 200 || len(last) > 256 {
		t.Errorf("a message has %d bytes, want more than 200 and at most 256: %q", len(last), last)
	}
}
