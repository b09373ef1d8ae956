package dispatch_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/core/dispatch"
)

const leavesEU = "placement: {replicaScheduling: {replicaSchedulingType: Divided}}\nreplicas: 5\n" +
	"gracefulEvictionTasks: [{fromCluster: eu, reason: R, producer: P, clustersBeforeFailover: [eu, us], preservedLabelState: {checkpoint: s7}}]\n"

func TestEvictedClusterKeepsItsWork(t *testing.T) {
	in := input(t, deployment, leavesEU+"clusters: [{name: eu, replicas: 1}, {name: us, replicas: 4}]")
	if got := slices.Sorted(maps.Keys(works(t, in))); !slices.Equal(got, []string{"us"}) {
		t.Errorf("Works are made for %v", got)
	}
}

func TestPreservedStateSetsNoMarkOfTheHub(t *testing.T) {
	marks := "{checkpoint: s7, karmada.io/managed: \"false\", work.karmada.io/name: other, work.karmada.io/namespace: karmada-es-other}"
	in := input(t, deployment, strings.Replace(leavesEU, "{checkpoint: s7}", marks, 1)+
		"clusters: [{name: ap, replicas: 2}, {name: us, replicas: 3}]")
	m := manifest(t, works(t, in)["ap"])
	if labels := m.GetLabels(); labels["checkpoint"] != "s7" || labels["karmada.io/managed"] != "true" ||
		labels["work.karmada.io/name"] != "" || labels["work.karmada.io/namespace"] != "" {
		t.Errorf("the labels are %v", labels)
	}
}

func TestReplacementGetsThePreservedStateOnce(t *testing.T) {
	in := input(t, deployment, leavesEU+"clusters: [{name: ap, replicas: 2}, {name: us, replicas: 3}]")
	in.Existing = works(t, in)
	state := func() (all []string) {
		for _, cluster := range []string{"ap", "us"} {
			all = append(all, manifest(t, in.Existing[cluster]).GetLabels()["checkpoint"])
		}
		return all
	}
	if got := state(); !slices.Equal(got, []string{"s7", ""}) {
		t.Errorf("the label is %q in ap and us", got)
	}
	// The task ends; the label stays where it is.
	in.Binding.BindingSpec().GracefulEvictionTasks = nil
	for cluster, w := range works(t, in) {
		if dispatch.Differs(in.Existing[cluster], w) {
			t.Errorf("the Work in %s changes when the task ends", cluster)
		}
	}
}
