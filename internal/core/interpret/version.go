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

// Convert brings an object to another version of its kind, and answers nil where nobody knows how; it may be nil
// itself, and then knows nothing. The object given is not changed. One of no version has a status alone, of which
// nobody knows whose it is.
type Convert func(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error)

// To is obj in a version of its kind: obj itself if it is in it, nil if nobody knows how to bring it there.
func (c Convert) To(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	if obj.GroupVersionKind().Version == version {
		return obj, nil
	}
	if c == nil {
		return nil, nil
	}
	return c(obj, version)
}

// Knows says whether objects of a kind can be brought to a version of it and back.
func (c Convert) Knows(kind schema.GroupVersionKind, version string) bool {
	there := func(from schema.GroupVersionKind, to string) bool {
		probe := &unstructured.Unstructured{Object: map[string]any{}}
		probe.SetGroupVersionKind(from)
		out, err := c.To(probe, to)
		return out != nil && err == nil
	}
	return there(kind, version) && there(kind.GroupKind().WithVersion(version), kind.Version)
}

// Statuses are the items with their statuses in the version of kind. Members report them in the version that they have,
// and what reflects them in that which it is written for. The items given are not changed, and are the answer where
// nobody knows how.
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
			continue // whoever is given it says what is wrong with it
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
