package aggregate

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestLeavingClusterCountsForMissingReplicas(t *testing.T) {
	for _, c := range []struct{ old, replacement, want string }{
		{`{"readyReplicas":3,"replicas":3}`, ``, `{"readyReplicas":3,"replicas":3}`},
		{`{"readyReplicas":3,"replicas":3}`, `{"replicas":3,"readyReplicas":1}`, `{"readyReplicas":2,"replicas":0}`},
		{`{"readyReplicas":3,"replicas":3,"unavailableReplicas":1}`, `{"replicas":3,"readyReplicas":3}`,
			`{"readyReplicas":0,"replicas":0,"unavailableReplicas":0}`},
	} {
		b := binding("m1")
		b.Spec.Replicas, b.Spec.Clusters[0].Replicas = 3, 3
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"}}
		raw := func(s string) *runtime.RawExtension {
			if s == "" {
				return nil
			}
			return &runtime.RawExtension{Raw: []byte(s)}
		}
		b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: raw(c.replacement)},
			{ClusterName: "m2", Status: raw(c.old)}}
		items := Items(b, nil)
		if got := string(items[1].Status.Raw); got != c.want {
			t.Errorf("beside %s, %s counts as %s, want %s", c.replacement, c.old, got, c.want)
		}
		if got := string(b.Status.AggregatedStatus[1].Status.Raw); got != c.old {
			t.Errorf("the status of the binding became %s", got)
		}
	}
}
