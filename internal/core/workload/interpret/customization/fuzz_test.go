package customization_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
)

// answersAboutTheObject holds that whatever a customization says, an answer that is an object is the one that was asked
// about.
func answersAboutTheObject(t *testing.T, rules configv1alpha1.CustomizationRules, content string) {
	t.Helper()
	var rest map[string]any
	if json.Unmarshal([]byte(content), &rest) != nil || rest == nil {
		rest = map[string]any{}
	}
	rest["apiVersion"], rest["kind"] = "example.com/v1", "Shop"
	metadata := map[string]any{"name": "s", "namespace": "ns"}
	rest["metadata"] = metadata
	obj := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(rest)}
	observed := obj.DeepCopy()
	observed.SetUID("uid")
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	c.Name = "c"
	c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.com/v1", Kind: "Shop"}
	c.Spec.Customizations = rules
	i := interpret.New(customization.New([]*configv1alpha1.ResourceInterpreterCustomization{c}, customization.Options{}))
	before, _ := json.Marshal(obj.Object)
	is := identity.FromManifest(obj)
	keeps := func(what string, got *unstructured.Unstructured, err error) {
		t.Helper()
		if err != nil {
			return
		}
		if err := is.Keeps(got); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := got.MarshalJSON(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	revised, err := i.Revise(t.Context(), obj, 3)
	keeps("Revise", revised, err)
	retained, err := i.Retain(t.Context(), obj, observed)
	keeps("Retain", retained, err)
	aggregated, err := i.Aggregate(t.Context(), obj,
		[]workv1alpha2.AggregatedStatusItem{{ClusterName: "eu", Status: &runtime.RawExtension{Raw: []byte(`{"ready":1}`)}}})
	keeps("Aggregate", aggregated, err)
	_, _, _, _ = i.Replicas(t.Context(), obj)
	_, _ = i.Components(t.Context(), obj)
	_, _ = i.Health(t.Context(), obj)
	_, _ = i.Reflect(t.Context(), obj)
	_, _ = i.Dependencies(t.Context(), obj)
	if after, _ := json.Marshal(obj.Object); string(after) != string(before) {
		t.Fatalf("the object was changed: %s", after)
	}
}

// scripted has a script answer for every operation.
func scripted(source string) configv1alpha1.CustomizationRules {
	return configv1alpha1.CustomizationRules{
		Retention: &configv1alpha1.RetentionRule{OperationRule: configv1alpha1.OperationRule{
			LuaScript: source}},
		ReplicaResource:          &configv1alpha1.OperationRule{LuaScript: source},
		ReplicaRevision:          &configv1alpha1.OperationRule{LuaScript: source},
		StatusReflection:         &configv1alpha1.OperationRule{LuaScript: source},
		HealthInterpretation:     &configv1alpha1.HealthRule{OperationRule: configv1alpha1.OperationRule{LuaScript: source}},
		DependencyInterpretation: &configv1alpha1.OperationRule{LuaScript: source},
	}
}

var another = []string{
	"obj.metadata.name = 'other'", "obj.metadata.namespace = 'kube-system'", "obj.metadata.namespace = nil",
	"obj.kind = 'ClusterRole'", "obj.apiVersion = 'rbac.authorization.k8s.io/v1'",
	"obj.metadata = {name = 's', namespace = 'bank'}", "obj.metadata = nil", "obj.metadata.name = 5",
	"obj.apiVersion = 'a/b/c'", "obj = {apiVersion = 'v1', kind = 'Secret', metadata = {name = 's'}}",
	"obj.spec = obj", "setmetatable(obj, {__index = function() return 'x' end})", "obj.metadata[1] = 'x'", "obj = {}",
}

func TestScriptCannotChangeIdentity(t *testing.T) {
	for _, change := range another {
		for _, function := range []string{"ReviseReplica", "Retain", "AggregateStatus"} {
			answersAboutTheObject(t, scripted(fmt.Sprintf("function %s(obj, other) %s return obj end", function, change)),
				`{"spec":{"replicas":1}}`)
		}
	}
}

func FuzzScriptsKeepTheObject(f *testing.F) {
	for _, change := range another {
		f.Add("function f(obj, other) "+change+" return obj end", `{"spec":{"replicas":1}}`)
	}
	f.Add("function GetReplicas(o) return o.spec.replicas, nil end", `{"spec":{"replicas":9007199254740993}}`)
	f.Add("function GetDependencies(o) return {{apiVersion='v1', kind='Secret', namespace='bank', name='x'}} end", `{}`)
	f.Add("local kube = require('kube') function f(o) return kube.accuratePodRequirements(o.spec) end",
		`{"spec":{"template":{}}}`)
	f.Add("function f(o) return string.rep('x', 1e9) end", `{}`)
	f.Fuzz(func(t *testing.T, source, content string) {
		answersAboutTheObject(t, scripted(source), content)
	})
}

func FuzzPathsKeepTheObject(f *testing.F) {
	for _, path := range []string{".metadata.name", ".metadata", ".kind", ".apiVersion", ".metadata['namespace']",
		".spec.replicas", ".status", ".spec.a[0].b", ".", "", ".metadata.annotations"} {
		f.Add(path, "3", `{"spec":{"replicas":1,"a":[{"b":2}]},"status":{"ready":1}}`)
	}
	f.Fuzz(func(t *testing.T, path, expected, content string) {
		answersAboutTheObject(t, configv1alpha1.CustomizationRules{
			Retention:        &configv1alpha1.RetentionRule{JSONPaths: []string{path}},
			ReplicaResource:  &configv1alpha1.OperationRule{JSONPath: path},
			ReplicaRevision:  &configv1alpha1.OperationRule{JSONPath: path},
			StatusReflection: &configv1alpha1.OperationRule{JSONPath: path},
			HealthInterpretation: &configv1alpha1.HealthRule{OperationRule: configv1alpha1.OperationRule{JSONPath: path},
				Expected: expected},
		}, content)
	})
}
