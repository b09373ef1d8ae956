package simulate

import (
	"strings"
	"testing"
)

func TestWhatLimitsReplicasIsNamed(t *testing.T) {
	const placement = "{clusterAffinity: {clusterNames: [m1, m2]}, replicaScheduling: {replicaSchedulingType: Divided, " +
		"replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}"
	const limit = ": ResourceQuota team of namespace default limits cpu"
	const m2 = "m2: nodes that lack cpu: 10 of 11; nodes with a taint that it does not tolerate: 1 of 11"
	quota := func(cluster, name string) (was, is string) {
		return "- name: " + cluster + "\n", "- name: " + cluster + "\n  quotas: [{namespace: default, name: " + name +
			", left: {cpu: 3}}]\n"
	}
	for name, c := range map[string]struct {
		quotas map[string]string
		want   string
	}{
		"none":             {nil, "m1: nodes that lack cpu: 4 of 4; " + m2},
		"one":              {map[string]string{"m1": "team"}, "m1" + limit + "; " + m2},
		"the same in both": {map[string]string{"m1": "team", "m2": "team"}, "m1, m2" + limit},
		"another in second": {map[string]string{"m1": "team", "m2": "all"}, "m1" + limit + "; m2" +
			": ResourceQuota all of namespace default limits cpu"},
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
		if _, tail, _ := strings.Cut(w.WouldFit[0], "; "); tail != c.want {
			t.Errorf("%s: %q, want the end %q", name, w.WouldFit[0], c.want)
		}
	}
}
