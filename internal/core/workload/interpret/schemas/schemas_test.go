package schemas_test

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/argo"
	"github.com/argosy-io/argosy/api/kruise"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
)

func TestBuiltinSchemas(t *testing.T) {
	set, err := schemas.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		group, version, kind string
		path                 []string
		want                 string // the type; empty when there is no such field
	}{
		{"apps", "v1", "Deployment", []string{"spec", "replicas"}, "integer"},
		{"apps", "v1", "Deployment", []string{"spec", "suspend"}, ""},
		{"apps", "v1", "Deployment", []string{"metadata", "labels"}, "object"},
		{"apps", "v1", "Deployment", []string{"spec", "template", "spec", "nodeName"}, "string"},
		{"batch", "v1", "CronJob", []string{"spec", "jobTemplate", "spec", "suspend"}, "boolean"},
		{"apps.kruise.io", "v1alpha1", "CloneSet", []string{"spec", "updateStrategy", "type"}, "string"},
		{"apps.kruise.io", "v1alpha1", "CloneSet", []string{"metadata", "generation"}, "integer"},
		{"apps.kruise.io", "v1alpha1", "CloneSet", []string{"spec", "suspend"}, ""},
		{"argoproj.io", "v1alpha1", "Workflow", []string{"status", "phase"}, "string"},
		{"argoproj.io", "v1alpha1", "Workflow", []string{"status", "failed"}, ""},
	} {
		kind, ok := set.Get(schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind})
		if !ok {
			t.Errorf("%s %s is not known", c.version, c.kind)
			continue
		}
		at := *kind.Schema
		found := true
		for _, name := range c.path {
			at, found = at.Properties[name]
		}
		if got := at.Type; got != c.want || found != (c.want != "") {
			t.Errorf("%s %v: type %q, found %v, want %q", c.kind, c.path, got, found, c.want)
		}
	}
}

func TestDefinitionReplacesKnownSchema(t *testing.T) {
	set, err := schemas.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	gvk := schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v9", Kind: "CloneSet"}
	if _, ok := set.Get(gvk); ok {
		t.Fatal("v9 is known before its definition")
	}
	set.Add(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: gvk.Group, Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: gvk.Kind},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v9", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object"}}},
			{Name: "v10"},
		},
	}})
	kind, ok := set.Get(gvk)
	if !ok || !kind.ClusterScoped || kind.StatusApart ||
		kind.Schema.Properties["metadata"].Properties["name"].Type != "string" {
		t.Errorf("v9 is %+v, known %v", kind, ok)
	}
	if versions := set.Versions(gvk.GroupKind()); !slices.Contains(versions, "v9") || slices.Contains(versions, "v10") {
		t.Errorf("versions are %v", versions)
	}
}

func TestOpenDefinitionKeepsKnownFields(t *testing.T) {
	set, err := schemas.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, definitions := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){kruise.Hub, argo.CRDs} {
		crds, err := definitions()
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			set.Add(crd)
		}
	}
	fields := func(group, kind, part string) map[string]apiextensionsv1.JSONSchemaProps {
		k, ok := set.Get(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind})
		if !ok {
			t.Fatalf("%s is not known", kind)
		}
		return k.Schema.Properties[part].Properties
	}
	if status := fields("argoproj.io", "Workflow", "status"); status["phase"].Type != "string" || len(status) < 10 {
		t.Errorf("the status of a Workflow, which its definition leaves open, has %d known fields", len(status))
	}
	topology := fields("apps.kruise.io", "UnitedDeployment", "spec")["topology"].Properties
	if _, ok := topology["subsets"]; !ok {
		t.Error("a UnitedDeployment has no subsets")
	}
	if _, ok := topology["pools"]; ok {
		t.Error("topology.pools, which a hub rewrites, passes for a field of a UnitedDeployment")
	}
}
