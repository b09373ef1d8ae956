package release

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// Change is a field that two revisions have otherwise.
type Change struct {
	// Path of the field in the workload, or in an override policy; items of lists are by their name.
	Path string `json:"path"`
	// From and To are the values; nil for none.
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
}

// Changes are the differences of two revisions of a workload: its pods and its overrides. Without a former revision, all is new and there are none.
func Changes(from, to *releasev1alpha1.ReleaseRevision) ([]Change, error) {
	if from == nil || to == nil {
		return nil, nil
	}
	before, err := contents(from)
	if err != nil {
		return nil, err
	}
	after, err := contents(to)
	if err != nil {
		return nil, err
	}
	return changes(nil, "", before, after), nil
}

// contents are the fields of a revision, by what they are in.
func contents(r *releasev1alpha1.ReleaseRevision) (map[string]any, error) {
	all := map[string]any{}
	add := func(path string, raw []byte) error {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return fmt.Errorf("read %s of ReleaseRevision %s: %w", path, r.Name, err)
		}
		all[path] = value
		return nil
	}
	for _, f := range r.Spec.Pods {
		if f.Value == nil {
			continue
		}
		if err := add(f.Path, f.Value.Raw); err != nil {
			return nil, err
		}
	}
	for _, o := range r.Spec.Overrides {
		if err := add(o.Kind+" "+o.Name, o.Spec.Raw); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func changes(found []Change, path string, from, to any) []Change {
	if reflect.DeepEqual(from, to) {
		return found
	}
	a, isMap := from.(map[string]any)
	b, bothMaps := to.(map[string]any)
	join := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	if !isMap || !bothMaps {
		if a, b = byName(from), byName(to); a == nil || b == nil {
			return append(found, Change{path, from, to})
		}
		join = func(key string) string { return path + "[" + key + "]" }
	}
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		found = changes(found, join(key), a[key], b[key])
	}
	return found
}

// byName are the items of a list by their names; nil if they have no names, or not different ones.
func byName(v any) map[string]any {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil
	}
	all := map[string]any{}
	for _, item := range list {
		object, _ := item.(map[string]any)
		name, _ := object["name"].(string)
		if _, twice := all[name]; name == "" || twice {
			return nil
		}
		all[name] = item
	}
	return all
}
