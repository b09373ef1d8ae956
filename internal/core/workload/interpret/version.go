package interpret

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Convert converts an object to another version of its kind, or returns nil if it cannot. A nil Convert converts
// nothing. It does not modify its argument. An object without a version has only a status.
type Convert func(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error)

// ConvertTo returns obj in a version of its kind: obj itself if it has the version, nil if it cannot be converted.
func (c Convert) ConvertTo(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	if obj.GroupVersionKind().Version == version {
		return obj, nil
	}
	if c == nil {
		return nil, nil
	}
	return c(obj, version)
}

// Knows reports whether objects of a kind can be converted to a version and back.
func (c Convert) Knows(kind schema.GroupVersionKind, version string) bool {
	there := func(from schema.GroupVersionKind, to string) bool {
		probe := &unstructured.Unstructured{Object: map[string]any{}}
		probe.SetGroupVersionKind(from)
		out, err := c.ConvertTo(probe, to)
		return out != nil && err == nil
	}
	return there(kind, version) && there(kind.GroupKind().WithVersion(version), kind.Version)
}

// Statuses returns the items with statuses in the version of kind. Members report statuses in their own version or in
// that of the customization. The argument is not modified, and is returned if there is no conversion.
func (c Convert) Statuses(kind schema.GroupVersionKind,
	items []workv1alpha2.AggregatedStatusItem) ([]workv1alpha2.AggregatedStatusItem, error) {
	to := func(status map[string]any) (map[string]any, error) {
		if c == nil {
			return nil, nil
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"status": status}}
		obj.SetGroupVersionKind(kind.GroupKind().WithVersion(""))
		out, err := c(obj, kind.Version)
		if err != nil || out == nil {
			return nil, err
		}
		made, _ := out.Object["status"].(map[string]any)
		return made, nil
	}
	if knows, err := to(map[string]any{}); err != nil || knows == nil {
		return items, err
	}
	out := make([]workv1alpha2.AggregatedStatusItem, len(items))
	for i, item := range items {
		out[i] = item
		var status map[string]any
		if item.Status == nil || utiljson.Unmarshal(item.Status.Raw, &status) != nil || status == nil {
			continue // the interpreter reports the error
		}
		made, err := to(status)
		if err != nil {
			return nil, fmt.Errorf("the status of cluster %q: %w", item.ClusterName, err)
		}
		raw, err := json.Marshal(made)
		if err != nil {
			return nil, fmt.Errorf("the status of cluster %q: %w", item.ClusterName, err)
		}
		out[i].Status = &runtime.RawExtension{Raw: raw}
	}
	return out, nil
}
