package builtin

import (
	"encoding/json"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/kruise"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// misfits returns the places of v that the schema does not have, or has otherwise. A server would drop them or refuse
// the write, so a status with one would be written again and again.
func misfits(path string, v any, s apiextensionsv1.JSONSchemaProps) []string {
	if s.XIntOrString || s.Type == "" {
		return nil
	}
	wrong := []string{fmt.Sprintf("%s is %v, no %s", path, v, s.Type)}
	var found []string
	switch s.Type {
	case "object":
		m, ok := v.(map[string]any)
		if !ok {
			return wrong
		}
		for _, name := range s.Required {
			if _, ok := m[name]; !ok {
				found = append(found, path+"."+name+" is missing")
			}
		}
		for _, key := range sortedKeys(m) {
			if p, ok := s.Properties[key]; ok {
				found = append(found, misfits(path+"."+key, m[key], p)...)
				continue
			}
			if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
				found = append(found, misfits(path+"."+key, m[key], *s.AdditionalProperties.Schema)...)
				continue
			}
			if s.XPreserveUnknownFields == nil || !*s.XPreserveUnknownFields {
				found = append(found, path+"."+key+" does not exist")
			}
		}
	case "array":
		l, ok := v.([]any)
		if !ok {
			return wrong
		}
		for i, element := range l {
			found = append(found, misfits(fmt.Sprintf("%s[%d]", path, i), element, *s.Items.Schema)...)
		}
	case "integer":
		if _, ok := whole(v); !ok {
			return wrong
		}
	case "string":
		if _, ok := v.(string); !ok {
			return wrong
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong
		}
	}
	return found
}

// fitting is v without what the schema does not have, as a server that serves it keeps it.
func fitting(v any, s apiextensionsv1.JSONSchemaProps) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if p, ok := s.Properties[key]; ok {
				out[key] = fitting(value, p)
			} else if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
				out[key] = fitting(value, *s.AdditionalProperties.Schema)
			}
		}
		return out
	case []any:
		var out []any
		for _, element := range v {
			out = append(out, fitting(element, *s.Items.Schema))
		}
		return out
	}
	return v
}

// Some members serve one version and some another: their reports and the hub's additions never make a status that is
// invalid in the template's version.
func TestAggregatedStatusMatchesSchema(t *testing.T) {
	crds, err := kruise.Hub()
	if err != nil {
		t.Fatal(err)
	}
	full := read(t, everything)
	known := Tier().(interpret.Kinds)
	seen := 0
	for _, crd := range crds {
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		if known[kind] == nil || known[kind].Aggregate == nil {
			continue
		}
		statuses := map[string]apiextensionsv1.JSONSchemaProps{}
		var reports []workv1alpha2.AggregatedStatusItem
		for _, v := range crd.Spec.Versions {
			statuses[v.Name] = v.Schema.OpenAPIV3Schema.Properties["status"]
			member := full.DeepCopy()
			member.SetGroupVersionKind(kind.WithVersion(v.Name))
			member.Object["status"] = fitting(full.Object["status"], statuses[v.Name])
			reflected, err := interpreter.Reflect(t.Context(), member)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(reflected)
			if err != nil {
				t.Fatal(err)
			}
			reports = append(reports, workv1alpha2.AggregatedStatusItem{ClusterName: v.Name,
				Status: &runtime.RawExtension{Raw: raw}})
		}
		for version, status := range statuses {
			seen++
			template := full.DeepCopy()
			template.SetGroupVersionKind(kind.WithVersion(version))
			delete(template.Object, "status")
			for from := range reports {
				for to := from; to <= len(reports); to++ {
					got, err := interpreter.Aggregate(t.Context(), template, reports[from:to])
					if err != nil {
						t.Fatal(err)
					}
					if got.Object["status"] == nil {
						continue
					}
					if found := misfits("status", got.Object["status"], status); len(found) > 0 {
						t.Errorf("%s %s, of %d members: %v", kind, version, to-from, found)
					}
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d versions of kinds were looked at", seen)
	}
}
