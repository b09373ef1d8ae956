package failover

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// isLost checks which clusters traffic should leave, and in how long that changes without an event; 0 is never.
// "?a" is a cluster about which nothing is decided.
func (w *world) isLost(want string, next time.Duration) {
	w.t.Helper()
	got := Lost(w.in.Options, w.clusters, w.settled, w.now)
	names := slices.Collect(maps.Keys(got.Lost))
	for c := range got.Undecided {
		names = append(names, "?"+c)
	}
	slices.Sort(names)
	if lost := strings.Join(names, " "); lost != want {
		w.t.Errorf("lost: %q, want %q", lost, want)
	}
	var until time.Time
	if next > 0 {
		until = w.now.Add(next)
	}
	if !got.Next.Equal(until) {
		w.t.Errorf("the next look is at %v, want %v", got.Next, until)
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

func TestLossLimitKeepsTraffic(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.lose("a", "b")
	w.pass(lossDelay)
	w.isLost("", 0)
	w.back("b")
	w.isLost("?a", resumeAfter)
}

func TestTrafficStaysWhileClustersRecoverTogether(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d") // without a binding, so without the condition FailoverPaused
	w.pass(time.Hour)
	w.lose("a", "b", "c")
	w.pass(time.Minute)
	w.isLost("", 0)
	w.back("a")
	w.isLost("?b ?c", resumeAfter)
	w.pass(time.Minute)
	w.back("b")
	w.isLost("?c", resumeAfter)
	w.pass(resumeAfter)
	w.isLost("c", 0)
}

func TestTrafficLeavesALostClusterWhileAnotherFlaps(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d")
	w.pass(time.Hour)
	w.lose("a")
	w.pass(lossDelay)
	w.lose("b")
	w.back("b")
	w.isLost("a", 0)
}

func TestTrafficStaysAsItIsUntilConditionsAreUpToDate(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	w.lose("a")
	w.pass(time.Hour)
	w.settled = w.now.Add(time.Minute)
	w.isLost("?a", time.Minute)
	w.pass(time.Minute)
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

// The workloads may serve there: this hub only cannot see it.
func TestTrafficStaysInAClusterThatIsNotReadyAndNotLost(t *testing.T) {
	for _, reason := range []string{clusterv1alpha1.ReasonHeldByAnotherHub, clusterv1alpha1.ReasonStatusCollectionFailed} {
		w := newWorld(t, "a", "b", "c")
		w.lose("a", "b")
		for _, c := range []string{"a", "b"} {
			membership.Readiness(w.cluster(c)).Reason = reason
		}
		w.pass(time.Hour)
		w.isLost("", 0)
		w.lose("c")
		w.pass(lossDelay)
		w.isLost("c", 0) // the others do not count for the loss limit
	}
}
