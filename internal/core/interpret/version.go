package interpret

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Convert brings an object to another version of its kind, and answers nil where nobody knows how; it may be nil itself, and then
// knows nothing. The object given is not changed.
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
