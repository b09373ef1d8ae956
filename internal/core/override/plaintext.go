package override

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// overridePlaintext applies the operations as one RFC 6902 patch. With an error comes the operation at fault.
func overridePlaintext(m *unstructured.Unstructured, operations []policyv1alpha1.PlaintextOverrider) (int, error) {
	var doc any = m.Object
	for i, o := range operations {
		path, err := parsePointer(o.Path)
		if err != nil {
			return i, err
		}
		value, err := decode(o.Value.Raw)
		if err != nil {
			return i, fmt.Errorf("value for %s: %w", o.Path, err)
		}
		if doc, err = edit(doc, path, o.Operator, value); err != nil {
			return i, fmt.Errorf("%s %q: %w", o.Operator, o.Path, err)
		}
	}
	object, err := manifest(doc)
	if err != nil {
		return len(operations) - 1, err
	}
	m.Object = object
	return 0, nil
}

// decode reads a value of a policy; none is null. It is decoded anew at each use, so no two manifests share it.
func decode(raw []byte) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// manifest is doc if it can still be sent to a cluster.
func manifest(doc any) (map[string]any, error) {
	object, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("what is left is not an object")
	}
	text := func(m map[string]any, key string) bool { s, ok := m[key].(string); return ok && s != "" }
	metadata, _ := object["metadata"].(map[string]any)
	switch {
	case !text(object, "apiVersion"), !text(object, "kind"):
		return nil, errors.New("what is left has no apiVersion and kind")
	case !text(metadata, "name"):
		return nil, errors.New("what is left has no metadata.name")
	}
	return object, nil
}
