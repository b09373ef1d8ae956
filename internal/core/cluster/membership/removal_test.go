package membership

import (
	"testing"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestTargetsSeesAssignmentsAndDependencies(t *testing.T) {
	to := func(names ...string) (targets []workv1alpha2.TargetCluster) {
		for _, n := range names {
			targets = append(targets, workv1alpha2.TargetCluster{Name: n})
		}
		return targets
	}
	for _, b := range []struct {
		story string
		spec  workv1alpha2.ResourceBindingSpec
		want  bool
	}{
		{"nothing assigned", workv1alpha2.ResourceBindingSpec{}, false},
		{"another cluster", workv1alpha2.ResourceBindingSpec{Clusters: to("a", "member10")}, false},
		{"assigned", workv1alpha2.ResourceBindingSpec{Clusters: to("a", "member1")}, true},
		{"required by a binding there",
			workv1alpha2.ResourceBindingSpec{RequiredBy: []workv1alpha2.BindingSnapshot{
				{Clusters: to("a")}, {Clusters: to("member1")}}}, true},
	} {
		if got := Targets(&workv1alpha2.ResourceBinding{Spec: b.spec}, "member1"); got != b.want {
			t.Errorf("%s, namespaced: %t, want %t", b.story, got, b.want)
		}
		if got := Targets(&workv1alpha2.ClusterResourceBinding{Spec: b.spec}, "member1"); got != b.want {
			t.Errorf("%s, cluster-scoped: %t, want %t", b.story, got, b.want)
		}
	}
}
