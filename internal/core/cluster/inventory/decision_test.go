package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// binding is placed in clusters from to, which are numbered, and leaves others.
func binding(from, to int, leaves ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "1"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	b.Spec.SchedulerName = "default-scheduler"
	for i := from; i < to; i++ {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: fmt.Sprintf("c%03d", i)})
	}
	for _, name := range leaves {
		b.Spec.GracefulEvictionTasks = append(b.Spec.GracefulEvictionTasks,
			workv1alpha2.GracefulEvictionTask{FromCluster: name})
	}
	return b
}

// slicesOf are PlacementDecisions as NAME:CLUSTERS.
func slicesOf(all []multiclusterv1alpha1.PlacementDecision) string {
	var words []string
	for _, d := range all {
		words = append(words, fmt.Sprintf("%s:%d", d.Name, len(d.Decisions)))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestDecisionsOfABinding(t *testing.T) {
	decide := func(b *workv1alpha2.ResourceBinding, were []multiclusterv1alpha1.PlacementDecision) (write,
		gone []multiclusterv1alpha1.PlacementDecision) {
		return Decisions(b, Decided(b, "fleet"), were)
	}
	of := func(b *workv1alpha2.ResourceBinding) []multiclusterv1alpha1.PlacementDecision {
		all, _ := decide(b, nil)
		return all
	}
	edited := of(binding(0, 2))
	edited[0].Decisions, edited[0].Labels = edited[0].Decisions[:1], nil
	for story, tc := range map[string]struct {
		binding     *workv1alpha2.ResourceBinding
		were        []multiclusterv1alpha1.PlacementDecision
		write, gone string
	}{
		"no cluster yet":           {binding(0, 0), nil, "", ""},
		"one":                      {binding(0, 1), nil, "web-deployment-0:1", ""},
		"a hundred":                {binding(0, 100), nil, "web-deployment-0:100", ""},
		"one more":                 {binding(0, 101), nil, "web-deployment-0:100 web-deployment-1:1", ""},
		"250":                      {binding(0, 250), nil, "web-deployment-0:100 web-deployment-1:100 web-deployment-2:50", ""},
		"nothing changed":          {binding(0, 250), of(binding(0, 250)), "", ""},
		"being scheduled again":    {binding(0, 0), of(binding(0, 2)), "", ""},
		"leaving the last cluster": {binding(0, 0, "c000"), of(binding(0, 1)), "web-deployment-0:1", ""},
		"another cluster":          {binding(1, 2), of(binding(0, 1)), "web-deployment-0:1", ""},
		"from two objects to one": {binding(50, 101), of(binding(0, 101)), "web-deployment-0:51",
			"web-deployment-1:1"},
		"a cluster joins, and none moves between objects": {binding(0, 151), of(binding(1, 151)), "web-deployment-1:51", ""},
		"edited by others": {binding(0, 2), edited, "web-deployment-0:2", ""},
	} {
		write, gone := decide(tc.binding, tc.were)
		if got := slicesOf(write); got != tc.write {
			t.Errorf("%s: %q is written, want %q", story, got, tc.write)
		}
		left := slices.Clone(write)
		for _, was := range tc.were {
			if !strings.Contains(tc.write+" "+tc.gone, was.Name+":") {
				left = append(left, was)
			}
		}
		if again, _ := decide(tc.binding, left); len(again) > 0 {
			t.Errorf("%s: %q is written twice", story, slicesOf(again))
		}
		if got := slicesOf(gone); got != tc.gone {
			t.Errorf("%s: %q is deleted, want %q", story, got, tc.gone)
		}
	}

	foreign := multiclusterv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: "db-deployment-0"}}
	if got := BindingName(&foreign); got != "db-deployment" || IsDecision(&foreign) {
		t.Errorf("the foreign one is for binding %q", got)
	}
	d := of(binding(0, 1, "c001", "c000"))[0]
	if got := BindingName(&d); got != "web-deployment" {
		t.Errorf("it is for binding %q", got)
	}
	if got := fmt.Sprint(d.Decisions); got != "[{{c000 fleet} The scheduler chose the cluster.} "+
		"{{c001 fleet} The workload leaves the cluster once it runs elsewhere.}]" {
		t.Errorf("the decisions are %s", got)
	}
	if got := fmt.Sprint(d.Labels); got != "map[multicluster.x-k8s.io/decision-index:0 "+
		"multicluster.x-k8s.io/decision-key:web-deployment multicluster.x-k8s.io/placement-key:web-deployment]" {
		t.Errorf("the labels are %s", got)
	}
	if !IsDecision(&d) || d.SchedulerName != "default-scheduler" {
		t.Errorf("it is %+v", d)
	}
}

// Whatever happens, a cluster that stays is in one of the objects after each write.
func TestClustersThatStayAreAlwaysInADecision(t *testing.T) {
	stored := map[string]multiclusterv1alpha1.PlacementDecision{}
	for step, b := range []*workv1alpha2.ResourceBinding{binding(0, 250), binding(120, 250), binding(40, 230),
		binding(0, 300), binding(290, 300)} {
		was := map[string]bool{}
		var were []multiclusterv1alpha1.PlacementDecision
		for _, d := range stored {
			were = append(were, d)
			for _, c := range d.Decisions {
				was[c.ClusterProfileRef.Name] = true
			}
		}
		write, gone := Decisions(b, Decided(b, ""), were)
		check := func() {
			t.Helper()
			is := map[string]bool{}
			for _, d := range stored {
				for _, c := range d.Decisions {
					is[c.ClusterProfileRef.Name] = true
				}
			}
			for _, c := range b.Spec.Clusters {
				if was[c.Name] && !is[c.Name] {
					t.Errorf("step %d: %s is in no PlacementDecision for a moment", step, c.Name)
				}
			}
		}
		for _, d := range write {
			stored[d.Name] = d
			check()
		}
		for _, d := range gone {
			delete(stored, d.Name)
			check()
		}
		n := 0
		for _, d := range stored {
			n += len(d.Decisions)
		}
		if n != len(b.Spec.Clusters) {
			t.Errorf("step %d: %d clusters, want %d", step, n, len(b.Spec.Clusters))
		}
	}
}
