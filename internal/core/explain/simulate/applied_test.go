package simulate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// The API server sets the defaults of the schema before the hub compares a policy with the former one.
func TestAPolicyOfAFileGetsTheDefaultsOfTheSchema(t *testing.T) {
	failover := strings.NewReplacer("spec: {", "spec: {propagateDeps: true, failover: {application: {decisionConditions: {}}, cluster: {}}, ")
	bare := map[string]string{
		"a policy":                      policy("shop", "", byRoom),
		"a policy with failover":        failover.Replace(policy("shop", "", byRoom)),
		"a policy with few preferences": policy("shop", "", "{replicaScheduling: {}}"),
		"a cluster policy": strings.NewReplacer("PropagationPolicy", "ClusterPropagationPolicy", ", namespace: default",
			"").Replace(policy("shop", "", byRoom)),
	}
	for name, written := range bare {
		full := strings.NewReplacer("spec: {", "spec: {schedulerName: default-scheduler, priority: 0, preemption: Never, "+
			"conflictResolution: Abort, ", "decisionConditions: {}", "purgeMode: Gracefully, gracePeriodSeconds: 600, "+
			"decisionConditions: {tolerationSeconds: 300}", "cluster: {}", "cluster: {purgeMode: Gracefully}",
			"replicaScheduling: {}", "replicaScheduling: {replicaSchedulingType: Divided}").Replace(written)
		for form, c := range map[string]struct{ fleet, file string }{
			"on the hub":  {full, written},
			"in the file": {written, full},
		} {
			f, err := Load(recordOf(t, settledFleet(t, three+c.fleet+deployment("web", 9))), "default")
			if err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), f, Change{Namespace: "default", Objects: objects(t, c.file)})
			if err != nil || r.Summary.Changed != 0 || !r.Summary.Fits() {
				t.Errorf("%s, with the defaults %s: %v, %+v", name, form, err, r.Summary)
			}
		}
	}
	other := strings.Replace(policy("shop", "", byRoom), "spec: {", "spec: {schedulerName: other, ", 1)
	if _, err := Run(t.Context(), load(t, three+policy("shop", "", byRoom)), Change{Namespace: "default",
		Objects: objects(t, other)}); err == nil || !strings.Contains(err.Error(), "should not be updated") {
		t.Errorf("another scheduler: %v", err)
	}
}

// The hub serves all versions of a kind, and stores one: what it converts is no change.
func TestAManifestInAnotherVersionOfItsKindIsNoChange(t *testing.T) {
	shop, err := os.ReadFile("../../../../examples/shop/cloneset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const pods = `, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: ` +
		`{containers: [{name: c, image: "web:1"}]}}}`
	for name, written := range map[string]string{
		"CloneSet": string(shop),
		"StatefulSet": `{apiVersion: apps.kruise.io/v1alpha1, kind: StatefulSet, metadata: {name: web}, spec: {replicas: 3, ` +
			`reserveOrdinals: [1], updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}` + pods + "}",
		"DaemonSet": `{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, metadata: {name: web}, spec: ` +
			`{updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: Surging, maxSurge: 1}}` + pods + "}",
		"Rollout": `{apiVersion: rollouts.kruise.io/v1alpha1, kind: Rollout, metadata: {name: web, annotations: ` +
			`{rollouts.kruise.io/rolling-style: partition}}, spec: {objectRef: {workloadRef: {apiVersion: apps/v1, ` +
			`kind: Deployment, name: web}}, strategy: {canary: {steps: [{weight: 5, replicas: 1}]}}}}`,
	} {
		old := objects(t, written)[0]
		old.SetNamespace("default")
		u, err := kruise.Convert(old.Unstructured, schema.GroupVersion{Group: old.GroupVersionKind().Group,
			Version: "v1beta1"}.String())
		if err != nil {
			t.Fatal(err)
		}
		stored := Object{u, "v1beta1"}
		selector := "[{apiVersion: " + u.GetAPIVersion() + ", kind: " + name + "}]"
		for direction, c := range map[string]struct{ fleet, file Object }{"up": {stored, old}, "down": {old, stored}} {
			serves := strings.Replace(three, "{groupVersion: apps/v1, resources: [",
				"{groupVersion: "+c.fleet.GetAPIVersion()+", resources: [{name: x, kind: "+name+"}]}\n  - "+
					"{groupVersion: apps/v1, resources: [", 1)
			all := append(objects(t, serves+policy("all", selector, "{clusterAffinity: {clusterNames: [m1]}}")), c.fleet)
			f, err := Load(all, "default")
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, f, Change{Objects: []Object{c.file}})
			if len(r.Workloads) != 1 || len(r.Workloads[0].After.Clusters) != 1 || r.Summary.Changed != 0 {
				t.Errorf("%s, %s: it reports %+v", name, direction, r.Workloads)
			}
			edited := Object{c.file.DeepCopy(), "file"}
			edited.SetLabels(map[string]string{"tier": "x"})
			w := run(t, f, Change{Objects: []Object{edited}}).Workloads[0]
			if len(w.Overridden) != 1 || len(w.Overridden[0].Changes) != 1 || w.APIVersion != c.fleet.GetAPIVersion() {
				t.Errorf("%s, %s: another label is reported as %+v of %s", name, direction, w.Overridden, w.APIVersion)
			}
		}
	}
}

// An override that fails is reported for each workload that it selects, whatever else a change contains.
func TestAFailingOverrideIsReportedForEachWorkload(t *testing.T) {
	overriding := func(name, path string) string {
		return `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: ` + name + `, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules: [{overriders: {plaintext: [{path: ` + path + `, operator: replace, value: "x"}]}}]
---
`
	}
	broken, works := overriding("edit", "/spec/none/such"), overriding("edit", "/spec/template/spec/containers/0/image")
	shop := three + policy("shop", "", "{clusterAffinity: {clusterNames: [m1]}}") + deployment("api", 1)
	web := deployment("web", 1)
	for name, c := range map[string]struct {
		fleet, files             string
		unplaced, changed, shown int
	}{
		"a new policy and a template of the hub":       {shop + web, broken, 1, 0, 1},
		"a changed policy and a template of the hub":   {shop + web + works, broken, 1, 0, 1},
		"a policy of the hub, and nothing":             {shop + web + broken, "", 1, 0, 0},
		"a policy of the hub and another template":     {shop + web + broken, deployment("api", 1), 1, 0, 0},
		"a policy of the hub and the same template":    {shop + web + broken, web, 1, 0, 1},
		"a policy of the hub and an edited template":   {shop + web + broken, deployment("web", 2), 1, 1, 1},
		"a policy of the hub and a new template":       {shop + broken, web, 1, 1, 1},
		"a new policy and a new template":              {shop, broken + web, 1, 1, 1},
		"a policy that is mended":                      {shop + web + broken, works, 0, 1, 1},
		"a policy that works, and the same template":   {shop + web + works, web, 0, 0, 0},
		"a policy that works, in the file and the hub": {shop + web + works, works, 0, 0, 0},
	} {
		f, err := Load(recordOf(t, settledFleet(t, c.fleet)), "default")
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, f, Change{Objects: objects(t, c.files)})
		if narrow := r.Narrow(); r.Summary.Unplaced != c.unplaced || r.Summary.Changed != c.changed ||
			len(narrow.Workloads) != c.shown || narrow.Summary.Unplaced != min(c.unplaced, c.shown) {
			t.Errorf("%s: %+v, of the change %+v", name, r.Summary, narrow.Workloads)
		}
		var out strings.Builder
		if err := r.Print(&out, false); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "web in m1: apply OverridePolicy default/edit") != (c.unplaced > 0) {
			t.Errorf("%s: it prints\n%s", name, &out)
		}
	}
}

// Tenants choose the kinds and names in their policies.
func TestAReportDoesNotControlATerminal(t *testing.T) {
	const hostile = `"x\e[2Jy\nfake\rz\u202e"`
	f := load(t, three+deployment("web", 3)+
		policy("a", "[{apiVersion: apps/v1, kind: "+hostile+"}]", "{clusterAffinity: {clusterNames: [m1]}}")+
		policy("b", "", "{clusterAffinity: {clusterNames: ["+hostile+"]}}"))
	r := run(t, f, Change{Objects: objects(t, strings.Replace(deployment("web", 3), "name: web",
		"name: "+hostile, 1))})
	r.Clusters[0].Name = "x\x1b[2Jy\nfake\rz\u202e" // which no file can have
	r.Change = append(r.Change, hostile, "x\x1b[2Jy\nfake\rz\u202e")
	r.Warnings = append(r.Warnings, "x\x1b[2Jy\nfake\rz\u202e")
	var out strings.Builder
	if err := r.Print(&out, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "x [2Jy fake z") {
		t.Errorf("it does not name the cluster:\n%s", &out)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "fake") || strings.ContainsAny(line, "\x1b\r\u202e") {
			t.Errorf("it prints %q", line)
		}
	}
}

func TestARunThatEndedNeedsNoCluster(t *testing.T) {
	const (
		job      = "{apiVersion: batch/v1, kind: Job, metadata: {name: run, namespace: default}, spec: {parallelism: 4, completions: 4, template: {spec: {containers: [{name: c}]}}}, status: {%s}}\n---\n"
		workflow = "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: run, namespace: default}, spec: {entrypoint: main}, status: {%s}}\n---\n"
		complete = `conditions: [{type: Complete, status: "True"}]`
		failed   = `conditions: [{type: Failed, status: "True"}]`
		alone    = "{clusterAffinity: {clusterNames: [m1]}}"
		both     = "{clusterAffinity: {clusterNames: [m1, m2]}, spreadConstraints: [{spreadByField: cluster, minGroups: 2}], "
		divided  = both + "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}"
	)
	for name, c := range map[string]struct {
		template, status, placement string
		removed                     []string
		lacks                       bool
	}{
		"a Job":                       {job, complete, alone, []string{"m1"}, false},
		"a Job that failed":           {job, failed, alone, []string{"m1"}, false},
		"a Job that runs":             {job, "active: 4", alone, []string{"m1"}, true},
		"a divided Job":               {job, complete, divided, []string{"m1"}, false},
		"a divided Job, without all":  {job, complete, divided, []string{"m1", "m2"}, false},
		"a divided Job that failed":   {job, failed, divided, []string{"m1"}, false},
		"a divided Job that runs":     {job, "active: 4", divided, []string{"m1"}, true},
		"a Workflow":                  {workflow, "phase: Succeeded", alone, []string{"m1"}, false},
		"a Workflow that failed":      {workflow, "phase: Error", alone, []string{"m1"}, false},
		"a Workflow that runs":        {workflow, "phase: Running", alone, []string{"m1"}, true},
		"a Workflow in another place": {workflow, "phase: Running", alone, []string{"m2"}, false},
		"a Workflow that never ran":   {workflow, "", alone, []string{"m1"}, true},
		"a Job in each, one of them":  {job, complete, both + "}", []string{"m1"}, true},
		"a Job in each, without any":  {job, complete, both + "}", []string{"m1", "m2"}, false},
	} {
		serving := strings.ReplaceAll(three, "apiEnablements:", "apiEnablements:\n"+
			"  - {groupVersion: batch/v1, resources: [{name: jobs, kind: Job}]}\n"+
			"  - {groupVersion: argoproj.io/v1alpha1, resources: [{name: workflows, kind: Workflow}]}")
		f := load(t, serving+policy("p", "[{apiVersion: batch/v1, kind: Job}, "+
			"{apiVersion: argoproj.io/v1alpha1, kind: Workflow}]", c.placement)+fmt.Sprintf(c.template, c.status))
		r := run(t, f, Change{Removed: c.removed})
		w := r.Workloads[0]
		if len(w.Before.Clusters) == 0 {
			t.Fatalf("%s: it is nowhere before: %s", name, w.Problem)
		}
		if w.lacks() != c.lacks || r.Summary.Fits() == c.lacks {
			t.Errorf("%s: it lacks a cluster: %t, %d replicas; want %t: %s", name, w.lacks(), w.Unplaced, c.lacks, w.Problem)
		}
	}
}
