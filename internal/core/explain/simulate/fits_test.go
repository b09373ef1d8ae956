package simulate

import (
	"strings"
	"testing"
)

func TestAQuotaThatLimitsReplicasIsNamed(t *testing.T) {
	const placement = "{clusterAffinity: {clusterNames: [m1, m2]}, replicaScheduling: {replicaSchedulingType: Divided, " +
		"replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}"
	const limit = " ResourceQuota team of namespace default limits cpu"
	quota := func(cluster, name string) (was, is string) {
		return "- name: " + cluster + "\n", "- name: " + cluster + "\n  quotas: [{namespace: default, name: " + name +
			", left: {cpu: 3}}]\n"
	}
	for name, c := range map[string]struct {
		quotas map[string]string
		want   string
	}{
		"none":              {nil, ""},
		"one":               {map[string]string{"m1": "team"}, "m1" + limit},
		"the same in both":  {map[string]string{"m1": "team", "m2": "team"}, "m1, m2" + limit},
		"another in second": {map[string]string{"m1": "team", "m2": "all"}, "m1" + limit},
	} {
		fleet := strings.ReplaceAll(made, "cpu: 1500m", "cpu: 5")
		for cluster, q := range c.quotas {
			was, is := quota(cluster, q)
			fleet = strings.Replace(fleet, was, is, 1)
		}
		r := run(t, load(t, fleet+policy("p", "", placement)+deployment("web", 100)), Change{})
		w := r.Workloads[0]
		if len(w.WouldFit) == 0 {
			t.Fatalf("%s: it fits: %+v", name, w)
		}
		if _, tail, _ := strings.Cut(w.WouldFit[0], "; in "); tail != c.want {
			t.Errorf("%s: %q, want the end %q", name, w.WouldFit[0], c.want)
		}
	}
}
