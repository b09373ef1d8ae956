package override

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// overrideResources merges the value into the resources of every container with the name. Resources that are not named
// stay.
func overrideResources(m *unstructured.Unstructured, o *policyv1alpha1.ResourcesOverrider) error {
	if len(o.Value.Limits)+len(o.Value.Requests)+len(o.Value.Claims) == 0 {
		return nothing("it has no value")
	}
	found, err := containersNamed(m, o.ContainerName)
	if err != nil {
		return err
	}
	for _, c := range found {
		resources, err := object(c.object, "resources")
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		for field, list := range map[string]corev1.ResourceList{"limits": o.Value.Limits, "requests": o.Value.Requests} {
			if len(list) == 0 {
				continue
			}
			quantities, err := object(resources, field)
			if err != nil {
				return fmt.Errorf("%s/resources: %w", c.path, err)
			}
			for name, q := range list {
				quantities[string(name)] = q.String()
			}
		}
		if err := mergeClaims(resources, o.Value.Claims); err != nil {
			return fmt.Errorf("%s/resources: %w", c.path, err)
		}
	}
	return nil
}

// object returns the object at key of parent and creates it if necessary.
func object(parent map[string]any, key string) (map[string]any, error) {
	if parent[key] == nil {
		made := map[string]any{}
		parent[key] = made
		return made, nil
	}
	there, ok := parent[key].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not an object", key)
	}
	return there, nil
}

// mergeClaims replaces claims with the same name and appends the others.
func mergeClaims(resources map[string]any, claims []corev1.ResourceClaim) error {
	if len(claims) == 0 {
		return nil
	}
	list, ok := resources["claims"].([]any)
	if !ok && resources["claims"] != nil {
		return fmt.Errorf("claims is not a list")
	}
next:
	for _, claim := range claims {
		entry := map[string]any{"name": claim.Name}
		if claim.Request != "" {
			entry["request"] = claim.Request
		}
		for i := range list {
			if there, ok := list[i].(map[string]any); ok && there["name"] == claim.Name {
				list[i] = entry
				continue next
			}
		}
		list = append(list, entry)
	}
	resources["claims"] = list
	return nil
}
