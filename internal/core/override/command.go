package override

import (
	"fmt"
	"slices"

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
