package fleet

import (
	"fmt"
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

func TestPodsToDeleteLeaveTheirClustersInOrder(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {scaleStrategy: {podsToDelete: [x-gone, x-b, x-both, x-b, x-a, x-c]}}}", 3, 3)
	pods := map[string][]string{"x-a": {"c1"}, "x-b": {"c2"}, "x-c": {"c2"}, "x-both": {"c1", "c2"}}
	for fewer, want := range []string{"map[]", "map[c2:1]", "map[c1:1 c2:1]", "map[c1:1 c2:2]", "map[c1:1 c2:2]"} {
		got, _, err := Leaving(h.in.Template, int64(fewer), nil, func(pod string) ([]string, bool) { return pods[pod], true })
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("of %d fewer go %v (%v), want %s", fewer, got, err, want)
		}
	}
}

func TestPodsToDeleteWaitForTheirReplicas(t *testing.T) {
	h := newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 6, scaleStrategy: {podsToDelete: [x-a]}}}", 3, 3)
	h.in.Pods = map[string][]string{"x-a": {"c1"}, "x-b": {"c2"}, "x-z": {}}
	const names = "spec.scaleStrategy.podsToDelete="
	h.expect("deleted and made anew", names+"[x-a] []", "spec.replicas=3 3")
	h.edit([]any{"x-a", "x-b", "x-z"}, "spec", "scaleStrategy", "podsToDelete")
	h.edit(int64(5), "spec", "replicas")
	h.expect("before the scheduler has seen it", names+"[x-a] []", "spec.replicas=3 3")
	h.expectConditions("before the scheduler has seen it", "")
	h.in.Members[1].Replicas = 2
	h.expect("then in one write with the replica", names+"[x-a] [x-b]", "spec.replicas=3 2")
	h.expectConditions("then", "x-z not found in any")

	// A single cluster also gets the name with the replica.
	h = newHub(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 2, scaleStrategy: {podsToDelete: [x-a]}}}", 3)
	h.in.Pods = map[string][]string{"x-a": {"c1"}}
	h.expect("before", names+"[]", "spec.replicas=3")
	h.in.Members[0].Replicas = 2
	h.expect("after", names+"[x-a]", "spec.replicas=2")
}

func TestHighestOrdinalsGoFirstOnRequest(t *testing.T) {
	h := newHub(t, `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x, annotations: {argosy.io/unique-ordinals: "true"}}, spec: {replicas: 7, reserveOrdinals: [1]}}`, 3, 2, 2)
	h.expect("at first", "spec.replicas=3 2 2") // 0 2 3, 4 5, 6 7
	works := map[string]*workv1alpha1.Work{}
	for _, m := range h.in.Members {
		works[m.Cluster] = m.Work
	}
	if got, _, err := Leaving(h.in.Template, 3, works, nil); err != nil || len(got) > 0 {
		t.Errorf("without being asked to, %v go (%v)", got, err)
	}
	h.edit("GlobalHighest", "metadata", "annotations", wellknown.OrdinalScaleDownAnnotation)
	for fewer, want := range []string{"map[]", "map[c3:1]", "map[c3:2]", "map[c2:1 c3:2]", "map[c2:2 c3:2]",
		"map[c1:1 c2:2 c3:2]"} {
		if got, _, err := Leaving(h.in.Template, int64(fewer), works, nil); err != nil || fmt.Sprint(got) != want {
			t.Errorf("of %d fewer go %v (%v), want %s", fewer, got, err, want)
		}
	}
	if got, _, err := Leaving(h.in.Template, 99, works, nil); err != nil || fmt.Sprint(got) != "map[c1:3 c2:2 c3:2]" {
		t.Errorf("of more than there are, %v go (%v)", got, err)
	}
}
