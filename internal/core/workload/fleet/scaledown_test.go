package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

const (
	namedPods = "spec.scaleStrategy.podsToDelete="
	cloneSetX = "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 6, template: {}}}"
	uniqueSet = `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x, annotations: {argosy.io/unique-ordinals: "true"}}, spec: {replicas: 6, template: {}}}`
)

// A pod that no cluster is known to have may be in one that did not respond.
func TestScaleDownWaitsForUnknownPods(t *testing.T) {
	h := newHub(t, cloneSetX, 3, 3)
	h.expect("at first", "spec.replicas=3 3")
	h.edit([]any{"x-a"}, podsToDeletePath...)
	h.edit(int64(5), "spec", "replicas")
	h.in.Pods = map[string][]string{}
	h.expect("before it is scheduled", namedPods+"[] []", "spec.replicas=3 3")
	h.expectConditions("before it is scheduled", "x-a not found, but a cluster does not respond")
	h.in.Members[0].Replicas = 2
	h.expect("while the pod is unknown", namedPods+"[] []", "spec.replicas=3 3")
	h.expectConditions("while the pod is unknown", "x-a not found, but a cluster does not respond")
	if h.recheck != podSearchRetry {
		t.Errorf("the pod is searched again after %v, want %v", h.recheck, podSearchRetry)
	}
	h.in.Pods = map[string][]string{"x-a": {"c1"}}
	before := h.writes
	h.look()
	if h.writes != before+1 {
		t.Errorf("when the pod is found, %d Works are written, want 1", h.writes-before)
	}
	h.expect("when the pod is found", namedPods+"[x-a] []", "spec.replicas=2 3")
	h.expectConditions("when the pod is found", "")
}

func TestUnknownPodBlocksNoOtherScaleDown(t *testing.T) {
	h := newHub(t, cloneSetX, 3, 3)
	h.expect("at first", "spec.replicas=3 3")
	h.edit([]any{"x-a", "x-b"}, podsToDeletePath...)
	h.edit(int64(4), "spec", "replicas")
	h.in.Members[0].Replicas, h.in.Members[1].Replicas = 2, 2
	h.in.Pods = map[string][]string{"x-a": {"c1"}}
	h.expect("one pod is unknown", namedPods+"[x-a] []", "spec.replicas=2 3")
	h.in.Pods["x-b"] = []string{}
	h.expect("the other pod is nowhere", namedPods+"[x-a] []", "spec.replicas=2 2")
	h.expectConditions("the other pod is nowhere", "x-b not found in any responding cluster")
}

func TestUnknownPodsLeaveNoReplicasToTake(t *testing.T) {
	h := newHub(t, cloneSetX, 3, 3)
	h.edit([]any{"x-a", "x-b"}, podsToDeletePath...)
	for _, c := range []struct {
		fewer int64
		want  string
	}{{0, "map[] []"}, {1, "map[c1:1] []"}, {2, "map[c1:1] [x-b]"}} {
		leaving, unknown, err := Leaving(h.in.Template, c.fewer, nil, func(pod string) ([]string, bool) {
			if pod == "x-a" {
				return []string{"c1"}, false
			}
			return nil, false
		})
		if got := fmt.Sprint(leaving, " ", unknown); err != nil || strings.Join(strings.Fields(got), " ") != c.want {
			t.Errorf("of %d fewer go %s (%v), want %s", c.fewer, got, err, c.want)
		}
	}
}

// The member's CloneSet records which names were sent, so that a name sent later is not taken for one whose pod is
// gone.
func TestSentPodsAreRecorded(t *testing.T) {
	for _, replicas := range [][]int64{{3, 3}, {6}} {
		h := newHub(t, cloneSetX, replicas...)
		h.expect("at first", namedPods+strings.TrimSpace(strings.Repeat("<nil> ", len(replicas))))
		h.edit([]any{"x-a"}, podsToDeletePath...)
		h.edit(int64(5), "spec", "replicas")
		h.in.Pods = map[string][]string{"x-a": {"c1"}}
		h.look()
		if got := h.sentTo(); got != "" {
			t.Errorf("before it is scheduled, c1 records %q", got)
		}
		h.in.Members[0].Replicas--
		h.look()
		if got := h.sentTo(); got != "x-a" {
			t.Errorf("when it is scheduled, c1 records %q", got)
		}
	}
}

// An ordinal that is reserved runs in one cluster: its replica goes there, in the same write.
func TestReservedOrdinalLeavesWithItsReplica(t *testing.T) {
	h := newHub(t, uniqueSet, 3, 3)
	const reserved = "spec.reserveOrdinals="
	h.expect("at first", reserved+"[] [0 1 2]", "spec.replicas=3 3")
	h.edit([]any{int64(1)}, reservedPath...)
	h.edit(int64(5), "spec", "replicas")
	works := map[string]*workv1alpha1.Work{"c1": h.in.Members[0].Work, "c2": h.in.Members[1].Work}
	if got, _, err := Leaving(h.in.Template, 1, works, nil); err != nil || fmt.Sprint(got) != "map[c1:1]" {
		t.Errorf("the replica leaves %v (%v), want c1", got, err)
	}
	h.expect("before it is scheduled", reserved+"[] [0 1 2]", "spec.replicas=3 3")
	h.in.Members[0].Replicas = 2
	h.expect("when it is scheduled", reserved+"[1] [0 1 2]", "spec.replicas=2 3")
}

func TestReservedOrdinalsWaitForFewerReplicas(t *testing.T) {
	for _, replicas := range [][]int64{{3, 3}, {6}} {
		h := newHub(t, strings.Replace(uniqueSet, `, annotations: {argosy.io/unique-ordinals: "true"}`, "", 1), replicas...)
		h.look()
		h.edit([]any{int64(1)}, reservedPath...)
		h.edit(int64(5), "spec", "replicas")
		h.look()
		if got := h.fieldValues(reservedPath...); strings.Contains(got, "1") {
			t.Errorf("before it is scheduled, reserved are %s", got)
		}
		h.in.Members[0].Replicas--
		h.look()
		if got := h.fieldValues(reservedPath...); got != strings.TrimSpace(strings.Repeat("[1] ", len(replicas))) {
			t.Errorf("when it is scheduled, reserved are %s", got)
		}
	}
}

// sentTo is what the CloneSet in c1 records as sent.
func (h *hub) sentTo() string {
	h.t.Helper()
	m, err := observe(h.in.Members[0])
	if err != nil {
		h.t.Fatal(err)
	}
	return m.before.GetAnnotations()[wellknown.SentPodsToDeleteAnnotation]
}
