package fleet

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

func TestBoundsAreSplitInProportionToReplicas(t *testing.T) {
	for _, c := range []struct {
		name            string
		lowest, highest int32
		replicas        map[string]int32
		want            map[string]Bounds
	}{
		{"alike", 4, 10, map[string]int32{"a": 2, "b": 2}, map[string]Bounds{"a": {2, 5}, "b": {2, 5}}},
		{"two to one", 3, 9, map[string]int32{"a": 2, "b": 1}, map[string]Bounds{"a": {2, 6}, "b": {1, 3}}},
		{"a minimum below the number of clusters", 1, 6, map[string]int32{"a": 1, "b": 1, "c": 1},
			map[string]Bounds{"a": {1, 2}, "b": {1, 2}, "c": {1, 2}}},
		{"as many clusters as replicas", 1, 2, map[string]int32{"a": 9, "b": 1}, map[string]Bounds{"a": {1, 1}, "b": {1,
			1}}},
		{"one cluster", 2, 7, map[string]int32{"a": 3}, map[string]Bounds{"a": {2, 7}}},
	} {
		got := SplitBounds(Bounds{c.lowest, c.highest}, c.replicas, nil, nil)
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%s: cluster %s gets %v, want %v", c.name, name, got[name], want)
			}
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	for seed := range int64(5000) {
		r := rand.New(rand.NewSource(seed))
		replicas, limits, kept := map[string]int32{}, map[string]int32{}, map[string]Bounds{}
		for i := range 1 + r.Intn(8) {
			name := string(rune('a' + i))
			replicas[name] = int32(r.Intn(20))
			switch r.Intn(4) {
			case 0:
				limits[name] = int32(r.Intn(20))
			case 1:
				least := 1 + int32(r.Intn(8))
				kept[name] = Bounds{least, least + int32(r.Intn(20))}
			}
		}
		highest := int32(len(replicas) + r.Intn(60))
		lowest := 1 + int32(r.Intn(int(highest)))
		got := SplitBounds(Bounds{lowest, highest}, replicas, limits, kept)
		var least, most int32
		for name, b := range got {
			if b.Min < 1 || b.Min > b.Max {
				t.Fatalf("seed %d: cluster %s gets %v", seed, name, b)
			}
			least, most = least+b.Min, most+b.Max
		}
		if most != highest || least != max(lowest, int32(len(replicas))) {
			t.Fatalf("seed %d: %v make %d to %d, want %d to %d", seed, got, least, most, lowest, highest)
		}
	}
}

const (
	hpa    = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, " + fleetWide + ", spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, %s}}"
	scaled = "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, " + fleetWide + ", " +
		"spec: {scaleTargetRef: {name: web}, %s}}"
)

func TestBoundsAreDividedByTheReplicasOfTheWorkload(t *testing.T) {
	for name, c := range map[string]struct {
		template, bounds string
		target           []int64 // replicas by cluster; nil while they are not known
		min, max         string
		said             string
	}{
		"in proportion":             {hpa, "minReplicas: 4, maxReplicas: 12", []int64{4, 2, 2}, "2 1 1", "6 3 3", ""},
		"uneven sums":               {hpa, "minReplicas: 4, maxReplicas: 10", []int64{1, 1, 1}, "2 1 1", "4 3 3", ""},
		"a minimum of its own each": {hpa, "minReplicas: 1, maxReplicas: 9", []int64{7, 1, 1}, "1 1 1", "7 1 1", ""},
		"no minimum":                {hpa, "maxReplicas: 6", []int64{1, 1, 1}, "1 1 1", "2 2 2", ""},
		"one replica, and a minimum of two": {hpa, "minReplicas: 2, maxReplicas: 6", []int64{1, 0, 0}, "2 1 1", "6 1 1",
			""},
		"a cluster with 0 replicas": {hpa, "minReplicas: 4, maxReplicas: 8", []int64{3, 0, 1}, "3 1 1", "6 1 2", ""},
		"more clusters than the maximum": {hpa, "minReplicas: 1, maxReplicas: 2", []int64{1, 1, 1}, "1 1 1", "1 1 1",
			"BoundsTooLow: spec.maxReplicas is 2, but the workload is in 3 clusters"},
		"the workload is not placed": {hpa, "minReplicas: 3, maxReplicas: 9", nil, "1 1 1", "3 3 3", ""},
		"KEDA may scale to zero":     {scaled, "maxReplicaCount: 9", []int64{4, 4, 1}, "0 0 0", "4 4 1", ""},
		"KEDA's own maximum":         {scaled, "minReplicaCount: 4", []int64{2, 1, 1}, "2 1 1", "50 25 25", ""},
		"KEDA, and a cluster with 0": {scaled, "maxReplicaCount: 9", []int64{2, 0, 1}, "0 0 0", "6 1 3", ""},
	} {
		h := newHub(t, fmt.Sprintf(c.template, c.bounds), 0, 0, 0)
		h.targets(c.target...)
		lowest, highest := "spec.minReplicas=", "spec.maxReplicas="
		if c.template == scaled {
			lowest, highest = "spec.minReplicaCount=", "spec.maxReplicaCount="
		}
		h.expect(name, lowest+c.min, highest+c.max)
		if got := strings.Join(h.messages, "; "); (got == "") != (c.said == "") || !strings.HasPrefix(got, c.said) {
			t.Errorf("%s: it says %q, want %q", name, got, c.said)
		}
	}
}

// targets sets the replicas of the workload by cluster.
func (h *hub) targets(replicas ...int64) {
	h.in.Target = nil
	for i, n := range replicas {
		if h.in.Target == nil {
			h.in.Target = map[string]int64{}
		}
		h.in.Target[h.in.Members[i].Cluster] = n
	}
}

func TestDividedBoundsStayWhileAutoscalersMoveReplicas(t *testing.T) {
	h := newHub(t, fmt.Sprintf(hpa, "minReplicas: 4, maxReplicas: 12"), 0, 0, 0)
	h.targets(2, 2)
	h.expect("two clusters", "spec.minReplicas=2 2 1", "spec.maxReplicas=6 6 1")
	h.targets(6, 1)
	h.expect("one of them got the load", "spec.minReplicas=2 2 1", "spec.maxReplicas=6 6 1")
	h.targets(6, 1, 5)
	h.expect("the third gets replicas", "spec.minReplicas=2 1 1", "spec.maxReplicas=6 1 5")
	h.targets(6, 0, 6)
	h.expect("the second loses them", "spec.minReplicas=2 1 2", "spec.maxReplicas=6 1 6")
	h.targets(3, 0, 6)
	h.edit(int64(18), "spec", "maxReplicas")
	h.expect("another maximum", "spec.minReplicas=1 1 3", "spec.maxReplicas=6 1 12")
	h.in.Members = h.in.Members[2:]
	h.expect("one cluster does the arithmetic itself", "spec.minReplicas=4", "spec.maxReplicas=18")
}

func TestBoundsOfEachClusterAreTheDefault(t *testing.T) {
	h := newHub(t, strings.Replace(fmt.Sprintf(hpa, "minReplicas: 4, maxReplicas: 12"), "argosy.io/rollout-scope: Fleet",
		"a: b", 1), 0, 0)
	h.targets(2, 2)
	h.expect("as in Karmada", "spec.minReplicas=4 4", "spec.maxReplicas=12 12")
}

func TestPausedReplicasOfKEDAAreDivided(t *testing.T) {
	h := newHub(t, fmt.Sprintf(scaled, "maxReplicaCount: 12"), 0, 0, 0)
	const paused = "autoscaling.keda.sh/paused-replicas"
	h.edit("5", "metadata", "annotations", paused)
	h.targets(3, 1, 0)
	h.look()
	r, err := Shares(h.in)
	if err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string]string{"c1": "4", "c2": "1", "c3": "5"} {
		if got := r.Manifests[cluster].GetAnnotations()[paused]; got != want {
			t.Errorf("%s keeps %s, want %s", cluster, got, want)
		}
	}
}

func TestInvalidBoundsAreRefused(t *testing.T) {
	for _, bounds := range []string{"minReplicas: 5, maxReplicas: 4", "minReplicas: many, maxReplicas: 4",
		"minReplicas: -1, maxReplicas: 4", "minReplicas: 1", "minReplicas: 1, maxReplicas: 99999999999"} {
		h := newHub(t, fmt.Sprintf(hpa, bounds), 0, 0)
		if _, err := Shares(h.in); err == nil || !strings.Contains(err.Error(), "are not the least and the most pods") {
			t.Errorf("%s: %v", bounds, err)
		}
	}
}

// The hub labels the template for autoscalers, and still divides its partition; a user's label leaves it to members.
func TestPartitionIsDividedWhereAutoscalersScale(t *testing.T) {
	for annotations, want := range map[string]bool{"": false, "argosy.io/scaled-by: HorizontalPodAutoscaler web": true} {
		h := newHub(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x, labels: {`+
			`resourcetemplate.karmada.io/retain-replicas: "true"}, annotations: {`+annotations+`}}, `+
			`spec: {replicas: 6, updateStrategy: {partition: 50%}}}`, 3, 3)
		if got, err := Concerns(h.in.Template, true); got != want || err != nil {
			t.Errorf("with %q, its partition is divided: %t, %v", annotations, got, err)
		}
	}
}
