package override

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// overrideWords changes a field, command or args, of every container with the name.
func overrideWords(field string) func(*unstructured.Unstructured, *policyv1alpha1.CommandArgsOverrider) error {
	return func(m *unstructured.Unstructured, o *policyv1alpha1.CommandArgsOverrider) error {
		found, err := containersNamed(m, o.ContainerName)
		if err != nil {
			return err
		}
		for _, c := range found {
			words, ok := c.object[field].([]any)
			if !ok && c.object[field] != nil {
				return fmt.Errorf("%s/%s is not a list", c.path, field)
			}
			switch o.Operator {
			case policyv1alpha1.OverriderOpAdd:
				for _, w := range o.Value {
					words = append(words, w)
				}
			case policyv1alpha1.OverriderOpRemove:
				// Removing a word that does not exist is no error.
				words = slices.DeleteFunc(words, func(w any) bool {
					s, ok := w.(string)
					return ok && slices.Contains(o.Value, s)
				})
			default:
				return fmt.Errorf("unknown operator %q", o.Operator)
			}
			if len(words) == 0 {
				delete(c.object, field)
				continue
			}
			c.object[field] = words
		}
		return nil
	}
}

// container is a container of a manifest, changed in place.
type container struct {
	path   pointer
	name   string
	init   bool
	object map[string]any
}

// containers returns the containers for overriders without a path: as in Karmada all except init containers of pods,
// and all of an Argo template.
func containers(m *unstructured.Unstructured) []container {
	argoTemplate := kind.Facts(m).Workflow != nil
	return slices.DeleteFunc(allContainers(m), func(c container) bool { return c.init && !argoTemplate })
}

// allContainers also returns the init containers of pods.
func allContainers(m *unstructured.Unstructured) []container {
	argoTemplate := kind.Facts(m).Workflow != nil
	var out []container
	for _, c := range interpret.Containers(m) {
		v, _ := pointer(c.Path).get(m.Object)
		object, ok := v.(map[string]any)
		if !ok {
			continue
		}
		name := c.Name
		if name == "" && argoTemplate {
			name = "main" // Argo's name for it
		}
		out = append(out, container{path: c.Path, name: name, init: c.Init, object: object})
	}
	return out
}

// containersNamed returns the containers with the name. An error of type nothing explains why there are none.
func containersNamed(m *unstructured.Unstructured, name string) ([]container, error) {
	all := containers(m)
	if len(all) == 0 {
		return nil, nothing(fmt.Sprintf("a %s has no known containers", m.GetKind()))
	}
	named := slices.DeleteFunc(all, func(c container) bool { return c.name != name })
	if len(named) == 0 {
		return nil, nothing(fmt.Sprintf("no container is named %q", name))
	}
	return named, nil
}

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
