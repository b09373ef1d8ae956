package member_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/kruise"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

func status(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, append([]string{"status"}, path...)...)
	return v
}

// hasStatus compares fields of the status of kinds that report no generation.
func hasStatus(want map[string]any) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool {
		for name, v := range want {
			if status(u, name) != v {
				return false
			}
		}
		return true
	}
}

const sidecarSet = `
apiVersion: apps.kruise.io/%s
kind: SidecarSet
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: %[2]s}}
  updateStrategy: {maxUnavailable: 2}
  containers:
  - {name: log, image: "log:1"}
`

// aSidecarSet goes through the life of one, which is the same in both versions.
func aSidecarSet(t *testing.T, c cluster, version, name string) {
	c.t = t
	set := parse(t, fmt.Sprintf(sidecarSet, version, name))
	set.SetNamespace("")
	early := c.create(fmt.Sprintf(workload, "apps/v1", "Deployment", name, 1))
	c.await("ready", early, counts(map[string]int64{"readyReplicas": 1}))
	c.createObject(set)
	c.await("no pod is its own", set, counts(map[string]int64{"matchedPods": 0}))
	revision := status(set, "latestRevision")

	// Pods of later have the sidecar, the one of before does not.
	c.eventually("four pods", func() bool {
		c.patch(early, `{"spec":{"replicas":4}}`)
		return len(c.pods(name)) == 4
	})
	c.await("three pods injected", set,
		counts(map[string]int64{"matchedPods": 3, "updatedPods": 3, "readyPods": 3, "updatedReadyPods": 3}))
	injected := 0
	for _, p := range c.pods(name) {
		if p.Spec.Containers[0].Name == "log" && p.Spec.Containers[0].TerminationMessagePath != "" &&
			p.Annotations["kruise.io/sidecarset-injected-list"] == name {
			injected++
		}
	}
	if injected != 3 {
		t.Errorf("%d pods have the sidecar, want 3 of 4", injected)
	}

	// Another image is for new pods.
	c.patch(set, `{"spec":{"containers":[{"name":"log","image":"log:2"}]}}`)
	c.await("none is updated", set, counts(map[string]int64{"matchedPods": 3, "updatedPods": 0, "readyPods": 3}))
	if status(set, "latestRevision") == revision {
		t.Error("the revision is still the first one")
	}
	c.patch(early, `{"spec":{"replicas":5}}`)
	c.await("the new one is", set, counts(map[string]int64{"matchedPods": 4, "updatedPods": 1, "updatedReadyPods": 1}))

	if err := c.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
}

const unitedDeployment = `
apiVersion: apps.kruise.io/%s
kind: UnitedDeployment
metadata: {name: %s}
spec:
  replicas: 4
  selector: {matchLabels: {app: %[2]s}}
  template:
    %[3]sTemplate:
      metadata: {labels: {app: %[2]s}}
      spec:
        selector: {matchLabels: {app: %[2]s}}
        template:
          metadata: {labels: {app: %[2]s}}
          spec:
            containers:
            - {name: main, image: "nginx:1.25"}
  topology:
    subsets:
    - name: one
      replicas: 1
      nodeSelectorTerm: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [north-1]}]}
    - name: two
`

func aUnitedDeployment(t *testing.T, c cluster, version, template, kind, apiVersion string) {
	c.t = t
	name := "ud-" + strings.ToLower(template)
	u := parse(t, fmt.Sprintf(unitedDeployment, version, name, template))
	c.createObject(u)
	c.await("ready", u, counts(map[string]int64{"replicas": 4, "readyReplicas": 4, "updatedReplicas": 4,
		"updatedReadyReplicas": 4}))
	bySubset := func() map[string]int64 {
		out := map[string]int64{}
		subsets, _, _ := unstructured.NestedSlice(u.Object, "status", "subsetStatuses")
		for _, s := range subsets {
			m := s.(map[string]any)
			out[fmt.Sprint(m["name"])] = m["readyReplicas"].(int64)
		}
		return out
	}
	if got := bySubset(); !maps.Equal(got, map[string]int64{"one": 1, "two": 3}) {
		t.Errorf("subsets %v", got)
	}
	first := status(u, "currentRevision")
	if updated := status(u, "updatedRevision"); version == "v1beta1" && updated != first {
		t.Errorf("revisions %v and %v", first, updated)
	}
	if updated := status(u, "updateStatus", "updatedRevision"); version == "v1alpha1" && updated != first {
		t.Errorf("revisions %v and %v", first, updated)
	}
	children := &unstructured.UnstructuredList{}
	children.SetAPIVersion(apiVersion)
	children.SetKind(kind + "List")
	if err := c.List(t.Context(), children, client.InNamespace("default"),
		client.MatchingLabels{"app": name}); err != nil || len(children.Items) != 2 {
		t.Fatalf("%d children, %v; want 2", len(children.Items), err)
	}

	c.patch(u, fmt.Sprintf(
		`{"spec":{"template":{"%sTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:1.26"}]}}}}}}}`, template))
	c.await("updated", u, func(u *unstructured.Unstructured) bool {
		return counts(map[string]int64{"replicas": 4, "readyReplicas": 4, "updatedReadyReplicas": 4})(u) &&
			status(u, "currentRevision") != first
	})
	c.patch(u, `{"spec":{"replicas":3,"topology":{"subsets":[{"name":"two"},{"name":"three","replicas":"50%"}]}}}`)
	c.await("other subsets", u, func(u *unstructured.Unstructured) bool {
		return counts(map[string]int64{"replicas": 3, "readyReplicas": 3, "updatedReadyReplicas": 3})(u) &&
			maps.Equal(bySubset(), map[string]int64{"two": 1, "three": 2})
	})
	if err := c.Delete(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	c.eventually("its pods are gone", func() bool { return len(c.pods(name)) == 0 })
}

const broadcastJob = `
apiVersion: apps.kruise.io/%s
kind: BroadcastJob
metadata: {name: %s}
spec:
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: "busybox:1"}
`

func aBroadcastJob(t *testing.T, c cluster, version string) {
	c.t = t
	u := c.create(fmt.Sprintf(broadcastJob, version, "all"))
	c.await("complete", u, hasStatus(map[string]any{"phase": "completed", "desired": int64(2), "succeeded": int64(2),
		"active": int64(0), "failed": int64(0)}))
	nodes := map[string]bool{}
	for _, p := range c.pods("all") {
		nodes[p.Spec.NodeName] = true
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if len(nodes) != 2 || len(conditions) != 1 || conditions[0].(map[string]any)["type"] != "Complete" ||
		status(u, "completionTime") == nil {
		t.Errorf("nodes %v, status %v", nodes, u.Object["status"])
	}

	failing := parse(t, fmt.Sprintf(broadcastJob, version, "failing"))
	if err := unstructured.SetNestedField(failing.Object, "3", "spec", "template", "metadata", "annotations",
		"sim.argosy.io/exit-code"); err != nil {
		t.Fatal(err)
	}
	c.createObject(failing)
	c.await("failed", failing, hasStatus(map[string]any{"phase": "failed", "active": int64(0)}))

}

const workflow = `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: %s}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - {name: build, template: %s}
    - - {name: east, template: ok}
      - {name: west, template: ok}
  - {name: ok, container: {image: "busybox:1"}}
  - {name: slow, container: {image: "busybox:1"}, metadata: {annotations: {sim.argosy.io/runs-for: 1s}}}
  - {name: bad, container: {image: "busybox:1"}, metadata: {annotations: {sim.argosy.io/exit-code: "2"}}}
`

func TestTheRestOfOpenKruiseAndArgo(t *testing.T) {
	kit.Long(t)
	m := sharedFleet(t).Members()[0]
	inner := connect(t, m)

	t.Run("a SidecarSet", func(t *testing.T) { aSidecarSet(t, inner, "v1alpha1", "mesh") })
	for _, kind := range [][3]string{
		{"deployment", "Deployment", "apps/v1"},
		{"cloneSet", "CloneSet", "apps.kruise.io/v1alpha1"},
		{"advancedStatefulSet", "StatefulSet", "apps.kruise.io/v1beta1"},
		{"statefulSet", "StatefulSet", "apps/v1"},
	} {
		t.Run("a UnitedDeployment of "+kind[0],
			func(t *testing.T) { aUnitedDeployment(t, inner, "v1alpha1", kind[0], kind[1], kind[2]) })
	}
	t.Run("a BroadcastJob", func(t *testing.T) { aBroadcastJob(t, inner, "v1alpha1") })

	t.Run("a Workflow", func(t *testing.T) {
		c := cluster{t: t, Client: inner.Client}
		u := c.create(fmt.Sprintf(workflow, "good", "slow"))
		c.await("running", u, hasStatus(map[string]any{"phase": "Running", "progress": "0/1"}))
		c.await("succeeded", u, hasStatus(map[string]any{"phase": "Succeeded", "progress": "3/3"}))
		if u.GetLabels()["workflows.argoproj.io/phase"] != "Succeeded" ||
			u.GetLabels()["workflows.argoproj.io/completed"] != "true" {
			t.Errorf("labels %v", u.GetLabels())
		}
		if status(u, "startedAt") == nil || status(u, "finishedAt") == nil {
			t.Errorf("status %v", u.Object["status"])
		}
	})
	t.Run("a Workflow that fails", func(t *testing.T) {
		c := cluster{t: t, Client: inner.Client}
		u := c.create(fmt.Sprintf(workflow, "poor", "bad"))
		c.await("failed", u, hasStatus(map[string]any{"phase": "Failed", "progress": "0/1"}))
		nodes, _, _ := unstructured.NestedMap(u.Object, "status", "nodes")
		if !slices.ContainsFunc(slices.Collect(maps.Values(nodes)), func(n any) bool {
			return n.(map[string]any)["message"] == "main: Error (exit code 2)"
		}) {
			t.Errorf("nodes %v: none says how it ended", nodes)
		}
	})
	t.Run("a Workflow is suspended and resumed", func(t *testing.T) {
		c := cluster{t: t, Client: inner.Client}
		text := strings.Replace(fmt.Sprintf(workflow, "held", "slow"), "spec:", "spec:\n  suspend: true", 1)
		u := c.create(text)
		c.await("it begins nothing", u, hasStatus(map[string]any{"phase": "Running", "progress": "0/0"}))
		c.patch(u, `{"spec":{"suspend":null}}`)
		c.await("it goes on", u, hasStatus(map[string]any{"progress": "0/1"}))
	})
	t.Logf("memory %d MiB", m.RSS()>>20)
}

func TestAMemberServesTheVersionsOfItsRelease(t *testing.T) {
	kit.Long(t)
	o := sim.Options{Dir: t.TempDir(), Log: testLog{t}, Members: []sim.Member{{
		Name: "newest", Nodes: 2, Zone: "north-1", OpenKruise: kruise.Release1_10,
	}, {
		Name: "strict", Nodes: 2, Zone: "north-1", OpenKruise: kruise.Release1_10, StoredVersionsOnly: true,
	}}}
	fleet, err := sim.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fleet.Stop() })
	m := fleet.Members()[0]
	c := connect(t, m)

	t.Run("an older version is converted, unless it is not served at all", func(t *testing.T) {
		old := parse(t, fmt.Sprintf(workload, "apps.kruise.io/v1alpha1", "CloneSet", "old", 2))
		old.Object["spec"].(map[string]any)["updateStrategy"] = map[string]any{"type": "InPlaceIfPossible",
			"maxUnavailable": int64(1)}
		c := cluster{t: t, Client: c.Client}
		strict := connect(t, fleet.Members()[1])
		if err := strict.Create(t.Context(), old.DeepCopy()); err == nil ||
			!strings.Contains(err.Error(), "no matches for kind") {
			t.Errorf("a member that serves v1beta1 alone answers %v", err)
		}
		c.createObject(old)
		c.await("ready", old, counts(map[string]int64{"readyReplicas": 2}))
		u := old.DeepCopy()
		u.SetAPIVersion("apps.kruise.io/v1beta1")
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		if policy, _, _ := unstructured.NestedString(u.Object, "spec", "updateStrategy", "rollingUpdate",
			"podUpdatePolicy"); policy != "InPlaceIfPossible" {
			t.Errorf("spec %v", u.Object["spec"])
		}
	})
	t.Run("a CloneSet", func(t *testing.T) {
		c := cluster{t: t, Client: c.Client}
		u := parse(t, fmt.Sprintf(workload, "apps.kruise.io/v1beta1", "CloneSet", "web", 3))
		u.Object["spec"].(map[string]any)["updateStrategy"] = map[string]any{"rollingUpdate": map[string]any{
			"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}}
		c.createObject(u)
		c.await("ready", u, counts(map[string]int64{"readyReplicas": 3, "expectedUpdatedReplicas": 3}))
		before := uids(c.pods("web"))
		c.patch(u, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}},"template":{"spec":{"containers":[{"name":"main","image":"nginx:1.26"}]}}}}`)
		c.await("two of three", u, counts(map[string]int64{"readyReplicas": 3, "updatedReadyReplicas": 2,
			"expectedUpdatedReplicas": 2}))
		if after := uids(c.pods("web")); !maps.Equal(before, after) {
			t.Errorf("pods %v, before %v", after, before)
		}
		c.patch(u, `{"spec":{"updateStrategy":{"type":"OnDelete"},"template":{"spec":{"containers":[{"name":"main","image":"nginx:1.27"}]}}}}`)
		c.await("none of the newest", u, counts(map[string]int64{"readyReplicas": 3, "updatedReplicas": 0}))
		if err := c.Delete(t.Context(), &c.pods("web")[0]); err != nil {
			t.Fatal(err)
		}
		c.await("one of the newest", u, counts(map[string]int64{"readyReplicas": 3, "updatedReplicas": 1}))
	})
	t.Run("a UnitedDeployment", func(t *testing.T) {
		aUnitedDeployment(t, c, "v1beta1", "cloneSet", "CloneSet", "apps.kruise.io/v1beta1")
	})
	t.Run("a BroadcastJob", func(t *testing.T) { aBroadcastJob(t, c, "v1beta1") })
	t.Run("a SidecarSet", func(t *testing.T) { aSidecarSet(t, c, "v1beta1", "mesh") })
	t.Logf("memory %d MiB", m.RSS()>>20)
}
