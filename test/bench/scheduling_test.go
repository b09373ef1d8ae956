package main

import (
	"slices"
	"testing"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// What the benchmark waits for is what the scheduler does with its bindings.
func TestBindingsOfTheBenchmarkAreScheduledAsExpected(t *testing.T) {
	b := unplaced(7)
	if !schedule.PlacedBy(b, "") && !schedule.PlacedBy(b, "default-scheduler") {
		t.Error("nobody schedules them")
	}
	var fleet []*clusterv1alpha1.Cluster
	for i := range 10 {
		fleet = append(fleet, silent(i))
	}
	place := func(want []string) {
		t.Helper()
		r, err := schedule.Schedule(b, schedule.NewSnapshot(fleet), nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Spec.Clusters = r.Clusters
		var got []string
		for _, c := range r.Clusters {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("they are placed in %q, want %q", got, want)
		}
	}
	place(chosen(0))
	unlabelled := fleet[0].DeepCopy()
	delete(unlabelled.Labels, meant)
	if !schedule.Affects(b, fleet[0], unlabelled, schedule.Plugins{}) {
		t.Error("the label does not concern them")
	}
	fleet[0] = unlabelled
	place(chosen(1))
}
