package execute

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference is a field that one object sets and another has otherwise.
type Difference struct {
	// Path is dotted; items of a list are their index in the object that sets it: spec.template.spec.containers.0.image.
	Path string `json:"path"`
	// Want is the desired value, Have the current one; nil for none.
	Want any `json:"want,omitempty"`
	Have any `json:"have,omitempty"`
}

// Differences returns all fields that desired sets and observed has otherwise, by the rules by which Plan looks for
// one, sorted by path. Labels and annotations count, other metadata and the status do not.
func Differences(desired, observed *unstructured.Unstructured) []Difference {
	c := comparison{kind: desired.GroupVersionKind().GroupKind()}
	object := desired.Object
	if c.kind == secret {
		object = withoutStringData(object)
	}
	var all []Difference
	note := func(path string, want, have any) { all = append(all, Difference{path, want, have}) }
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, _ := object[key].(map[string]any)
			there, _ := observed.Object[key].(map[string]any)
			for _, in := range []string{"annotations", "labels"} {
				c.noteAll(position{parent: key, key: in}, key+"."+in, metadata[in], there[in], note)
			}
		default:
			c.noteAll(position{key: key}, key, object[key], observed.Object[key], note)
		}
	}
	return all
}

// noteAll notes the smallest values below path that differ.
func (c comparison) noteAll(at position, path string, desired, observed any, note func(path string, want, have any)) {
	if !c.value(at, desired, observed).found {
		return
	}
	switch d := desired.(type) {
	case map[string]any:
		there, ok := observed.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(d)) {
			c.noteAll(position{at.key, key}, path+"."+key, d[key], there[key], note)
		}
		return
	case []any:
		there, ok := observed.([]any)
		if !ok {
			break
		}
		matches := c.byKey(at, d, there)
		if matches == nil && len(d) != len(there) {
			break
		}
		for i := range d {
			j := i
			if matches != nil {
				j = matches[i]
			}
			in := path + "." + strconv.Itoa(i)
			if j < 0 {
				note(in, d[i], nil)
				continue
			}
			c.noteAll(at, in, d[i], there[j], note)
		}
		return
	}
	note(path, desired, observed)
}
