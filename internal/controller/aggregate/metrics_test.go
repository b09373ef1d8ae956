package aggregate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/scope"
)

func TestMetricsCountTemplatesByClusterAndHealth(t *testing.T) {
	binding := func(namespace string, healths map[string]workv1alpha1.ResourceHealth,
		clusters ...string) workv1alpha2.Binding {
		b := scope.Bindings.New(namespace)
		for _, c := range clusters {
			b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, workv1alpha2.TargetCluster{Name: c})
		}
		for c, health := range healths {
			b.BindingStatus().AggregatedStatus = append(b.BindingStatus().AggregatedStatus,
				workv1alpha2.AggregatedStatusItem{ClusterName: c, Health: health})
		}
		return b
	}
	got := healths([]workv1alpha2.Binding{
		binding("shop", map[string]workv1alpha1.ResourceHealth{"m1": workv1alpha1.ResourceHealthy,
			"m2": workv1alpha1.ResourceUnhealthy}, "m1", "m2"),
		binding("", map[string]workv1alpha1.ResourceHealth{"m1": workv1alpha1.ResourceHealthy}, "m1", "m2"),
		// It is leaving m1, and counts there no more.
		binding("shop", map[string]workv1alpha1.ResourceHealth{"m1": workv1alpha1.ResourceHealthy, "m2": ""}, "m2"),
		binding("shop", nil),
	})
	want := map[healthIn]int{
		{"m1", workv1alpha1.ResourceHealthy}:   2,
		{"m2", workv1alpha1.ResourceUnhealthy}: 1,
		{"m2", workv1alpha1.ResourceUnknown}:   2,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(healthIn{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
