package failover

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// isLost checks which clusters traffic should leave, and in how long that changes without an event; 0 is never.
func (w *world) isLost(want string, next time.Duration) {
	w.t.Helper()
	lost, at := Lost(w.in.Options, w.clusters, w.now)
	if got := strings.Join(slices.Sorted(maps.Keys(lost)), " "); got != want {
		w.t.Errorf("lost: %q, want %q", got, want)
	}
	var until time.Time
	if next > 0 {
		until = w.now.Add(next)
	}
	if !at.Equal(until) {
		w.t.Errorf("the next look is at %v, want %v", at, until)
	}
}

func TestTrafficLeavesALostClusterBeforeWorkloadsDo(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.deployment("web", "a=1", byRoom())
	w.isLost("", 0)
	w.lose("a")
	w.isLost("", lossDelay)
	w.pass(lossDelay)
	w.isLost("a", 0)
	w.plans("web !a Tolerated")
	w.ready("a", true) // its taint is about to be removed
	w.isLost("", 0)
}

func TestTrafficStaysWhereTheBrakeHolds(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.lose("a", "b")
	w.pass(lossDelay)
	w.isLost("", 0)
	w.back("b")
	w.isLost("a", 0)
}

func TestTrafficLeavesNothingIfFailoverIsOff(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.in.Off = true
	w.lose("a")
	w.pass(time.Hour)
	w.isLost("", 0)
}

func TestTrafficStaysInADrainedCluster(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.taint("a", "maintenance")
	w.pass(time.Hour)
	w.isLost("", 0)
}
