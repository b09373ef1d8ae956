package override_test

import (
	"encoding/json"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web}
spec:
  replicas: 2
  template:
    spec:
      initContainers:
      - {name: init, image: "busybox:1"}
      containers:
      - {name: main, image: "nginx:1.25", command: [nginx], args: [-g, daemon off;]}
      - {name: side, image: "registry.example.com:5000/team/side@sha256:abc"}
`

var object = coretest.Object

// op returns an OverridePolicy in namespace shop, or a ClusterOverridePolicy without a namespace, from a spec in YAML.
func op(t testing.TB, namespace, name, spec string) policyv1alpha1.Override {
	t.Helper()
	var s policyv1alpha1.OverrideSpec
	if err := yaml.UnmarshalStrict([]byte(spec), &s); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if namespace == "" {
		p := &policyv1alpha1.ClusterOverridePolicy{Spec: s}
		p.Name = name
		return p
	}
	p := &policyv1alpha1.OverridePolicy{Spec: s}
	p.Namespace, p.Name = namespace, name
	return p
}

// rule returns the spec of a policy with one rule for all clusters.
func rule(overriders string) string {
	return "overrideRules:\n- overriders: {" + overriders + "}"
}

func cluster(name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{}
	c.Name = name
	c.Labels = map[string]string{"zone": name}
	return c
}

func valueAt(t testing.TB, u *unstructured.Unstructured, path ...string) any {
	t.Helper()
	var v any = u.Object
	for _, key := range path {
		switch node := v.(type) {
		case map[string]any:
			v = node[key]
		case []any:
			if int(key[0]-'0') >= len(node) {
				t.Fatalf("no %s in %v", key, node)
			}
			v = node[key[0]-'0']
		default:
			t.Fatalf("no %v in the object", path)
		}
	}
	return v
}

func TestPoliciesAreAppliedInOrder(t *testing.T) {
	// Each policy appends a letter, so the result spells the order.
	add := func(letter string) string {
		return rule("imageOverrider: [{predicate: {path: /spec/template/spec/containers/0/image}, component: Tag, operator: add, value: " + letter + "}]")
	}
	byName := "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]\n"
	byLabel := "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: web}}}]\n"
	ofKind := "resourceSelectors: [{apiVersion: apps/v1beta2, kind: Deployment}]\n"
	policies := []policyv1alpha1.Override{
		op(t, "shop", "a-by-name", byName+add("H")),
		op(t, "shop", "b-by-label", byLabel+add("G")),
		op(t, "shop", "a-of-kind", ofKind+add("E")),
		op(t, "shop", "b-anything", add("F")),
		op(t, "", "z-by-name", byName+add("D")),
		op(t, "", "z-by-label", byLabel+add("C")),
		op(t, "", "a-anything", add("A")),
		op(t, "", "b-of-kind", ofKind+add("B")),
		op(t, "elsewhere", "other-namespace", add("X")),
		op(t, "", "other-kind", "resourceSelectors: [{apiVersion: apps/v1, kind: DaemonSet}]\n"+add("X")),
		op(t, "", "other-group", "resourceSelectors: [{apiVersion: apps.kruise.io/v1, kind: Deployment}]\n"+add("X")),
		op(t, "shop", "other-name", "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: db}]\n"+add("X")),
	}
	for seed := range int64(20) {
		rand.New(rand.NewSource(seed)).Shuffle(len(policies),
			func(i, j int) { policies[i], policies[j] = policies[j], policies[i] })
		got, applied, err := override.Apply(object(t, deployment), cluster("eu"), policies)
		if err != nil {
			t.Fatal(err)
		}
		if image := valueAt(t, got, "spec", "template", "spec", "containers", "0", "image"); image != "nginx:1.25ABCDEFGH" {
			t.Fatalf("policies were applied as %v (seed %d); the order of the input must not matter", image, seed)
		}
		if len(applied.Rules) != 8 || applied.Rules[0].Policy != "a-anything" || applied.Rules[0].Namespaced ||
			!applied.Rules[7].Namespaced {
			t.Fatalf("applied = %+v", applied.Rules)
		}
	}
}

func TestNamespacedPolicyOverridesClusterScopedTemplate(t *testing.T) {
	sidecars := object(t, `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: logs}, spec: {customVersion: ""}}`)
	adds := func(selector, letter string) string {
		return "resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet" + selector + "}]\n" +
			rule("annotationsOverrider: [{operator: add, value: {"+letter+": x}}]")
	}
	policies := []policyv1alpha1.Override{
		op(t, "team", "b", adds("", "d")),
		op(t, "shop", "b", adds("", "c")),
		op(t, "team", "a", adds("", "b")),
		op(t, "", "z", adds("", "a")),
		op(t, "shop", "not-allowed", adds(", namespace: shop", "x")),
		op(t, "shop", "all-of-its-namespace", rule("annotationsOverrider: [{operator: add, value: {x: x}}]")),
	}
	for seed := range int64(10) {
		rand.New(rand.NewSource(seed)).Shuffle(len(policies),
			func(i, j int) { policies[i], policies[j] = policies[j], policies[i] })
		_, applied, err := override.Apply(sidecars, cluster("eu"), policies)
		if err != nil {
			t.Fatal(err)
		}
		order := []string{}
		for _, r := range applied.Rules {
			for letter := range r.Overriders.AnnotationsOverrider[0].Value {
				order = append(order, letter)
			}
		}
		if diff := cmp.Diff([]string{"a", "b", "c", "d"}, order); diff != "" {
			t.Fatalf("applied, seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestRulesTargetClusters(t *testing.T) {
	label := func(value string) string {
		return "overriders: {labelsOverrider: [{operator: add, value: {" + value + `: "yes"}}]}`
	}
	tests := []struct {
		name, spec string
		want       map[string]string
	}{
		{"a rule without a target is for all clusters", "overrideRules:\n- " + label("all"), map[string]string{"all": "yes"}},
		{"a rule for another cluster does nothing", "overrideRules:\n- {targetCluster: {clusterNames: [us]}, " + label("us") +
			"}", nil},
		{"a rule by label of the cluster counts",
			"overrideRules:\n- {targetCluster: {labelSelector: {matchLabels: {zone: eu}}}, " + label("eu") + "}",
			map[string]string{"eu": "yes"}},
		{"an excluded cluster is none", "overrideRules:\n- {targetCluster: {exclude: [eu]}, " + label("x") + "}", nil},
		{"rules are applied as listed, the later one wins",
			"overrideRules:\n- overriders: {labelsOverrider: [{operator: add, value: {k: first}}]}\n- overriders: {labelsOverrider: [{operator: add, value: {k: second}}]}",
			map[string]string{"k": "second"}},
		{"the deprecated fields still count", label("old"), map[string]string{"old": "yes"}},
		{"the deprecated target still counts", "targetCluster: {clusterNames: [us]}\n" + label("old"), nil},
		{"the deprecated fields do not count beside rules", label("old") + "\noverrideRules:\n- " + label("new"),
			map[string]string{"new": "yes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := object(t, deployment)
			got, _, err := override.Apply(in, cluster("eu"), []policyv1alpha1.Override{op(t, "shop", "p", tt.spec)})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"app": "web"}
			for k, v := range tt.want {
				want[k] = v
			}
			if diff := cmp.Diff(want, got.GetLabels()); diff != "" {
				t.Error(diff)
			}
			if tt.want == nil && got != in {
				t.Error("without a rule for the cluster the manifest itself has to come back, uncopied")
			}
		})
	}
}

func TestOverriders(t *testing.T) {
	containers := []string{"spec", "template", "spec", "containers"}
	in := func(path ...string) []string { return append(append([]string{}, containers...), path...) }
	tests := []struct {
		name, overriders string
		path             []string
		want             any
	}{
		{"the registry of an image without one is put before it",
			"imageOverrider: [{component: Registry, operator: add, value: mirror.eu}]", in("0", "image"),
			"mirror.eu/nginx:1.25"},
		{"an addition to a registry is appended", "imageOverrider: [{component: Registry, operator: add, value: .cn}]",
			in("1", "image"), "registry.example.com:5000.cn/team/side@sha256:abc"},
		{"a registry is replaced", "imageOverrider: [{component: Registry, operator: replace, value: mirror.eu}]",
			in("1", "image"), "mirror.eu/team/side@sha256:abc"},
		{"a registry is removed", "imageOverrider: [{component: Registry, operator: remove}]", in("1", "image"),
			"team/side@sha256:abc"},
		{"a repository is replaced", "imageOverrider: [{component: Repository, operator: replace, value: a/b}]",
			in("1", "image"), "registry.example.com:5000/a/b@sha256:abc"},
		{"a repository is added to", "imageOverrider: [{component: Repository, operator: add, value: -arm}]",
			in("0", "image"), "nginx-arm:1.25"},
		{"a tag is replaced", "imageOverrider: [{component: Tag, operator: replace, value: '1.26'}]", in("0", "image"),
			"nginx:1.26"},
		{"a tag takes the place of a digest", "imageOverrider: [{component: Tag, operator: replace, value: '1.26'}]",
			in("1", "image"), "registry.example.com:5000/team/side:1.26"},
		{"a digest takes the place of a tag", "imageOverrider: [{component: Tag, operator: replace, value: 'sha256:def'}]",
			in("0", "image"), "nginx@sha256:def"},
		{"a tag is removed", "imageOverrider: [{component: Tag, operator: remove}]", in("0", "image"), "nginx"},
		{"a predicate names one image", "imageOverrider: [{predicate: {path: /spec/template/spec/containers/0/image}, component: Tag, operator: add, value: -x}]", in("0", "image"), "nginx:1.25-x"},
		{"a predicate may name an init container",
			"imageOverrider: [{predicate: {path: /spec/template/spec/initContainers/0/image}, component: Tag, operator: replace, value: '2'}]", []string{"spec", "template", "spec", "initContainers", "0", "image"}, "busybox:2"},
		{"without a predicate the tags of init containers are left, as in Karmada",
			"imageOverrider: [{component: Tag, operator: replace, value: '2'}]",
			[]string{"spec", "template", "spec", "initContainers", "0", "image"}, "busybox:1"},

		{"words are appended to a command", "commandOverrider: [{containerName: main, operator: add, value: [-v, -x]}]",
			in("0", "command"), []any{"nginx", "-v", "-x"}},
		{"words are removed from args", "argsOverrider: [{containerName: main, operator: remove, value: [-g]}]",
			in("0", "args"), []any{"daemon off;"}},
		{"args that are not there are made", "argsOverrider: [{containerName: side, operator: add, value: [a]}]",
			in("1", "args"), []any{"a"}},
		{"a command of which nothing is left goes",
			"commandOverrider: [{containerName: main, operator: remove, value: [nginx]}]", in("0", "command"), nil},

		{"resources are merged", "resourcesOverrider: [{containerName: main, value: {limits: {cpu: 500m}}}, {containerName: main, value: {limits: {memory: 1Gi}, requests: {cpu: '0.1'}}}]", in("0", "resources"), map[string]any{
			"limits": map[string]any{"cpu": "500m", "memory": "1Gi"}, "requests": map[string]any{"cpu": "100m"}}},

		{"add overwrites a label", "labelsOverrider: [{operator: add, value: {app: x, new: val}}]",
			[]string{"metadata", "labels"}, map[string]any{"app": "x", "new": "val"}},
		{"addIfAbsent leaves a label that is there", "labelsOverrider: [{operator: addIfAbsent, value: {app: x, new: val}}]",
			[]string{"metadata", "labels"}, map[string]any{"app": "web", "new": "val"}},
		{"replace acts on labels that are there", "labelsOverrider: [{operator: replace, value: {app: x, new: val}}]",
			[]string{"metadata", "labels"}, map[string]any{"app": "x"}},
		{"remove goes by key, not by value", "labelsOverrider: [{operator: remove, value: {app: whatever}}]",
			[]string{"metadata", "labels"}, nil},
		{"annotations are made when there are none", "annotationsOverrider: [{operator: add, value: {a: b}}]",
			[]string{"metadata", "annotations"}, map[string]any{"a": "b"}},

		{"plaintext operations see those before them",
			`plaintext: [{path: /spec/strategy, operator: add, value: {}}, {path: /spec/strategy/type, operator: add, value: Recreate}]`, []string{"spec", "strategy"}, map[string]any{"type": "Recreate"}},
		{"a number stays a whole number", "plaintext: [{path: /spec/replicas, operator: replace, value: 5}]",
			[]string{"spec", "replicas"}, int64(5)},
		{"an item is put into a list", "plaintext: [{path: /spec/template/spec/containers/0/args/0, operator: add, value: first}]", in("0", "args"), []any{"first", "-g", "daemon off;"}},
		{"an item is put behind a list", "plaintext: [{path: /spec/template/spec/containers/0/args/-, operator: add, value: last}]", in("0", "args"), []any{"-g", "daemon off;", "last"}},
		{"a path is unescaped", "plaintext: [{path: /metadata/labels/a~1b~0c, operator: add, value: v}]",
			[]string{"metadata", "labels", "a/b~c"}, "v"},
		{"plaintext comes last and wins",
			"labelsOverrider: [{operator: add, value: {app: x}}], plaintext: [{path: /metadata/labels/app, operator: replace, value: val}]", []string{"metadata", "labels", "app"}, "val"},
		{"images come before plaintext in whatever order they are written",
			"plaintext: [{path: /spec/template/spec/containers/0/image, operator: replace, value: 'final:1'}], imageOverrider: [{component: Tag, operator: replace, value: '2'}]", in("0", "image"), "final:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			given := object(t, deployment)
			got, applied, err := override.Apply(given, cluster("eu"),
				[]policyv1alpha1.Override{op(t, "shop", "p", rule(tt.overriders))})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, valueAt(t, got, tt.path...)); diff != "" {
				t.Error(diff)
			}
			if len(applied.Untouched) > 0 {
				t.Errorf("it changed something, but it is said: %v", applied.Untouched)
			}
			if diff := cmp.Diff(object(t, deployment).Object, given.Object); diff != "" {
				t.Errorf("the manifest given was changed: %s", diff)
			}
		})
	}
}

// Kinds that Karmada supports, and kinds that it silently ignores.
func TestImagesOfAllKindsWithContainersChange(t *testing.T) {
	pods := func(at string) string {
		return strings.ReplaceAll(at, "POD",
			`{spec: {containers: [{name: main, image: "app:1", args: [a]}, {name: two, image: "app:1"}], initContainers: [{name: init, image: "init:1"}]}}`)
	}
	tests := []struct {
		apiVersion, kind, body string
		want                   int
	}{
		{"v1", "Pod", `spec: {containers: [{name: main, image: "app:1", args: [a]}]}`, 1},
		{"v1", "ReplicationController", pods("spec: {template: POD}"), 2},
		{"v1", "PodTemplate", pods("template: POD"), 2},
		{"apps/v1", "Deployment", pods("spec: {template: POD}"), 2},
		{"apps/v1", "ReplicaSet", pods("spec: {template: POD}"), 2},
		{"apps/v1", "StatefulSet", pods("spec: {template: POD}"), 2},
		{"apps/v1", "DaemonSet", pods("spec: {template: POD}"), 2},
		{"batch/v1", "Job", pods("spec: {template: POD}"), 2},
		{"batch/v1", "CronJob", pods("spec: {jobTemplate: {spec: {template: POD}}}"), 2},
		{"apps.kruise.io/v1alpha1", "CloneSet", pods("spec: {template: POD}"), 2},
		{"apps.kruise.io/v1beta1", "CloneSet", pods("spec: {template: POD}"), 2},
		{"apps.kruise.io/v1beta1", "StatefulSet", pods("spec: {template: POD}"), 2},
		{"apps.kruise.io/v1alpha1", "DaemonSet", pods("spec: {template: POD}"), 2},
		{"apps.kruise.io/v1alpha1", "BroadcastJob", pods("spec: {template: POD}"), 2},
		{"apps.kruise.io/v1alpha1", "AdvancedCronJob", pods("spec: {template: {jobTemplate: {spec: {template: POD}}}}"), 2},
		{"apps.kruise.io/v1alpha1", "AdvancedCronJob",
			pods("spec: {template: {broadcastJobTemplate: {spec: {template: POD}}}}"), 2},
		{"apps.kruise.io/v1alpha1", "UnitedDeployment",
			pods("spec: {template: {statefulSetTemplate: {spec: {template: POD}}}}"), 2},
		{"apps.kruise.io/v1alpha1", "UnitedDeployment",
			pods("spec: {template: {advancedStatefulSetTemplate: {spec: {template: POD}}}}"), 2},
		{"apps.kruise.io/v1alpha1", "UnitedDeployment", pods("spec: {template: {cloneSetTemplate: {spec: {template: POD}}}}"),
			2},
		{"apps.kruise.io/v1alpha1", "UnitedDeployment",
			pods("spec: {template: {deploymentTemplate: {spec: {template: POD}}}}"), 2},
		{"apps.kruise.io/v1alpha1", "SidecarSet",
			`spec: {containers: [{name: main, image: "app:1", args: [a]}], initContainers: [{name: i, image: "init:1"}]}`, 1},
		{"apps.kruise.io/v1beta1", "StatefulSet", pods("spec: {template: POD}"), 2},
		{"apps.kruise.io/v1beta1", "DaemonSet", pods("spec: {template: POD}"), 2},
		{"apps.kruise.io/v1beta1", "BroadcastJob", pods("spec: {template: POD}"), 2},
		{"apps.kruise.io/v1beta1", "AdvancedCronJob", pods("spec: {template: {jobTemplate: {spec: {template: POD}}}}"), 2},
		{"apps.kruise.io/v1beta1", "UnitedDeployment", pods("spec: {template: {cloneSetTemplate: {spec: {template: POD}}}}"),
			2},
		{"apps.kruise.io/v1beta1", "SidecarSet",
			`spec: {containers: [{name: main, image: "app:1", args: [a]}, {name: two, image: "app:1"}], initContainers: [{name: i, image: "init:1"}]}`, 2},
		{"apps.kruise.io/v1alpha1", "EphemeralJob",
			`spec: {template: {ephemeralContainers: [{name: main, image: "app:1", args: [a]}]}}`, 1},
		{"argoproj.io/v1alpha1", "Rollout", pods("spec: {template: POD}"), 2},
		{"argoproj.io/v1alpha1", "Workflow", `spec: {templates: [
			{name: a, container: {image: "app:1", args: [a]}, sidecars: [{name: s, image: "app:1"}], initContainers: [{name: i, image: "app:1"}]},
			{name: b, script: {image: "app:1", args: [a]}}, {name: c, containerSet: {containers: [{name: main, image: "app:1", args: [a]}]}}, {name: d, steps: []},
			{name: e, steps: [[{name: s, inline: {container: {image: "app:1"}}}]]}, {name: f, dag: {tasks: [{name: t, inline: {script: {image: "app:1"}}}]}}]}`, 7},
		{"argoproj.io/v1alpha1", "WorkflowTemplate", `spec: {templateDefaults: {container: {image: "app:1", args: [a]}}}`, 1},
		{"argoproj.io/v1alpha1", "ClusterWorkflowTemplate", `spec: {templates: [{container: {image: "app:1", args: [a]}}]}`,
			1},
		{"argoproj.io/v1alpha1", "CronWorkflow",
			`spec: {workflowSpec: {templates: [{container: {image: "app:1", args: [a]}}]}}`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" of "+tt.apiVersion, func(t *testing.T) {
			m := object(t, "apiVersion: "+tt.apiVersion+"\nkind: "+tt.kind+"\nmetadata: {name: x, namespace: shop}\n"+tt.body)
			got, applied, err := override.Apply(m, cluster("eu"), []policyv1alpha1.Override{op(t, "shop", "p",
				rule("imageOverrider: [{component: Tag, operator: replace, value: '2'}], argsOverrider: [{containerName: main, operator: add, value: [marker]}], resourcesOverrider: [{containerName: main, value: {limits: {cpu: '9'}}}]"))})
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := got.MarshalJSON()
			if n := strings.Count(string(raw), `"app:2"`); n != tt.want || strings.Contains(string(raw), "init:2") {
				t.Errorf("%d images changed, want %d, no init container: %s", n, tt.want, raw)
			}
			if !strings.Contains(string(raw), "marker") || !strings.Contains(string(raw), `"cpu":"9"`) {
				t.Errorf("args or resources are unchanged: %s", raw)
			}
			if len(applied.Untouched) > 0 {
				t.Errorf("untouched: %v", applied.Untouched)
			}
		})
	}
}

func TestPulledImagesChange(t *testing.T) {
	for _, tt := range []struct{ kind, spec, want string }{
		{"v1beta1, kind: ImagePullJob", `{image: "docker.io/app:1"}`, `{"image":"mirror.eu/app:1"}`},
		{"v1alpha1, kind: ImagePullJob", `{image: "app:1"}`, `{"image":"mirror.eu/app:1"}`},
		{"v1beta1, kind: ImageListPullJob", `{images: ["app:1", "docker.io/db:2@sha256:0"]}`,
			`{"images":["mirror.eu/app:1","mirror.eu/db:2@sha256:0"]}`},
		{"v1beta1, kind: AdvancedCronJob", `{template: {imageListPullJobTemplate: {spec: {images: ["app:1"]}}}}`,
			`{"template":{"imageListPullJobTemplate":{"spec":{"images":["mirror.eu/app:1"]}}}}`},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			m := object(t, "{apiVersion: apps.kruise.io/"+tt.kind+", metadata: {name: x, namespace: shop}, spec: "+tt.spec+"}")
			before := m.DeepCopy()
			got, applied, err := override.Apply(m, cluster("eu"), []policyv1alpha1.Override{op(t, "shop", "p",
				rule("imageOverrider: [{component: Registry, operator: replace, value: mirror.eu}]"))})
			if err != nil || len(applied.Untouched) > 0 {
				t.Fatal(err, applied.Untouched)
			}
			raw, err := json.Marshal(got.Object["spec"])
			if err != nil || string(raw) != tt.want {
				t.Errorf("got  %s\nwant %s", raw, tt.want)
			}
			if diff := cmp.Diff(before, m); diff != "" {
				t.Errorf("the manifest given was changed: %s", diff)
			}
		})
	}
}

func TestHotUpgradeEmptyImageKeepsTag(t *testing.T) {
	m := object(t, `{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: x}, spec: {containers: [{name: s, image: "mesh:1", upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: "docker.io/empty:7"}}]}}`)
	got, _, err := override.Apply(m, cluster("eu"), []policyv1alpha1.Override{op(t, "", "p",
		rule("imageOverrider: [{component: Registry, operator: replace, value: mirror.eu}, {component: Tag, operator: replace, value: '2'}]"))})
	if err != nil {
		t.Fatal(err)
	}
	if image, empty := valueAt(t, got, "spec", "containers", "0", "image"),
		valueAt(t, got, "spec", "containers", "0", "upgradeStrategy",
			"hotUpgradeEmptyImage"); image != "mirror.eu/mesh:2" ||
		empty != "mirror.eu/empty:7" {
		t.Errorf("got %v and %v", image, empty)
	}
}

func TestInvalidImageErrorHasPath(t *testing.T) {
	m := object(t, "{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, metadata: {name: x, namespace: shop}, spec: {images: [7]}}")
	_, _, err := override.Apply(m, cluster("eu"),
		[]policyv1alpha1.Override{op(t, "shop", "p",
			rule("imageOverrider: [{component: Tag, operator: replace, value: '2'}]"))})
	if err == nil || !strings.Contains(err.Error(), "/spec/images/0 is not a string") {
		t.Errorf("got %v", err)
	}
}

func TestFieldOverrider(t *testing.T) {
	const config = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: shop}
data:
  app.json: '{"db":{"host":"a<b","port":12345678901234567890},"list":[1,2]}'
  app.yaml: |
    db:
      host: hub
      port: 5432
  two.yaml: |
    a: 1
    ---
    b: 2
`
	tests := []struct{ name, overriders, key, want, fails string }{
		{"JSON keeps what it is not asked to change, to the digit",
			`fieldOverrider: [{fieldPath: /data/app.json, json: [{subPath: /list/-, operator: add, value: {x: 1.50}}, {subPath: /db/user, operator: add, value: me}]}]`,
			"app.json", `{"db":{"host":"a<b","port":12345678901234567890,"user":"me"},"list":[1,2,{"x":1.5}]}`, ""},
		{"YAML is changed by path", `fieldOverrider: [{fieldPath: /data/app.yaml, yaml: [{subPath: /db/host, operator: replace, value: eu}, {subPath: /db/port, operator: remove}]}]`,
			"app.yaml", "db:\n  host: eu\n", ""},
		{"whole numbers in YAML stay whole",
			`fieldOverrider: [{fieldPath: /data/app.yaml, yaml: [{subPath: /db/host, operator: replace, value: 10000000}]}]`,
			"app.yaml", "db:\n  host: 10000000\n  port: 5432\n", ""},
		{"a stream of documents is not cut to its first",
			`fieldOverrider: [{fieldPath: /data/two.yaml, yaml: [{subPath: /a, operator: replace, value: 2}]}]`,
			"", "", "OverridePolicy shop/p, spec.overrideRules[0].overriders.fieldOverrider[0]: /data/two.yaml: the field contains several YAML documents"},
		{"an invalid document is an error",
			`fieldOverrider: [{fieldPath: /data/app.yaml, json: [{subPath: /a, operator: add, value: 2}]}]`, "", "",
			"read JSON"},
		{"a field that is no string is an error",
			`fieldOverrider: [{fieldPath: /data, json: [{subPath: /a, operator: add, value: 2}]}]`, "", "", "is not a string"},
		{"a missing field is an error",
			`fieldOverrider: [{fieldPath: /data/x, json: [{subPath: /a, operator: add, value: 2}]}]`, "", "",
			"/data/x does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := override.Apply(object(t, config), cluster("eu"),
				[]policyv1alpha1.Override{op(t, "shop", "p", rule(tt.overriders))})
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Fatalf("err = %v, want %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, valueAt(t, got, "data", tt.key)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsHavePaths(t *testing.T) {
	tests := []struct{ name, namespace, spec, want string }{
		{"a path that is not there", "shop",
			rule("plaintext: [{path: /spec/replicas, operator: replace, value: 1}, {path: /spec/nope/x, operator: add, value: 1}]"),
			`apply OverridePolicy shop/p, spec.overrideRules[0].overriders.plaintext[1]: add "/spec/nope/x": /spec/nope does not exist`},
		{"a rule is counted among all rules", "",
			"overrideRules:\n- {targetCluster: {clusterNames: [us]}, overriders: {plaintext: [{path: x, operator: add}]}}\n- overriders: {plaintext: [{path: x, operator: add}]}",
			`apply ClusterOverridePolicy p, spec.overrideRules[1].overriders.plaintext[0]: path "x": a JSON pointer is empty or starts with "/"`},
		{"the deprecated field", "shop", "overriders: {plaintext: [{path: /spec/replicas/a, operator: add, value: 1}]}",
			`apply OverridePolicy shop/p, spec.overriders.plaintext[0]: add "/spec/replicas/a": /spec/replicas is neither an object nor a list`},
		{"an index behind the list", "shop", rule("plaintext: [{path: /spec/template/spec/containers/7, operator: remove}]"),
			`index 7 is out of range in a list of 2`},
		{"a manifest without a name", "shop", rule("plaintext: [{path: /metadata/name, operator: remove}]"),
			"metadata.name of Deployment.apps shop/web would become empty"},
		{"a manifest that is none", "shop", rule("plaintext: [{path: '', operator: replace, value: [1]}]"),
			"the result is not an object"},
		{"the whole manifest removed", "shop", rule("plaintext: [{path: '', operator: remove}]"),
			"cannot remove the whole document"},
		{"an unknown operator", "shop", rule("labelsOverrider: [{operator: merge, value: {a: b}}]"),
			`labelsOverrider[0]: unknown operator "merge"`},
		{"an image part that is none", "shop", rule("imageOverrider: [{component: Host, operator: remove}]"),
			`/spec/template/spec/containers/0/image: unknown component "Host"`},
		{"an image without a repository", "shop", rule("imageOverrider: [{component: Repository, operator: remove}]"),
			"the repository would be empty"},
		{"a suffix for a digest", "shop", rule("imageOverrider: [{component: Tag, operator: add, value: -x}]"),
			"pinned by digest"},
		{"a predicate for what is no string", "shop",
			rule("imageOverrider: [{predicate: {path: /spec}, component: Tag, operator: remove}]"), "is not a string"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, applied, err := override.Apply(object(t, deployment), cluster("eu"),
				[]policyv1alpha1.Override{op(t, tt.namespace, "p", tt.spec)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("err = %v\nwant  %s", err, tt.want)
			}
			if got != nil || len(applied.Rules) > 0 {
				t.Error("a failed override must not hand out half of its work")
			}
		})
	}
}

func TestOverridersWithoutEffectAreReported(t *testing.T) {
	tests := []struct{ name, overriders, want string }{
		{"no such container", "commandOverrider: [{containerName: mian, operator: add, value: [x]}]",
			`commandOverrider[0] changed nothing: no container is named "mian"`},
		{"labels to replace that are not there", "labelsOverrider: [{operator: replace, value: {zzz: a}}]",
			"metadata.labels has none of its keys"},
		{"annotations of an object without any", "annotationsOverrider: [{operator: replace, value: {zzz: a}}]",
			"metadata.annotations has none of its keys"},
		{"a field override without operations", "fieldOverrider: [{fieldPath: /spec}]", "it must have json or yaml"},
		{"resources of a missing container", "resourcesOverrider: [{containerName: zzz, value: {limits: {cpu: 1}}}]",
			`no container is named "zzz"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, applied, err := override.Apply(object(t, deployment), cluster("eu"),
				[]policyv1alpha1.Override{op(t, "shop", "p", rule(tt.overriders))})
			if err != nil {
				t.Fatal(err)
			}
			if len(applied.Untouched) != 1 || !strings.Contains(applied.Untouched[0].String(), tt.want) {
				t.Fatalf("untouched = %v, want %q", applied.Untouched, tt.want)
			}
			if len(applied.Rules) != 1 {
				t.Error("the rule was applied anyway and is in the Work's annotation")
			}
		})
	}
	// What is to be gone and is not there is as its author wants it: Karmada's own sample removes a label from a template
	// without it.
	for _, overriders := range []string{"labelsOverrider: [{operator: remove, value: {zzz: a}}]",
		"annotationsOverrider: [{operator: remove, value: {zzz: a}}]",
		"argsOverrider: [{containerName: main, operator: remove, value: [zzz]}]",
		"commandOverrider: [{containerName: main, operator: remove, value: [zzz]}]"} {
		t.Run("no report for "+overriders, func(t *testing.T) {
			_, applied, err := override.Apply(object(t, deployment), cluster("eu"),
				[]policyv1alpha1.Override{op(t, "shop", "p", rule(overriders))})
			if err != nil || len(applied.Untouched) > 0 || len(applied.Rules) != 1 {
				t.Errorf("%v, untouched %v, rules %v", err, applied.Untouched, applied.Rules)
			}
		})
	}
	t.Run("a kind without containers", func(t *testing.T) {
		m := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}")
		_, applied, err := override.Apply(m, cluster("eu"),
			[]policyv1alpha1.Override{op(t, "", "p", rule("imageOverrider: [{component: Tag, operator: remove}]"))})
		if err != nil || len(applied.Untouched) != 1 {
			t.Fatalf("untouched = %v, err = %v", applied.Untouched, err)
		}
		if got := applied.Untouched[0].String(); got != "ClusterOverridePolicy p, spec.overrideRules[0].overriders.imageOverrider[0] changed nothing: a ConfigMap has no known containers; specify the image with predicate.path" {
			t.Error(got)
		}
	})
}

func TestAnnotationsRecordAppliedOverrides(t *testing.T) {
	_, applied, err := override.Apply(object(t, deployment), cluster("eu"), []policyv1alpha1.Override{
		op(t, "shop", "ns", rule("imageOverrider: [{component: Tag, operator: replace, value: '2'}]")),
		op(t, "", "all", "overrideRules:\n- overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}\n- overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 7}]}"),
		op(t, "", "us", "overrideRules:\n- {targetCluster: {clusterNames: [us]}, overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := applied.Annotations()
	want := map[string]string{
		"policy.karmada.io/applied-overrides":         `[{"policyName":"ns","overriders":{"imageOverrider":[{"component":"Tag","operator":"replace","value":"2"}]}}]`,
		"policy.karmada.io/applied-cluster-overrides": `[{"policyName":"all","overriders":{"labelsOverrider":[{"operator":"add","value":{"a":"b"}}]}},{"policyName":"all","overriders":{"plaintext":[{"path":"/spec/replicas","operator":"replace","value":7}]}}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if none := (override.Applied{}).Annotations(); len(none) > 0 {
		t.Errorf("nothing applied is recorded as %v", none)
	}
}

// FuzzApply: for any policy the result is a valid manifest or an error, and the template is unchanged.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		`{"overrideRules":[{"overriders":{"plaintext":[{"path":"","operator":"replace","value":{"apiVersion":"v1"}}]}}]}`,
		`{"overrideRules":[{"overriders":{"plaintext":[{"path":"/metadata","operator":"replace","value":[1]}],"labelsOverrider":[{"operator":"add","value":{"a":"b"}}]}}]}`,
		`{"overriders":{"plaintext":[{"path":"/metadata/labels","operator":"replace","value":7}]},"overrideRules":[]}`,
		`{"overrideRules":[{"overriders":{"plaintext":[{"path":"/spec/template/spec/containers","operator":"replace","value":"x"}]}},{"overriders":{"imageOverrider":[{"component":"Tag","operator":"add","value":"@"}]}}]}`,
		`{"overrideRules":[{"overriders":{"imageOverrider":[{"predicate":{"path":"/spec/template/spec/containers/-1/image"},"component":"Registry","operator":"remove"}]}}]}`,
		`{"overrideRules":[{"overriders":{"fieldOverrider":[{"fieldPath":"/spec/template/spec/containers/0/image","yaml":[{"subPath":"","operator":"replace","value":{"a":[]}}]}]}}]}`,
		`{"overrideRules":[{"overriders":{"resourcesOverrider":[{"containerName":"main","value":{"limits":{"cpu":"1"},"claims":[{"name":"a"}]}}]}}]}`,
		`{"overrideRules":[{"overriders":{"plaintext":[{"path":"/spec/template/spec/containers/0/args/-9","operator":"add","value":1e400}]}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := &policyv1alpha1.ClusterOverridePolicy{}
		if json.Unmarshal(raw, &p.Spec) != nil {
			t.Skip()
		}
		m := object(t, deployment)
		got, applied, err := override.Apply(m, cluster("eu"), []policyv1alpha1.Override{p, p})
		if diff := cmp.Diff(object(t, deployment).Object, m.Object); diff != "" {
			t.Fatalf("the template was changed: %s", diff)
		}
		if err != nil {
			return
		}
		if got.GetKind() == "" || got.GetName() == "" {
			t.Fatalf("no manifest is left: %v", got.Object)
		}
		if _, err := got.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
		applied.Annotations() // does not panic
	})
}

func BenchmarkApplyLabelToBigManifest(b *testing.B) {
	m := object(b, deployment)
	big := map[string]any{}
	for i := range 2000 {
		big["key"+strings.Repeat("x", i%7)+string(rune('a'+i%26))] = strings.Repeat("v", 400)
	}
	m.Object["data"] = big
	policies := []policyv1alpha1.Override{op(b, "shop", "p", rule("labelsOverrider: [{operator: add, value: {a: b}}]"))}
	c := cluster("eu")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := override.Apply(m, c, policies); err != nil {
			b.Fatal(err)
		}
	}
}
