// Package convert converts objects between served versions. The API server decides when.
package convert

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// restLimit bounds the annotation, all annotations of an object being bounded. A larger rest is left out: then v1alpha1
// is lossy.
const restLimit = 128 << 10

// Binding returns obj in apiVersion, for the versions of work.karmada.io. obj is not changed, and shared where it stays
// the same.
func Binding(obj *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
	switch from := obj.GetAPIVersion(); {
	case obj.GetKind() != "ResourceBinding" && obj.GetKind() != "ClusterResourceBinding":
		return nil, fmt.Errorf("%s has only one version", obj.GetKind())
	case from == apiVersion:
		return obj, nil
	case from == workv1alpha2.GroupVersion.String() && apiVersion == workv1alpha1.GroupVersion.String():
		return down(obj)
	case from == workv1alpha1.GroupVersion.String() && apiVersion == workv1alpha2.GroupVersion.String():
		return up(obj)
	default:
		return nil, fmt.Errorf("cannot convert %s from %q to %q", obj.GetKind(), from, apiVersion)
	}
}

// down moves the fields of v1alpha1 to it and keeps the rest in an annotation.
func down(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	rest := obj.DeepCopy().Object
	out := &unstructured.Unstructured{Object: map[string]any{}}
	for _, key := range []string{"kind", "metadata"} {
		if v, ok := rest[key]; ok {
			out.Object[key] = v
			delete(rest, key)
		}
	}
	out.SetAPIVersion(workv1alpha1.GroupVersion.String())
	delete(rest, "apiVersion")

	if from, ok := rest["spec"].(map[string]any); ok {
		resource := map[string]any{}
		if reference, ok := from["resource"].(map[string]any); ok {
			take(reference, resource, "apiVersion", "kind", "namespace", "name", "resourceVersion")
			fields.DropEmpty(from, "resource")
		}
		take(from, resource, "replicas")
		if requirements, ok := from["replicaRequirements"].(map[string]any); ok && requirements["resourceRequest"] != nil {
			resource["resourcePerReplicas"] = requirements["resourceRequest"]
			delete(requirements, "resourceRequest")
			fields.DropEmpty(from, "replicaRequirements")
		}
		spec := map[string]any{"resource": resource}
		split(from, spec, "clusters", "name", "replicas")
		out.Object["spec"] = spec
		fields.DropEmpty(rest, "spec")
	}
	if from, ok := rest["status"].(map[string]any); ok {
		status := map[string]any{}
		take(from, status, "conditions")
		split(from, status, "aggregatedStatus", "clusterName", "status", "applied", "appliedMessage")
		out.Object["status"] = status
		fields.DropEmpty(rest, "status")
	}
	if len(rest) == 0 {
		return out, nil
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return nil, fmt.Errorf("keep the fields that v1alpha1 does not have: %w", err)
	}
	if len(text) <= restLimit {
		fields.SetAnnotation(out, wellknown.BindingRestAnnotation, string(text))
	}
	return out, nil
}

// up merges the fields of v1alpha1 into the v1alpha2 fields that the object keeps.
func up(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	from := obj.DeepCopy()
	rest := map[string]any{}
	annotations := from.GetAnnotations()
	if text, ok := annotations[wellknown.BindingRestAnnotation]; ok {
		kept := &unstructured.Unstructured{}
		// The decoder that keeps integers wants a kind.
		if err := kept.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Rest","rest":` + text + `}`)); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", wellknown.BindingRestAnnotation, err)
		}
		if object, ok := kept.Object["rest"].(map[string]any); ok {
			rest = object
		}
		delete(annotations, wellknown.BindingRestAnnotation)
		from.SetAnnotations(annotations)
		if len(annotations) == 0 {
			unstructured.RemoveNestedField(from.Object, "metadata", "annotations")
		}
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	for _, key := range []string{"kind", "metadata"} {
		if v, ok := from.Object[key]; ok {
			out.Object[key] = v
		}
	}
	out.SetAPIVersion(workv1alpha2.GroupVersion.String())

	if from, ok := from.Object["spec"].(map[string]any); ok {
		spec := fields.Ensure(rest, "spec")
		reference := fields.Ensure(spec, "resource")
		if resource, ok := from["resource"].(map[string]any); ok {
			take(resource, reference, "apiVersion", "kind", "namespace", "name", "resourceVersion")
			take(resource, spec, "replicas")
			if request, ok := resource["resourcePerReplicas"]; ok {
				fields.Ensure(spec, "replicaRequirements")["resourceRequest"] = request
			}
		}
		join(from, spec, "clusters", "name")
		out.Object["spec"] = spec
	}
	if from, ok := from.Object["status"].(map[string]any); ok {
		status := fields.Ensure(rest, "status")
		take(from, status, "conditions")
		join(from, status, "aggregatedStatus", "clusterName")
		out.Object["status"] = status
	}
	return out, nil
}

// take moves the keys that are there.
func take(from, to map[string]any, keys ...string) {
	for _, key := range keys {
		if v, ok := from[key]; ok {
			to[key] = v
			delete(from, key)
		}
	}
}

// split moves the key and the known fields of each item of a list; items that have more stay behind, with their key.
func split(from, to map[string]any, list, key string, known ...string) {
	items, ok := from[list].([]any)
	if !ok {
		return
	}
	moved := make([]any, len(items))
	var left []any
	for i := range items {
		item, ok := items[i].(map[string]any)
		if !ok {
			moved[i] = items[i]
			continue
		}
		m := map[string]any{}
		take(item, m, append(known, key)...)
		moved[i] = m
		if len(item) > 0 {
			item[key] = m[key]
			left = append(left, item)
		}
	}
	to[list] = moved
	delete(from, list)
	if left != nil {
		from[list] = left
	}
}

// join is the inverse: items get back the recorded fields of the item with the same key. Fields of removed items are
// dropped.
func join(from, to map[string]any, list, key string) {
	kept, _ := to[list].([]any)
	delete(to, list)
	items, ok := from[list].([]any)
	if !ok {
		return
	}
	for i := range items {
		item, ok := items[i].(map[string]any)
		if !ok {
			continue
		}
		for _, k := range kept {
			left, ok := k.(map[string]any)
			if !ok || left[key] != item[key] {
				continue
			}
			maps.Copy(item, left)
		}
	}
	to[list] = items
}
