package override

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// overrideKeys changes labels or annotations. Add overwrites, remove and replace change existing keys, addIfAbsent adds
// missing ones.
func overrideKeys(field string) func(*unstructured.Unstructured, *policyv1alpha1.LabelAnnotationOverrider) error {
	return func(m *unstructured.Unstructured, o *policyv1alpha1.LabelAnnotationOverrider) error {
		metadata, ok := m.Object["metadata"].(map[string]any)
		if !ok {
			return fmt.Errorf("metadata is not an object")
		}
		keys, ok := metadata[field].(map[string]any)
		if !ok && metadata[field] != nil {
			return fmt.Errorf("metadata.%s is not an object", field)
		}

		switch o.Operator {
		case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpAddIfAbsent:
			if len(o.Value) == 0 {
				return nothing("it has no value")
			}
			if keys == nil {
				keys = make(map[string]any, len(o.Value))
			}
			for key, value := range o.Value {
				if _, there := keys[key]; there && o.Operator == policyv1alpha1.OverriderOpAddIfAbsent {
					continue
				}
				keys[key] = value
			}
			metadata[field] = keys
			return nil

		case policyv1alpha1.OverriderOpRemove, policyv1alpha1.OverriderOpReplace:
			found := false
			for key, value := range o.Value {
				if _, there := keys[key]; !there {
					continue
				}
				found = true
				if o.Operator == policyv1alpha1.OverriderOpReplace {
					keys[key] = value
					continue
				}
				delete(keys, key)
			}
			// Removing keys that do not exist is no error.
			if !found && o.Operator == policyv1alpha1.OverriderOpReplace {
				return nothing(fmt.Sprintf("metadata.%s has none of its keys", field))
			}
			if len(keys) == 0 {
				delete(metadata, field)
			}
			return nil

		default:
			return fmt.Errorf("unknown operator %q", o.Operator)
		}
	}
}
