package failover

import (
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestBindingsMoveOutOfLostClustersWithAPolicyOrAFlag(t *testing.T) {
	ofCluster := &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{}}
	ofApplication := &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	for name, c := range map[string]struct {
		options Options
		rule    *policyv1alpha1.FailoverBehavior
		want    bool
	}{
		"no rule":                  {Options{}, nil, false},
		"only an application rule": {Options{}, ofApplication, false},
		"a cluster rule":           {Options{}, ofCluster, true},
		"all bindings":             {Options{AllBindings: true}, nil, true},
		"a cluster rule, but off":  {Options{Off: true}, ofCluster, false},
		"all bindings, but off":    {Options{Off: true, AllBindings: true}, nil, false},
	} {
		if got := c.options.MovesOutOfLost(&workv1alpha2.ResourceBindingSpec{Failover: c.rule}); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
