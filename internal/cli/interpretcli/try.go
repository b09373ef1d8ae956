package interpretcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// trial runs a valid script on sample objects.
type trial struct {
	program   *script.Program
	operation configv1alpha1.InterpreterOperation
	target    configv1alpha1.CustomizationTarget
	// kind is the schema of the target; nil if it is not known.
	kind *apiextensionsv1.JSONSchemaProps
}

// try returns what is wrong with the scripts of a customization that a hub accepts, by operation.
func try(ctx context.Context, c *configv1alpha1.ResourceInterpreterCustomization,
	set *schemas.Set) map[configv1alpha1.InterpreterOperation][]string {
	found := map[configv1alpha1.InterpreterOperation][]string{}
	target := c.Spec.Target
	kind := set.Get(schema.FromAPIVersionAndKind(target.APIVersion, target.Kind))
	for _, s := range script.Scripts(c.Spec.Customizations) {
		program, err := script.Compile(c.Name, s.Operation, s.Source, script.SchemaOf(kind))
		if err == nil {
			t := trial{program, s.Operation, target, kind}
			found[s.Operation] = append(t.failures(ctx), t.mistakes(ctx)...)
		}
	}
	return found
}

// failures returns how the script fails on samples, once per line.
func (t trial) failures(ctx context.Context) []string {
	bare, full := t.sample(false, 1), t.sample(true, 3)
	empty := withValue(bare, map[string]any{}, "status")
	samples := []struct {
		what              string
		desired, observed *unstructured.Unstructured
		items             []workv1alpha2.AggregatedStatusItem
	}{
		{"that has only required fields", bare, bare, reports(bare)},
		{"with an empty status", empty, empty, reports(empty)},
		{"that has all fields", full, full, reports(full)},
		{"that has all fields, while the member has only required fields", full, bare, nil},
		{"that has only required fields, while the member has all fields", bare, full, reports(full)},
		{"of which a cluster has no status yet", bare, bare, []workv1alpha2.AggregatedStatusItem{{ClusterName: "member1"}}},
	}
	var failed []string
	lines := map[int]bool{}
	for _, s := range samples {
		in := interpret.Inputs{Object: s.desired, Observed: s.observed, Replicas: 2, Items: s.items}
		_, err := t.program.Evaluate(ctx, in)
		var e *script.Error
		if !errors.As(err, &e) || lines[e.Line] {
			continue
		}
		lines[e.Line] = true
		failed = append(failed, fmt.Sprintf("fails on an object %s: %s", s.what, lineAnd(e)))
		if e.Reason != script.Runtime && e.Reason != script.BadResult {
			break // each further sample would take as long
		}
	}
	return failed
}

// mistakes returns results of samples that are hardly meant.
func (t trial) mistakes(ctx context.Context) []string {
	ask := func(in interpret.Inputs) script.Outputs {
		out, err := t.program.Evaluate(ctx, in)
		if err != nil {
			return script.Outputs{} // see failures
		}
		return *out
	}
	full := t.sample(true, 3)
	all := ask(interpret.Inputs{Object: full, Observed: full, Replicas: 2, Items: reports(full)})
	found := all.Warnings
	spec, _ := full.Object["spec"].(map[string]any)
	status, _ := full.Object["status"].(map[string]any)
	switch t.operation {
	case configv1alpha1.InterpreterOperationRetain:
		other := t.sample(true, 2)
		retained := ask(interpret.Inputs{Object: other, Observed: full}).Object
		for _, name := range slices.Sorted(maps.Keys(spec)) {
			hub, _, _ := unstructured.NestedFieldNoCopy(other.Object, "spec", name)
			if retained == nil || reflect.DeepEqual(hub, spec[name]) {
				continue
			}
			if kept, _, _ := unstructured.NestedFieldNoCopy(retained.Object, "spec", name); reflect.DeepEqual(kept, spec[name]) {
				found = append(found, fmt.Sprintf("the member's spec.%s always wins: the hub cannot change it any more", name))
			}
		}
	case configv1alpha1.InterpreterOperationInterpretStatus:
		if status["observedGeneration"] != nil && all.Status != nil && all.Status["observedGeneration"] == nil {
			found = append(found, "leaves out observedGeneration, so the template has none")
		}
	case configv1alpha1.InterpreterOperationInterpretHealth:
		old := withValue(full, full.GetGeneration()-1, "status", "observedGeneration")
		if status["observedGeneration"] != nil && ask(interpret.Inputs{Object: old}).Health == interpret.Healthy {
			found = append(found, "does not check status.observedGeneration: after a change, it judges the old status")
		}
		empty := withValue(t.sample(false, 1), map[string]any{}, "status")
		if spec["replicas"] != nil && ask(interpret.Inputs{Object: empty}).Health == interpret.Healthy {
			found = append(found, "an object with an empty status is healthy: give counters a default, "+
				"such as (status.readyReplicas or 0)")
		}
	}
	return found
}

// sample returns an object with all fields, or only with those that every object has. Its numbers are n.
func (t trial) sample(all bool, n int64) *unstructured.Unstructured {
	m := map[string]any{"spec": map[string]any{}}
	if t.kind != nil {
		m = sampleOf(t.kind, all, n, 0).(map[string]any)
	}
	m["apiVersion"], m["kind"] = t.target.APIVersion, t.target.Kind
	m["metadata"] = map[string]any{"name": "sample", "namespace": "default", "generation": int64(2)}
	return &unstructured.Unstructured{Object: m}
}

// deepest limits the depth of samples: schemas may be recursive, and scripts rarely look deeper.
const deepest = 7

func sampleOf(s *apiextensionsv1.JSONSchemaProps, all bool, n int64, depth int) any {
	switch {
	case s.Type == "integer", s.XIntOrString:
		return n
	case s.Type == "number":
		return float64(n)
	case s.Type == "boolean":
		return n%2 == 1
	case s.Type == "string" && s.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	case s.Type == "string" && len(s.Enum) > 0:
		var text string
		if err := json.Unmarshal(s.Enum[int(n)%len(s.Enum)].Raw, &text); err == nil {
			return text
		}
		return ""
	case s.Type == "string":
		return fmt.Sprintf("x%d", n)
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil && depth < deepest:
		return []any{sampleOf(s.Items.Schema, all, n, depth+1)}
	case s.Type == "array":
		return []any{}
	}
	m := map[string]any{}
	if depth >= deepest {
		return m
	}
	for name, p := range s.Properties {
		// A spec without required fields may be missing.
		if all || slices.Contains(s.Required, name) || name == "spec" && len(p.Required) > 0 {
			m[name] = sampleOf(&p, all, n, depth+1)
		}
	}
	if a := s.AdditionalProperties; all && a != nil && a.Schema != nil {
		m["x"] = sampleOf(a.Schema, all, n, depth+1)
	}
	return m
}

// withValue returns a copy of an object with a value at a path.
func withValue(obj *unstructured.Unstructured, v any, path ...string) *unstructured.Unstructured {
	out := obj.DeepCopy()
	_ = unstructured.SetNestedField(out.Object, v, path...) // a status of another type stays as it is
	return out
}

// reports returns the items of two clusters with the object's status; nil if it has none.
func reports(obj *unstructured.Unstructured) []workv1alpha2.AggregatedStatusItem {
	raw, err := json.Marshal(obj.Object["status"])
	if err != nil || obj.Object["status"] == nil {
		return nil
	}
	status := &runtime.RawExtension{Raw: raw}
	return []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "member1", Applied: true, Status: status}, {ClusterName: "member2", Applied: true, Status: status}}
}
