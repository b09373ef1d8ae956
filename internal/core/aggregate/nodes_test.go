package aggregate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/test/kit/coretest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// workflow returns a Workflow with the status. made is the UID of the template from which a member's was created.
func workflow(t *testing.T, made, status string) *unstructured.Unstructured {
	t.Helper()
	if status == "" {
		status = "{}"
	}
	return coretest.Object(t, fmt.Sprintf(`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w, namespace: shop, uid: "1",
		annotations: {%s: %q}}, spec: {entrypoint: main}, status: %s}`, workv1alpha2.TemplateUIDAnnotation, made, status))
}

func TestTemplateHasNodesOfItsOnlyCluster(t *testing.T) {
	const (
		nine, ten = `startedAt: "2026-01-01T09:00:00Z"`, `startedAt: "2026-01-01T10:00:00Z"`
		a         = `nodes: {w: {id: w, type: Steps, phase: Running, children: [w-1]}, w-1: {id: w-1, type: Pod, phase: Running}}`
		b         = `nodes: {w: {id: w, type: Steps, phase: Succeeded, children: [w-1]}, w-1: {id: w-1, type: Pod, phase: Succeeded}}`
		offload   = `conditions: [{type: NodesOmitted, status: "True", message: "Argo's controller in cluster \"m1\" stores the nodes in its database, which the hub cannot read; view the Workflow in that cluster"}]`
		broken    = `conditions: [{type: NodesOmitted, status: "True", message: "the nodes in cluster \"m1\" are not in the format of Argo's controller"}]`
	)
	for _, c := range []struct {
		name string
		// read is the template's status, folded what Works made of it, seen the one in the member, of the template made; "-"
		// is not known.
		read, folded, made, seen string
		want                     string
	}{
		{"its first ones", ``, `{phase: Running, ` + nine + `}`, "1", `{phase: Running, ` + nine + `, ` + a + `}`,
			`{phase: Running, ` + nine + `, ` + a + `}`},
		{"those that follow", `{phase: Running, ` + nine + `, ` + a + `}`, `{phase: Succeeded, ` + nine + `}`, "1",
			`{phase: Succeeded, ` + nine + `, ` + b + `}`, `{phase: Succeeded, ` + nine + `, ` + b + `}`},
		{"none before anything is said of it", ``, ``, "1", `{phase: Running, ` + nine + `, ` + a + `}`, ``},
		{"the last ones while its cluster is not known", `{phase: Running, ` + nine + `, ` + a + `}`, `{phase: Running, ` +
			nine + `}`, "1", `-`, `{phase: Running, ` + nine + `, ` + a + `}`},
		{"and what is said of those left out", `{phase: Running, ` + nine + `, ` + offload + `}`, `{phase: Running, ` + nine +
			`}`, "1", `-`, `{phase: Running, ` + nine + `, ` + offload + `}`},
		{"none of an earlier run", `{phase: Running, ` + nine + `, ` + a + `}`, `{phase: Running, ` + ten + `}`, "1", `-`,
			`{phase: Running, ` + ten + `}`},
		{"none of a run that its status does not tell of yet", ``, `{phase: Running, ` + nine + `}`, "1",
			`{phase: Running, ` + ten + `, ` + a + `}`, `{phase: Running, ` + nine + `}`},
		{"none of an object that is another template's", ``, `{phase: Running, ` + nine + `}`, "2", `{phase: Running, ` +
			nine + `, ` + a + `}`, `{phase: Running, ` + nine + `}`},
		{"what a user of the hub wrote into them does not stay", `{phase: Running, ` + nine + `, ` + b + `}`,
			`{phase: Running, ` + nine + `}`, "1", `{phase: Running, ` + nine + `, ` + a + `}`, `{phase: Running, ` + nine +
				`, ` + a + `}`},
		{"nor does what is gone", `{phase: Running, ` + nine + `, ` + a + `}`, `{phase: Running, ` + nine + `}`, "1",
			`{phase: Running, ` + nine + `}`, `{phase: Running, ` + nine + `}`},
		{"compressed ones as they are, in place of the others", `{phase: Running, ` + nine + `, ` + a + `}`,
			`{phase: Running, ` + nine + `}`, "1", `{phase: Running, ` + nine + `, compressedNodes: H4sI}`, `{phase: Running, ` +
				nine + `, compressedNodes: H4sI}`},
		{"the conditions of the member stay", ``, `{phase: Running, ` + nine +
			`, conditions: [{type: PodRunning, status: "True"}]}`, "1", `{phase: Running, ` + nine + `, ` + a + `}`,
			`{phase: Running, ` + nine + `, ` + a + `, conditions: [{type: PodRunning, status: "True"}]}`},
		{"none that are in a database", `{phase: Running, ` + nine + `, ` + a + `}`, `{phase: Running, ` + nine + `}`, "1",
			`{phase: Running, ` + nine + `, offloadNodeStatusVersion: "fnv:1"}`, `{phase: Running, ` + nine + `, ` + offload +
				`}`},
		{"those that are back from there", `{phase: Running, ` + nine + `, ` + offload + `}`, `{phase: Running, ` + nine +
			`}`, "1", `{phase: Running, ` + nine + `, ` + a + `}`, `{phase: Running, ` + nine + `, ` + a + `}`},
		{"none that Argo's clients could not read", ``, `{phase: Running, ` + nine + `}`, "1", `{phase: Running, ` + nine +
			`, nodes: {w: broken}}`, `{phase: Running, ` + nine + `, ` + broken + `}`},
		{"nor compressed ones", ``, `{phase: Running, ` + nine + `}`, "1", `{phase: Running, ` + nine +
			`, compressedNodes: {w: {}}}`, `{phase: Running, ` + nine + `, ` + broken + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			read, folded := workflow(t, "", c.read), workflow(t, "", c.folded)
			var seen *unstructured.Unstructured
			if c.seen != "-" {
				seen = workflow(t, c.made, c.seen)
			}
			before := []*unstructured.Unstructured{read.DeepCopy(), folded.DeepCopy(), seen.DeepCopy()}
			got, want := WithNodes(read, folded, seen, "m1"), workflow(t, "", c.want)
			if !reflect.DeepEqual(got.Object, want.Object) {
				t.Errorf("got  %v\nwant %v", got.Object["status"], want.Object["status"])
			}
			if again := WithNodes(got, folded, seen, "m1"); !reflect.DeepEqual(again.Object, got.Object) {
				t.Errorf("looked at again it is %v", again.Object["status"])
			}
			if !reflect.DeepEqual([]*unstructured.Unstructured{read, folded, seen}, before) {
				t.Error("what was given has changed")
			}
		})
	}
}

// many returns n nodes with a parameter of the given size.
func many(n, bytes int) map[string]any {
	nodes := map[string]any{"w": map[string]any{"id": "w", "type": "Steps", "phase": "Running"}}
	var children []any
	for i := range n {
		id := fmt.Sprintf("w-%d", i)
		children = append(children, id)
		nodes[id] = map[string]any{"id": id, "type": "Pod", "phase": "Running", "boundaryID": "w",
			"outputs": map[string]any{"parameters": []any{map[string]any{"name": "p", "value": strings.Repeat("x", bytes)}}}}
	}
	nodes["w"].(map[string]any)["children"] = children
	return nodes
}

func TestLargeNodesAreOmittedPartlyOrCompletely(t *testing.T) {
	for _, c := range []struct {
		name string
		// spec is how many bytes the template has besides.
		spec int
		seen map[string]any
		// nodes is how many are left, with their outputs.
		nodes   int
		outputs bool
		want    string
	}{
		{"one mebibyte has room", 0, map[string]any{"nodes": many(100, 10000)}, 101, true, ""},
		{"more loses what steps gave", 0, map[string]any{"nodes": many(100, 11000)}, 101, false,
			`"m1" are larger than the hub stores (1 MiB, or less with a large template): their inputs and outputs are omitted`},
		{"less loses it beside a large template", 700 << 10, map[string]any{"nodes": many(100, 8000)}, 101, false,
			"inputs and outputs are omitted"},
		{"more steps than that go wholly, as half of them is no graph", 0, map[string]any{"nodes": many(20000, 1)}, 0, false,
			"they are omitted; view the Workflow in that cluster"},
		{"and so does what is compressed", 0, map[string]any{"compressedNodes": strings.Repeat("x", 1<<20)}, 0, false,
			"they are omitted; view the Workflow in that cluster"},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := workflow(t, "", "")
			read.Object["spec"] = map[string]any{"entrypoint": strings.Repeat("x", c.spec)}
			folded, seen := read.DeepCopy(), workflow(t, "1", "")
			folded.Object["status"] = map[string]any{"phase": "Running"}
			seen.Object["status"] = c.seen
			got := WithNodes(read, folded, seen, "m1")
			if size := bytesOf(got.Object); size > templateLimit {
				t.Errorf("the template has %d bytes", size)
			}
			nodes := fields.Object(got.Object, "status", "nodes")
			if len(nodes) != c.nodes || fields.Value(got.Object, "status", "compressedNodes") != nil {
				t.Errorf("%d nodes, want %d", len(nodes), c.nodes)
			}
			for id, n := range nodes {
				was := c.seen["nodes"].(map[string]any)[id].(map[string]any)
				if (fields.Value(nodes, id, "outputs") != nil) != (c.outputs && was["outputs"] != nil) ||
					!reflect.DeepEqual(n.(map[string]any)["children"], was["children"]) {
					t.Fatalf("node %s is %.200v", id, n)
				}
			}
			if message := Omitted(got); (message == "") != (c.want == "") || !strings.Contains(message, c.want) {
				t.Errorf("got %q, want %q", message, c.want)
			}
			if again := WithNodes(got, folded, seen, "m1"); !reflect.DeepEqual(again.Object, got.Object) {
				t.Error("looked at again it is another")
			}
		})
	}
}

func TestTurned(t *testing.T) {
	const was = `{phase: Running, startedAt: a, progress: 1/2, nodes: {w: {phase: Running}}, conditions: [{type: PodRunning, status: "True"}]}`
	for is, want := range map[string]bool{
		`{phase: Running, startedAt: a, progress: 2/2, nodes: {w: {phase: Succeeded}}, resourcesDuration: {cpu: 1}}`: false,
		`{phase: Running, startedAt: a, compressedNodes: x}`:                                                         false,
		`{phase: Succeeded, startedAt: a, finishedAt: b, progress: 2/2}`:                                             true,
		`{phase: Running, startedAt: b, progress: 1/2}`:                                                              true,
		`{phase: Running, startedAt: a, message: "the pod w-1 was evicted"}`:                                         true,
	} {
		if got := Turned(workflow(t, "", was), workflow(t, "", is)); got != want {
			t.Errorf("%s: %v", is, got)
		}
	}
}

func TestSole(t *testing.T) {
	moving := binding("m1")
	moving.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2",
		PurgeMode: policyv1alpha1.PurgeModeGracefully}}
	for want, b := range map[string]*workv1alpha2.ResourceBinding{"m1": binding("m1")} {
		if got := Sole(b); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for name, b := range map[string]*workv1alpha2.ResourceBinding{"no cluster": binding(), "two": binding("m1", "m2"),
		"one that is left": moving} {
		if got := Sole(b); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// One unreadable node hides all Workflows from Argo's clients.
func TestUnreadableNodesAreOmitted(t *testing.T) {
	for node, want := range map[string]bool{
		`{id: w, name: w, type: Pod, phase: Succeeded, startedAt: "2026-01-01T09:00:00Z", finishedAt: null, children: [a], outboundNodes: [b], progress: 1/1, estimatedDuration: 3,
			resourcesDuration: {cpu: 3}, hostNodeName: n1, templateRef: {name: t, template: main, clusterScope: true}, nodeFlag: {hooked: true}, daemoned: false,
			memoizationStatus: {hit: true, key: k, cacheName: c}, synchronizationStatus: {waiting: lock},
			inputs: {parameters: [{name: a, value: 5, enum: [1, "2"]}, {name: b, valueFrom: {supplied: {}}}], artifacts: [{name: in, path: /in, mode: 420, git: {repo: r, depth: 1, fetch: [main]}}]},
			outputs: {result: "1", exitCode: "0", artifacts: [{name: log, s3: {key: k, bucket: b, insecure: true, accessKeySecret: {name: s, key: k}, createBucketIfNotPresent: {objectLocking: true}},
				archive: {tar: {compressionLevel: 3}}, artifactGC: {strategy: Never}}, {name: oss, oss: {key: k, createBucketIfNotPresent: true}}]}}`: true,
		`{id: w, newInArgo: {a: [1]}}`:                 true,
		`{id: 5}`:                                      false,
		`{startedAt: 5}`:                               false,
		`{startedAt: yesterday}`:                       false,
		`{finishedAt: ""}`:                             false,
		`{FinishedAt: 5}`:                              false,
		`{children: a}`:                                false,
		`{children: [{}]}`:                             false,
		`{resourcesDuration: {cpu: much}}`:             false,
		`{inputs: {parameters: [{name: {}}]}}`:         false,
		`{outputs: {artifacts: [{s3: {key: 5}}]}}`:     false,
		`{outputs: {artifacts: [{raw: {data: [a]}}]}}`: false,
		`{outputs: {artifacts: [{git: {usernameSecret: {key: 5}}}]}}`: false,
		`[]`: false,
	} {
		read, folded := workflow(t, "", ""), workflow(t, "", `{phase: Running}`)
		got := WithNodes(read, folded, workflow(t, "1", `{phase: Running, nodes: {w: `+node+`}}`), "m1")
		if shown := fields.Value(got.Object, "status", "nodes", "w") != nil; shown != want || (Omitted(got) == "") != want {
			t.Errorf("%s: shown is %v, and said %q", node, shown, Omitted(got))
		}
	}
}
