package tiers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
)

// shippedComponents are the components of the objects in the testdata of shipped kinds with several pod templates.
var shippedComponents = map[string]string{
	"flink-deployment":    "jobmanager taskmanager",
	"kubeflow-mpijob":     "launcher worker",
	"kubeflow-pytorchjob": "master worker",
	"kubeflow-tfjob":      "ps worker",
	"ray-cluster":         "gpu idle ray-head",
	"ray-job":             "ray-head submitter w",
	"ray-service":         "a b ray-head",
	"spark-application":   "driver executor",
	"volcano-job":         "ps worker",
}

// meaningOf reads a template as the hub does: the names of its components, and whether it has replicas instead.
func meaningOf(t *testing.T, obj *unstructured.Unstructured,
	customizations ...*configv1alpha1.ResourceInterpreterCustomization) (components string, m propagate.Meaning) {
	t.Helper()
	if err := m.Interpret(context.Background(), tiers.Offline(customizations), obj); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range m.Components {
		names = append(names, c.Name)
	}
	return strings.Join(names, " "), m
}

func TestKindsWithSeveralPodTemplatesHaveComponents(t *testing.T) {
	files, err := filepath.Glob("../shipped/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var read struct{ Object map[string]any }
		if err := yaml.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		components, m := meaningOf(t, &unstructured.Unstructured{Object: read.Object})
		if components != shippedComponents[name] || components != "" && (m.Replicas != 0 || m.Requirements != nil) {
			t.Errorf("%s has components %q, %d replicas and requirements %v; want components %q alone", name, components,
				m.Replicas, m.Requirements, shippedComponents[name])
		}
	}
}

func TestKindsWithOnePodTemplateAreDivided(t *testing.T) {
	pod := `template: {spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}}`
	for _, text := range []string{
		`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3, ` + pod + `}}`,
		`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 3, ` + pod + `}}`,
		`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, ` + pod + `}}`,
		`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3, ` + pod + `}}`,
		`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {replicas: 3, ` + pod + `}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {replicas: 3, ` + pod + `}}`,
		`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, spec: {replicas: 3,
			template: {deploymentTemplate: {spec: {` + pod + `}}}, topology: {subsets: [{name: a}, {name: b}]}}}`,
		`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, spec: {replicas: 3, ` + pod + `}}`,
	} {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
			t.Fatal(err)
		}
		if components, m := meaningOf(t, obj); components != "" || m.Replicas != 3 || m.Requirements == nil ||
			m.Requirements.ResourceRequest.Cpu().Value() != 2 {
			t.Errorf("%s has components %q, %d replicas and requirements %v; want 3 replicas with 2 CPUs",
				obj.GroupVersionKind().GroupKind(), components, m.Replicas, m.Requirements)
		}
	}
}

// The tier of a customization decides only about the operations that it implements.
func TestCustomizationsDecideHowAKindIsPlaced(t *testing.T) {
	replicas := `replicaResource: {luaScript: "function GetReplicas(obj) return 5 end"}`
	revise := `replicaRevision: {luaScript: "function ReviseReplica(obj, n) return obj end"}`
	one := `componentResource: {luaScript: "function GetComponents(obj) return {{name = 'all', replicas = 5}} end"}`
	two := `componentResource: {luaScript: "function GetComponents(obj) return {{name = 'x', replicas = 1}, {name = 'y', replicas = 4}} end"}`
	flink, train := "flink.apache.org/v1beta1 FlinkDeployment", "example.com/v1 Train"
	for name, test := range map[string]struct {
		kind       string
		rules      []string
		components string
		replicas   int32
	}{
		"nothing":                           {flink, nil, "jobmanager taskmanager", 0},
		"replicas beside shipped ones":      {flink, []string{replicas}, "jobmanager taskmanager", 0},
		"replicas that can be revised":      {flink, []string{replicas, revise}, "", 5},
		"a revision beside shipped ones":    {flink, []string{revise}, "", 2},
		"other components":                  {flink, []string{two}, "x y", 0},
		"one component, shipped replicas":   {flink, []string{one}, "", 2},
		"an own kind with replicas":         {train, []string{replicas}, "", 5},
		"an own kind with components":       {train, []string{two}, "x y", 0},
		"an own kind with one component":    {train, []string{one}, "all", 0},
		"an own kind with replicas and one": {train, []string{replicas, one}, "", 5},
		"an own kind with replicas and two": {train, []string{replicas, two}, "x y", 0},
		"an own kind with all three":        {train, []string{replicas, revise, two}, "", 5},
	} {
		version, kind, _ := strings.Cut(test.kind, " ")
		var all []*configv1alpha1.ResourceInterpreterCustomization
		if len(test.rules) > 0 {
			all = append(all, customization(t, "c", `{target: {apiVersion: `+version+`, kind: `+kind+`}, customizations: {`+
				strings.Join(test.rules, ", ")+`}}`))
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind,
			"metadata": map[string]any{"name": "a", "namespace": "b"}}}
		if components, m := meaningOf(t, obj, all...); components != test.components || m.Replicas != test.replicas {
			t.Errorf("%s: components %q and %d replicas, want %q and %d", name, components, m.Replicas, test.components,
				test.replicas)
		}
	}
}
