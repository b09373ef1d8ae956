package simulate

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A hub is recorded without most of the status of its objects.
func TestARunThatEndedOnTheHubNeedsNoOtherCluster(t *testing.T) {
	serving := strings.ReplaceAll(three, "apiEnablements:", "apiEnablements:\n"+
		"  - {groupVersion: batch/v1, resources: [{name: jobs, kind: Job}]}\n"+
		"  - {groupVersion: apps.kruise.io/v1alpha1, resources: [{name: broadcastjobs, kind: BroadcastJob}]}\n"+
		"  - {groupVersion: argoproj.io/v1alpha1, resources: [{name: workflows, kind: Workflow}]}")
	condition := func(kind string) string {
		return fmt.Sprintf(`conditions: [{type: %s, status: "True", message: of the hub}]`, kind)
	}
	for kind, states := range map[string]map[string]string{
		"apiVersion: batch/v1, kind: Job": {"runs": "active: 4", "ended": condition("Complete"),
			"failed": condition("Failed")},
		"apiVersion: argoproj.io/v1alpha1, kind: Workflow": {"runs": "phase: Running", "ended": "phase: Succeeded",
			"failed": "phase: Error"},
		"apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob": {"runs": "phase: running", "ended": "phase: completed",
			"failed": "phase: failed"},
	} {
		for state, status := range states {
			template := fmt.Sprintf("{%s, metadata: {name: run, namespace: default}, spec: {parallelism: 4, completions: 4, "+
				"template: {spec: {containers: [{name: c}]}}}, status: {%s}}", kind, status)
			parts := strings.SplitN(kind, ": ", 3)
			all := settled(t, serving+policy("p", "[{"+kind+"}]", "{clusterAffinity: {clusterNames: [m1]}}")+template)
			var reported map[string]any
			for _, o := range objects(t, template) {
				reported = o.Object["status"].(map[string]any)
				reported["message"] = "secret"
			}
			for i, o := range all {
				if o.GroupVersionKind().Group != "work.karmada.io" {
					continue
				}
				items := []any{map[string]any{"clusterName": "m1", "applied": true, "health": "Healthy", "status": reported}}
				if err := unstructured.SetNestedSlice(o.Object, items, "status", "aggregatedStatus"); err != nil {
					t.Fatal(err)
				}
				all[i].Unstructured = Recorded(o.Unstructured)
				if raw, _ := all[i].MarshalJSON(); strings.Contains(string(raw), "secret") ||
					strings.Contains(string(raw), "aggregatedStatus") != (state != "runs") {
					t.Errorf("%s that %s: recorded as %s", parts[2], state, raw)
				}
			}
			for name, c := range map[string]Change{"removed": {Removed: []string{"m1"}}, "down": {Down: []string{"m1"}},
				"tainted": {Taints: []Taint{taint(t, "m1=a=b:NoExecute")}}} {
				f, err := Load(all, "default")
				if err != nil {
					t.Fatal(err)
				}
				f.failover.AllBindings = false // a warning counts what does not move
				warned := strings.Contains(fmt.Sprint(run(t, f, c).Warnings), "would not be moved out")
				if warned != (name == "down" && state == "runs") {
					t.Errorf("%s that %s, %s: warned of no failover: %t", parts[2], state, name, warned)
				}
				f.failover.AllBindings = true
				r := run(t, f, c)
				w := r.Workloads[0]
				if len(w.Before.Clusters) != 1 {
					t.Fatalf("%s that %s is nowhere before: %s", parts[2], state, w.Problem)
				}
				waits := w.lacks() || len(w.Stays) > 0
				if waits != (state == "runs") || name != "tainted" && r.Summary.Fits() != (state != "runs") {
					t.Errorf("%s that %s, %s: problem %q, stays %q", parts[2], state, name, w.Problem, w.Stays)
				}
			}
		}
	}
}
