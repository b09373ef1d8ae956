package membership_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

func TestReadiness(t *testing.T) {
	of := func(status metav1.ConditionStatus) *clusterv1alpha1.Cluster {
		return &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
			Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: "R"}}}}
	}
	for name, c := range map[string]struct {
		cluster               *clusterv1alpha1.Cluster
		ready, silent, outage bool
	}{
		"one that answers":               {of(metav1.ConditionTrue), true, false, false},
		"one that does not":              {of(metav1.ConditionFalse), false, true, true},
		"one of which that is not known": {of(metav1.ConditionUnknown), false, true, true},
		"before the first probe":         {&clusterv1alpha1.Cluster{}, false, false, false},
		"one that is not in the fleet":   {nil, false, true, false},
	} {
		if membership.IsReady(c.cluster) != c.ready || membership.KnownNotReady(c.cluster) != c.silent ||
			(membership.OutageOf(c.cluster) != nil) != c.outage {
			t.Errorf("%s: ready is %v, silent %v, an outage %v", name, membership.IsReady(c.cluster),
				membership.KnownNotReady(c.cluster), membership.OutageOf(c.cluster))
		}
	}
}
