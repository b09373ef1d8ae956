package tiers

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

var known = sync.OnceValues(schemas.Builtin)

// Schema returns the built-in schema of a kind; nil if unknown.
func Schema(kind schema.GroupVersionKind) *script.Schema {
	all, err := known()
	if err != nil {
		return nil // the tests of schemas check the embedded files
	}
	return script.SchemaOf(all.Get(kind))
}

// Convert converts obj, or a status without a version, to another version of its kind; nil if unsupported.
func Convert(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	kind := obj.GroupVersionKind()
	if !kruise.Converts(kind.GroupKind()) {
		return nil, nil
	}
	if kind.Version == "" {
		kind.Version = version
		status, _ := obj.Object["status"].(map[string]any)
		out := &unstructured.Unstructured{Object: map[string]any{"status": kruise.Status(kind, status)}}
		out.SetGroupVersionKind(kind)
		return out, nil
	}
	return kruise.Convert(obj, schema.GroupVersion{Group: kind.Group, Version: version}.String())
}
