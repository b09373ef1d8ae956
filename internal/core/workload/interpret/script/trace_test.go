package script

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestTraceFindsFieldsThatTheKindLacks(t *testing.T) {
	of := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	known := apiextensionsv1.JSONSchemaProps{Type: "string"}
	part := of(map[string]apiextensionsv1.JSONSchemaProps{"known": known})
	open := of(map[string]apiextensionsv1.JSONSchemaProps{"known": known})
	open.XPreserveUnknownFields = new(true)
	labels := apiextensionsv1.JSONSchemaProps{Type: "object",
		AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &known}}
	spec := of(map[string]apiextensionsv1.JSONSchemaProps{"part": part, "open": open, "labels": labels,
		"any": {Type: "object", XPreserveUnknownFields: new(true)}, "parts": {Type: "array",
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &part}}})
	root := of(map[string]apiextensionsv1.JSONSchemaProps{"spec": spec})
	one := func() map[string]any { return map[string]any{"known": "x"} }
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"part": one(), "open": one(),
		"labels": one(), "any": one(), "parts": []any{one()}}}}
	for read, want := range map[string][]string{
		"spec.part.known":          nil,
		"spec.open.foo":            nil,
		"spec.labels.foo":          nil,
		"spec.any.foo":             nil,
		"spec.part.foo":            {"spec.part.foo"},
		"spec.foo or obj.spec.foo": {"spec.foo"},
		"status":                   {"status"},
		"spec.parts[1].foo":        {"spec.parts[].foo"},
		"spec.parts[2]":            nil,

		`foo; require("kube").accuratePodRequirements(obj.spec.any)`: {"foo"},
	} {
		p, err := Compile("own", configv1alpha1.InterpreterOperationInterpretHealth,
			"function InterpretHealth(obj)\n  kept = obj."+read+"\n  return obj.spec.labels\nend", SchemaOf(&root))
		if err != nil {
			t.Fatal(err)
		}
		trace, err := p.Trace(t.Context(), interpret.Inputs{Object: obj})
		if err != nil || !slices.Equal(trace.Unknown, want) {
			t.Errorf("%s: error %v, unknown are %q, want %q", read, err, trace.Unknown, want)
		}
		if isSet := len(trace.Globals) == 1 && trace.Globals[0] == "kept"; read == "spec.part.known" && !isSet {
			t.Errorf("globals are %q", trace.Globals)
		}
	}
}
