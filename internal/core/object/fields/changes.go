package fields

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Change is a field that two objects have otherwise.
type Change struct {
	// Path of the field; items of lists are by their name, or by their index in lists of equal length.
	Path string `json:"path"`
	// From and To are the values; nil for none.
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
}

// Changes are the smallest values that differ, sorted by path.
func Changes(from, to map[string]any) []Change { return changes(nil, "", from, to) }

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
			if a, b = byIndex(from), byIndex(to); len(a) == 0 || len(a) != len(b) {
				return append(found, Change{path, from, to})
			}
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

func byIndex(v any) map[string]any {
	list, _ := v.([]any)
	all := map[string]any{}
	for i, item := range list {
		all[strconv.Itoa(i)] = item
	}
	return all
}
