package lint

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// deepest limits the depth of samples. Each trial copies a sample, and scripts rarely look deeper.
const deepest = 7

// full returns a value with all fields of a schema. n is the value of numbers, so that samples differ.
func full(s *apiextensionsv1.JSONSchemaProps, n int64, depth int) any {
	if s.XIntOrString {
		return n
	}
	switch s.Type {
	case "integer":
		return n
	case "number":
		return float64(n)
	case "boolean":
		return n%2 == 1
	case "string":
		switch {
		case len(s.Enum) > 0:
			return strings.Trim(string(s.Enum[int(n)%len(s.Enum)].Raw), `"`)
		case s.Format == "date-time":
			return "2026-01-02T03:04:05Z"
		case s.Format == "byte":
			return "eA=="
		}
		return "x" + string(rune('a'+n%26))
	case "array":
		if s.Items == nil || s.Items.Schema == nil || depth >= deepest {
			return []any{}
		}
		return []any{full(s.Items.Schema, n, depth+1)}
	}
	m := map[string]any{}
	if depth >= deepest {
		return m
	}
	for name := range s.Properties {
		p := s.Properties[name]
		m[name] = full(&p, n, depth+1)
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		m["x"] = full(a.Schema, n, depth+1)
	}
	return m
}

// least returns a value with only the required fields.
func least(s *apiextensionsv1.JSONSchemaProps, depth int) any {
	if s.Type != "object" || depth >= deepest {
		return full(s, 1, depth)
	}
	m := map[string]any{}
	for name := range s.Properties {
		if p := s.Properties[name]; always(s, name) {
			m[name] = least(&p, depth+1)
		}
	}
	return m
}

// object returns a sample with all fields, or only those that every object has.
func (c *checker) object(all bool, n int64) *unstructured.Unstructured {
	metadata := map[string]any{"name": "sample", "generation": int64(2), "resourceVersion": "1", "uid": "sample"}
	if c.kind == nil || !c.kind.ClusterScoped {
		metadata["namespace"] = "default"
	}
	m := map[string]any{"apiVersion": c.target.APIVersion, "kind": c.target.Kind, "metadata": metadata}
	if c.target.Kind == "" {
		m["apiVersion"], m["kind"] = "example.org/v1", "Sample"
	}
	if all {
		metadata["labels"] = map[string]any{"app": "sample"}
		metadata["annotations"] = map[string]any{"resourcetemplate.karmada.io/generation": "2"}
	}
	if c.kind == nil {
		m["spec"] = map[string]any{}
		return &unstructured.Unstructured{Object: m}
	}
	for name := range c.kind.Schema.Properties {
		p := c.kind.Schema.Properties[name]
		if name == "metadata" || name == "apiVersion" || name == "kind" {
			continue
		}
		switch {
		case all:
			m[name] = full(&p, n, 1)
		case always(c.kind.Schema, name):
			m[name] = least(&p, 1)
		}
	}
	return &unstructured.Unstructured{Object: m}
}

// always reports whether every object has the field: it is required, or it is a spec with a required field.
func always(s *apiextensionsv1.JSONSchemaProps, name string) bool {
	return slices.Contains(s.Required, name) || name == "spec" && len(s.Properties[name].Required) > 0
}

// optional returns the paths that a script reads and that an object may lack, with their parents.
func (c *checker) optional(read *reading, root int) [][]string {
	var all [][]string
	for _, a := range read.reads {
		if a.root != root || c.kind == nil {
			continue
		}
		s := c.kind.Schema
		for i, name := range a.path {
			if name == each || i == 0 && (name == "metadata" || name == "apiVersion" || name == "kind") {
				break
			}
			next, open := descend(s, name)
			if next == nil || open {
				break
			}
			path := a.path[:i+1]
			if !always(s, name) && !slices.ContainsFunc(all, func(p []string) bool { return slices.Equal(p, path) }) {
				all = append(all, path)
			}
			s = next
		}
	}
	return all
}

// without returns a copy of an object without a field.
func without(obj *unstructured.Unstructured, path []string) *unstructured.Unstructured {
	out := obj.DeepCopy()
	unstructured.RemoveNestedField(out.Object, path...)
	return out
}

// withValue returns a copy of an object with a value at a path, if possible.
func withValue(obj *unstructured.Unstructured, v any, path ...string) *unstructured.Unstructured {
	out := obj.DeepCopy()
	// A scalar is in the way: keep the sample.
	_ = unstructured.SetNestedField(out.Object, runtime.DeepCopyJSONValue(v), path...)
	return out
}

// rollout returns an object that its controller has observed, with the desired, current and updated replicas.
func (c *checker) rollout(wanted, there, updated int64) *unstructured.Unstructured {
	obj := c.object(false, 1)
	status, ok := c.kind.Schema.Properties["status"]
	if !ok {
		return obj
	}
	if _, ok := c.kind.Schema.Properties["spec"].Properties["replicas"]; ok {
		obj = withValue(obj, wanted, "spec", "replicas")
	}
	for name, p := range status.Properties {
		lower := strings.ToLower(name)
		bad := slices.ContainsFunc([]string{"unavailable", "failed", "reserved", "collision", "terminating", "unknown",
			"mis"}, func(part string) bool {
			return strings.Contains(lower, part)
		})
		switch {
		case name == "observedGeneration":
			obj = withValue(obj, obj.GetGeneration(), "status", name)
		case p.Type != "integer":
		case bad:
			obj = withValue(obj, int64(0), "status", name)
		case strings.Contains(lower, "updated"):
			obj = withValue(obj, updated, "status", name)
		default:
			obj = withValue(obj, there, "status", name)
		}
	}
	return obj
}

// scaled reports whether the kind counts desired and current replicas.
func (c *checker) scaled() bool {
	if c.kind == nil {
		return false
	}
	_, wanted := c.kind.Schema.Properties["spec"].Properties["replicas"]
	_, ready := c.kind.Schema.Properties["status"].Properties["readyReplicas"]
	return wanted && ready
}

// partitionPath returns the field of a canary's partition; nil if the kind has none.
func (c *checker) partitionPath() []string {
	for _, path := range [][]string{{"spec", "updateStrategy", "partition"},
		{"spec", "updateStrategy", "rollingUpdate", "partition"}} {
		s := c.kind.Schema
		for _, name := range path {
			next, _ := descend(s, name)
			if next == nil {
				s = nil
				break
			}
			s = next
		}
		if s != nil {
			return path
		}
	}
	return nil
}

// observedOnly reports whether the operation gets the member's object.
func observedOnly(o configv1alpha1.InterpreterOperation) bool {
	return o == configv1alpha1.InterpreterOperationInterpretHealth ||
		o == configv1alpha1.InterpreterOperationInterpretStatus
}
