package schemas_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		{"argoproj.io", "v1alpha1", "Workflow", []string{"status", "failed"}, ""},
	} {
		kind := set.Get(schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind})
		if kind == nil {
			t.Errorf("%s %s is not known", c.version, c.kind)
			continue
		}
		at := *kind
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
	if set.Get(gvk) != nil {
		t.Fatal("v9 is known before its definition")
	}
	set.Add(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: gvk.Group,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: gvk.Kind},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v9", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object"}}},
			{Name: "v10"},
		},
	}})
	kind := set.Get(gvk)
	if kind == nil || kind.Properties["metadata"].Properties["name"].Type != "string" {
		t.Errorf("v9 is %+v", kind)
	}
	gvk.Version = "v10"
	if set.Get(gvk) != nil {
		t.Error("v10, which has no schema, is known")
	}
}
