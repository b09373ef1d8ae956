package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// flink is a FlinkDeployment without replicas of its own.
func flink(name string, managerCPU, managers int) string {
	return fmt.Sprintf(`
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata: {name: %s, namespace: default}
spec:
  jobManager: {replicas: 1, resource: {cpu: %d, memory: 512m}}
  taskManager: {replicas: %d, resource: {cpu: 1, memory: 512m}}
---
`, name, managerCPU, managers)
}

func TestComponentsArePlacedTogetherOnNodes(t *testing.T) {
	var fleet strings.Builder
	fleet.WriteString("\napiVersion: simulate.argosy.io/v1alpha1\nkind: Fleet\nclusters:\n")
	for _, name := range []string{"m1", "m2", "m3"} {
		fmt.Fprintf(&fleet, "- name: %s\n  apis: [flink.apache.org/v1beta1/FlinkDeployment]\n"+
			"  nodes: [{name: node, count: 3, allocatable: {cpu: 32, memory: 64Gi}}]\n", name)
	}
	fleet.WriteString("---\n")
	policy := func(placement string) string {
		return `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: flink, namespace: default}
spec:
  resourceSelectors: [{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment}]
  placement: {clusterAffinity: {clusterNames: [m1, m2]}` + placement + `}
---
`
	}
	const one = ", spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]"
	const divided = ", replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: "
	for name, test := range map[string]struct {
		placement, flink string
		want             []string
	}{
		"a pod larger than any node":    {one, flink("f", 40, 1), []string{"-"}},
		"more pods than the nodes hold": {one, flink("f", 1, 200), []string{"-"}},
		"twenty task managers":          {one, flink("f", 1, 20), []string{"m1", "m2"}},
		"two CPUs":                      {one, flink("f", 2, 1), []string{"m1", "m2"}},
		"aggregated, too large":         {divided + "Aggregated}", flink("f", 40, 1), []string{"-"}},
		"aggregated":                    {divided + "Aggregated}", flink("f", 1, 20), []string{"m1", "m2"}},
		"by capacity": {divided + "Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}",
			flink("f", 1, 20), []string{"m1", "m2"}},
		"weights":    {divided + "Weighted}", flink("f", 1, 20), []string{"m1 m2"}},
		"duplicated": {"", flink("f", 1, 20), []string{"m1 m2"}},
	} {
		r := run(t, load(t, fleet.String()+policy(test.placement)+test.flink), Change{})
		if got := placedOn(r, "f"); !slices.Contains(test.want, got) {
			t.Errorf("%s: it is in %s, want %v: %+v", name, got, test.want, r.Workloads)
		}
		if help := r.Workloads[0].Help; (test.want[0] == "-") != strings.Contains(help, "free capacity for 1 more") {
			t.Errorf("%s: help %q", name, help)
		}
	}
}
