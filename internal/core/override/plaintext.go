package override

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/identity"
)

// overridePlaintext applies the operations as one RFC 6902 patch. None may change the identity of m. With an error it
// returns the index of the operation.
func overridePlaintext(m *unstructured.Unstructured, object identity.Object,
	operations []policyv1alpha1.PlaintextOverrider) (int, error) {
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
		is, ok := doc.(map[string]any)
		if !ok {
			return i, errors.New("the result is not an object")
		}
		if err := object.Keeps(&unstructured.Unstructured{Object: is}); err != nil {
			return i, fmt.Errorf("%s %q: %w", o.Operator, o.Path, err)
		}
		m.Object = is
	}
	return 0, nil
}

// decode decodes a value of a policy; empty is null. It decodes at each use, so that manifests do not share it.
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
