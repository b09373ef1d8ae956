package fleet

import (
	"testing"
	"time"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// later lets time pass, and looks.
func (h *hub) later(d time.Duration) {
	h.t.Helper()
	h.in.Now = h.in.Now.Add(d)
	h.look()
}

// wakes returns when the hub looks again by itself.
func (h *hub) wakes(when string, want time.Duration) {
	h.t.Helper()
	if h.recheck != want {
		h.t.Errorf("%s, it looks again after %s, want %s", when, h.recheck, want)
	}
}

// rolling returns a rollout of nine pods with a deadline of 100 s, that has just begun.
func rolling(t *testing.T) *hub {
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.in.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h.edit(int64(100), "spec", "progressDeadlineSeconds")
	h.look()
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.look()
	h.wakes("at rest", 0)
	if h.in.Progress != "" {
		t.Errorf("at rest, the progress is %s", h.in.Progress)
	}
	h.edit(int64(2), "spec", "template", "a")
	h.look()
	return h
}

func TestADeadlineIsTheFleets(t *testing.T) {
	h := rolling(t)
	h.wakes("when it begins", 100*time.Second)
	h.later(60 * time.Second)
	h.report(up(3, 0), up(3, 1), up(3, 0))
	h.look()
	h.wakes("when it goes on", 100*time.Second)

	// What comes soon after is not written at once, and counts all the same.
	h.later(4 * time.Second)
	before := h.in.Progress
	h.report(up(3, 1), up(3, 1), up(3, 0))
	h.look()
	if h.in.Progress != before {
		t.Errorf("after 4 s, the progress is written anew: %s, then %s", before, h.in.Progress)
	}
	h.wakes("after 4 s", 6*time.Second)
	h.later(6 * time.Second)
	h.wakes("after 10 s", 100*time.Second)

	// A pod that goes and comes back is no progress. One that a cluster does not speak of is none either.
	h.later(50 * time.Second)
	h.report(up(3, 1), up(3, 0), up(3, 0))
	h.look()
	h.report(up(3, 1), up(3, 1), up(3, 0))
	h.look()
	h.wakes("halfway", 50*time.Second)
	h.expectConditions("halfway", "")
	h.later(50 * time.Second)
	h.expectConditions("then", "ProgressDeadlineExceeded: no new pod has become available for 1m40s: 2 of 9 new pods are available across all clusters")
	h.wakes("then", 0)

	// Another pod ends it, and so does another template.
	h.report(up(3, 1), up(3, 1), up(3, 1))
	h.look()
	h.expectConditions("when it goes on", "")
	h.later(100 * time.Second)
	h.expectConditions("when it stands still again", "ProgressDeadlineExceeded")
	h.edit(int64(3), "spec", "template", "a")
	h.look()
	h.expectConditions("of another template", "")
	h.wakes("of another template", 100*time.Second)
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.look()
	if h.in.Progress != "" || h.recheck != 0 {
		t.Errorf("when it is done, the progress is %q, and it looks again after %s", h.in.Progress, h.recheck)
	}
}

func TestApprovalWaitIsNotLate(t *testing.T) {
	h := rolling(t)
	h.edit("90%", "spec", "updateStrategy", "rollingUpdate", "partition")
	h.look()
	h.report(up(3, 1), up(3, 0), up(3, 0))
	h.later(200 * time.Second)
	h.expectConditions("of a canary that is held", "")
	h.wakes("of a canary that is held", 0)
	h.edit(int64(0), "spec", "updateStrategy", "rollingUpdate", "partition")
	h.look()
	h.wakes("when it goes on", 100*time.Second)
	h.edit(true, "spec", "updateStrategy", "rollingUpdate", "paused")
	h.later(200 * time.Second)
	h.expectConditions("paused", "")
	h.wakes("paused", 0)
}

func TestRolloutStopsIfTooManyPodsFail(t *testing.T) {
	h := rolling(t)
	h.edit("25%", "metadata", "annotations", wellknown.FailedPodsThresholdAnnotation) // two of nine
	h.look()
	sick := func(n int) {
		t.Helper()
		statuses := []string{"replicas: 3, availableReplicas: 2, readyReplicas: 2, updatedReplicas: 1, updatedAvailableReplicas: 0", up(3, 0), up(3, 0)}
		for i := range n {
			statuses[i] = statuses[0]
		}
		h.report(statuses...)
		for i := range n {
			h.in.Members[i].Work.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
		}
		h.look()
	}
	sick(2)
	h.expectConditions("of two that fail", "")
	if got := partitionsOf(h); got != "0 0 0" {
		t.Errorf("it goes on: partitions are %s", got)
	}
	sick(3)
	h.expectConditions("of three that fail", "FleetHalted: the rollout is halted in all clusters because more than 2 new pods are failing, in c1, c2, c3")
	if got := partitionsOf(h); got != "2 2 2" {
		t.Errorf("it stops: partitions are %s", got)
	}

	// Those of copies that are healthy fail when the deadline has passed.
	h = rolling(t)
	h.edit("2", "metadata", "annotations", wellknown.FailedPodsThresholdAnnotation)
	h.look()
	slow := "replicas: 3, availableReplicas: 2, readyReplicas: 2, updatedReplicas: 1, updatedAvailableReplicas: 0"
	h.report(slow, slow, slow)
	h.look()
	h.expectConditions("while they start", "")
	h.later(100 * time.Second)
	h.expectConditions("when they had the time to", "FleetHalted")
	h.expectConditions("when they had the time to", "ProgressDeadlineExceeded")

	h.edit("some", "metadata", "annotations", wellknown.FailedPodsThresholdAnnotation)
	if _, err := Shares(h.in); err == nil {
		t.Error("some is taken for a number")
	}
}

func partitionsOf(h *hub) string {
	return h.fieldValues("spec", "updateStrategy", "rollingUpdate", "partition")
}
