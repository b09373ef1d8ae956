package simulate

import (
	"strings"
	"testing"
)

const orderedTerms = "clusterAffinities: [{affinityName: first, clusterNames: [m1]}, " +
	"{affinityName: second, clusterNames: [m2]}]"

// TestWholePolicyMovesToTheNextAffinityTerm has a Deployment and its Service.
func TestWholePolicyMovesToTheNextAffinityTerm(t *testing.T) {
	serving := strings.ReplaceAll(three, "{name: secrets, kind: Secret}",
		"{name: secrets, kind: Secret}, {name: services, kind: Service}")
	const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
`
	types := map[string]string{
		"no replicaScheduling": "{" + orderedTerms + "}",
		"Duplicated":           "{" + orderedTerms + ", replicaScheduling: {replicaSchedulingType: Duplicated}}",
		"Divided":              strings.Replace(packed, "{", "{"+orderedTerms+", ", 1),
	}
	changes := map[string]Change{
		"lost": {Down: []string{"m1"}}, "tainted": {Taints: []Taint{taint(t, "m1=x:NoExecute")}},
		"drained": {Drained: []string{"m1"}}, "unhealthy": {Unhealthy: []string{"m1"}},
	}
	for kind, placement := range types {
		p := strings.Replace(policy("p",
			"[{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Service}]", placement),
			"spec: {", "spec: {propagateDeps: true, failover: {cluster: {}, application: {decisionConditions: {}}}, ", 1)
		for cause, change := range changes {
			t.Run(kind+"/"+cause, func(t *testing.T) {
				r := run(t, load(t, serving+p+deployment("web", 2)+service), change)
				if len(r.Workloads) != 2 {
					t.Fatalf("%d workloads are reported: %+v", len(r.Workloads), r.Workloads)
				}
				for _, w := range r.Workloads {
					if before, after := shares(w.Before), shares(w.After); !strings.HasPrefix(before, "m1") ||
						!strings.HasPrefix(after, "m2") || strings.Contains(after, "m1") || len(w.Stays) > 0 {
						t.Errorf("%s %s goes from %s to %s and says %q, want from m1 to m2", w.Kind, w.Name, before, after, w.Stays)
					}
				}
			})
		}
	}
}

func TestReplacementsOfCopiesHaveRoom(t *testing.T) {
	// m1 has the most room at first, m3 more than m2.
	text := cluster("m1", 20, "") + cluster("m2", 1, "") + cluster("m3", 10, "") + policy("p", "",
		"{spreadConstraints: [{spreadByField: cluster, maxGroups: 1}]}") + deployment("web", 4)
	for cause, change := range map[string]Change{
		"tainted": {Taints: []Taint{taint(t, "m1=x:NoExecute")}}, "drained": {Drained: []string{"m1"}},
		"removed": {Removed: []string{"m1"}},
	} {
		w := run(t, load(t, text), change).Workloads[0]
		if before, after := shares(w.Before), shares(w.After); before != "m1:4" || after != "m3:4" {
			t.Errorf("%s: it goes from %s to %s, want from m1:4 to m3:4", cause, before, after)
		}
	}
}
