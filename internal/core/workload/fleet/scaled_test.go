package fleet

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
)

// newPods is how many of the pods of a CloneSet are new when an autoscaler scales it from one size to another: those
// that are old already stay, and of the others as many are old as the partition still wants.
func newPods(t *testing.T, partition any, old, to int64) int64 {
	t.Helper()
	kept, err := KeptOld(partition, to, Up)
	if err != nil {
		t.Fatal(err)
	}
	return to - max(kept, min(old, to))
}

func TestAutoscalerInMemberDoesNotEnlargeCanary(t *testing.T) {
	for _, scaled := range []bool{false, true} {
		t.Run(fmt.Sprintf("scaled %v", scaled), func(t *testing.T) {
			h := newHub(t, plainCloneSet, 10, 10)
			for i := range h.in.Members {
				h.in.Members[i].Scaled = scaled
			}
			h.look()
			h.allNew()
			h.look()
			h.edit("90%", "spec", "updateStrategy", "rollingUpdate", "partition")
			h.edit(int64(2), "spec", "template", "a")
			if !scaled {
				h.expect("where the hub scales, the partition is a number", partitions+"9 9")
				if n := newPods(t, int64(9), 9, 20); n != 11 {
					t.Errorf("a number lets %d of 20 pods be new, want 11: this test no longer shows the fault", n)
				}
				return
			}
			h.expect("where members scale, it is a percentage", partitions+"90% 90%")
			h.report(up(10, 1), up(10, 1))
			h.expect("at 10 %", partitions+"90% 90%")
			if n := newPods(t, "90%", 9, 20); n != 2 {
				t.Errorf("%d of 20 pods are new, want 2", n)
			}
			// The member has scaled, and the hub does not know yet.
			h.report(up(20, 2), up(10, 1))
			h.expect("while the hub has the earlier replicas", partitions+"90% 90%")
			h.in.Members[0].Replicas = 20
			h.report(up(20, 2), up(10, 1))
			h.expect("when the hub has followed", partitions+"90% 90%")
			h.in.Members[0].Replicas = 10
			h.report(up(10, 1), up(10, 1))
			h.expect("scaled down again", partitions+"90% 90%")
			h.edit("0%", "spec", "updateStrategy", "rollingUpdate", "partition")
			h.report(up(10, 1), up(10, 1))
			h.expect("all pods", partitions+"0 0")
		})
	}
}

func TestScaledClusterWithoutItsTurnKeepsAllPodsOld(t *testing.T) {
	h := newHub(t, plainCloneSet, 10, 10)
	h.in.Members[1].Scaled = true
	h.edit("Ordered", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
	h.look()
	h.allNew()
	h.edit(int64(10), "spec", "updateStrategy", "rollingUpdate", "partition")
	h.edit(int64(2), "spec", "template", "a")
	h.expect("c1 first", partitions+"0 100%")
}

func TestScaledStatefulSetWithoutItsTurnKeepsAllPodsOld(t *testing.T) {
	statefulSet := strings.Replace(plainCloneSet, "kind: CloneSet", "kind: StatefulSet", 1)
	highest := fmt.Sprint("0 ", float64(math.MaxInt32)) // the test reads numbers of JSON as float64
	for order, want := range map[string]string{"Ordered": highest, "Proportional": "5 5"} {
		t.Run(order, func(t *testing.T) {
			h := newHub(t, statefulSet, 10, 10)
			h.edit("Parallel", "spec", "podManagementPolicy")
			h.in.Members[1].Scaled = true
			h.edit(order, "metadata", "annotations", wellknown.RolloutOrderAnnotation)
			h.look()
			h.allNew()
			h.edit(int64(10), "spec", "updateStrategy", "rollingUpdate", "partition")
			h.edit(int64(2), "spec", "template", "a")
			h.expect("with half of the pods", partitions+want)
			h.in.Members[1].Replicas = 20 // its autoscaler adds pods
			h.report(silent, up(20, 0))
			h.edit(int64(0), "spec", "updateStrategy", "rollingUpdate", "partition")
			h.look()
			h.report(up(10, 10), up(20, 0))
			h.expect("with all pods", partitions+"0 0")
		})
	}
}

func TestStagesProceedIfAutoscalerKeepsFewerPods(t *testing.T) {
	h := newHub(t, plainCloneSet, 10, 10)
	h.in.Members[0].Scaled = true
	h.edit("Stages", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
	h.edit(`[{"percent": 50}, {"percent": 100}]`, "metadata", "annotations", wellknown.RolloutStagesAnnotation)
	h.edit(int64(2), "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
	h.look()
	h.report(up(4, 4), up(10, 10)) // the hub does not follow the member
	h.look()
	h.edit(int64(2), "spec", "template", "a")
	h.expect("the first stage uses the budget, though c1 has fewer pods", partitions+"50% 5")
	h.report(up(4, 1), up(10, 5))
	h.expect("half of the four pods are two", partitions+"50% 5")
	h.report(up(4, 2), up(10, 5))
	h.expect("the next stage", partitions+"0 0")
	h.report(up(4, 4), up(10, 10))
	h.look()
	h.atStage("at the end", "all 2 stages are complete")
}

func TestStagesWaitForPodsThatAnAutoscalerAdded(t *testing.T) {
	h := newHub(t, plainCloneSet, 10, 10)
	h.in.Members[0].Scaled = true
	h.edit("Stages", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
	h.edit(`[{"percent": 50}, {"percent": 100}]`, "metadata", "annotations", wellknown.RolloutStagesAnnotation)
	h.edit(int64(10), "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
	h.look()
	h.report(up(20, 20), up(10, 10)) // the hub does not follow the member
	h.look()
	h.edit(int64(2), "spec", "template", "a")
	h.look()
	h.report(up(20, 5), up(10, 5))
	h.expect("half of the 20 pods are ten", partitions+"50% 5")
	h.report(up(20, 10), up(10, 5))
	h.expect("the next stage", partitions+"0 0")
	h.report(up(20, 19), up(10, 10))
	h.look()
	h.report(up(20, 20), up(10, 10))
	h.look()
	h.atStage("at the end", "all 2 stages are complete")
	h.report("replicas: 24, availableReplicas: 20, readyReplicas: 20, updatedReplicas: 24, updatedAvailableReplicas: 20",
		up(10, 10))
	h.look()
	h.atStage("while new pods are added", "all 2 stages are complete")
}

func TestPercentageKeepsAtLeastAsManyOldPods(t *testing.T) {
	for total := int64(0); total <= 300; total++ {
		for kept := int64(0); kept <= total; kept++ {
			percent, keeps := PercentKeeping(kept, total)
			if got, err := KeptOld(percent, total, Up); err != nil || got != keeps || keeps < kept {
				t.Fatalf("%s of %d keeps %d (%v), said is %d, want at least %d", percent, total, got, err, keeps, kept)
			}
			if total <= 100 && keeps != kept {
				t.Fatalf("%s of %d keeps %d, want exactly %d", percent, total, keeps, kept)
			}
		}
	}
}

func TestRolloutOfManyScaledPodsEnds(t *testing.T) {
	h := newHub(t, plainCloneSet, 250, 250)
	for i := range h.in.Members {
		h.in.Members[i].Scaled = true
	}
	h.edit("Stages", "metadata", "annotations", wellknown.RolloutOrderAnnotation)
	h.edit(`[{"percent": 1}, {"percent": 100}]`, "metadata", "annotations", wellknown.RolloutStagesAnnotation)
	h.edit("100%", "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
	h.look()
	h.allNew()
	h.look()
	h.edit(int64(2), "spec", "template", "a")
	// 1 % of 500 are 5 pods: 3 and 2. A partition of 99 % keeps 248 of 250.
	h.expect("the first stage", partitions+"99% 99%")
	h.report(up(250, 2), up(250, 2))
	h.expect("the last stage", partitions+"0 0")
}
