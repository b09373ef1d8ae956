package kruise

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// difference is a changed value in an object. Its JSON is {"at": […], "was": …, "is": …}; missing values are omitted.
//
// A difference is applied only if the object still has the old value, so that changes of users win.
type difference struct {
	// at is the path to the value. A step is the name of a field; or for an item of a list {"name": "x"}, the field that
	// identifies items, or {"item": 1, "of": 3}, which matches no list of another length.
	at      []any
	was, is value
}

// value is an optional JSON value.
type value struct {
	json  any
	there bool
}

// differences returns the changes from have to want. The result shares memory with both.
func differences(have, want map[string]any) []difference {
	return compare(nil, nil, have, want)
}

func compare(found []difference, at []any, have, want any) []difference {
	if reflect.DeepEqual(have, want) {
		return found
	}
	switch h := have.(type) {
	case map[string]any:
		if w, ok := want.(map[string]any); ok {
			return compareFields(found, at, h, w)
		}
	case []any:
		if w, ok := want.([]any); ok && len(w) == len(h) && len(w) > 0 {
			if steps := itemSteps(h, w); steps != nil {
				for i := range h {
					found = compare(found, append(slices.Clip(at), steps[i]), h[i], w[i])
				}
				return found
			}
		}
	}
	return append(found, difference{at: at, was: value{have, true}, is: value{want, true}})
}

func compareFields(found []difference, at []any, have, want map[string]any) []difference {
	names := slices.AppendSeq(slices.Collect(maps.Keys(have)), maps.Keys(want))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		step := append(slices.Clip(at), any(name))
		h, was := have[name]
		w, is := want[name]
		if was && is {
			found = compare(found, step, h, w)
		} else {
			found = append(found, difference{at: step, was: value{h, was}, is: value{w, is}})
		}
	}
	return found
}

// itemSteps returns the steps to the items of two lists of the same length and the same order; nil if items are no
// objects.
func itemSteps(have, want []any) []any {
	for _, list := range [][]any{have, want} {
		for _, item := range list {
			if _, ok := item.(map[string]any); !ok {
				return nil
			}
		}
	}
	steps := make([]any, len(have))
keys:
	for _, key := range []string{"name", "key", "type"} {
		seen := map[string]bool{}
		for i := range have {
			h, _ := have[i].(map[string]any)[key].(string)
			w, _ := want[i].(map[string]any)[key].(string)
			if h == "" || h != w || seen[h] {
				continue keys
			}
			seen[h] = true
			steps[i] = map[string]any{key: h}
		}
		return steps
	}
	for i := range have {
		steps[i] = map[string]any{"item": int64(i), "of": int64(len(have))}
	}
	return steps
}

// lay applies the differences to obj where it still has the old values.
func lay(obj map[string]any, all []difference) {
	for _, d := range all {
		layOne(obj, d)
	}
}

func layOne(obj map[string]any, d difference) {
	var parent any = obj
	for _, step := range d.at[:len(d.at)-1] {
		parent = follow(parent, step)
	}
	last := d.at[len(d.at)-1]
	if name, ok := last.(string); ok {
		fields, ok := parent.(map[string]any)
		if !ok {
			return
		}
		now, there := fields[name]
		switch {
		case there != d.was.there || !reflect.DeepEqual(now, d.was.json):
		case d.is.there:
			fields[name] = runtime.DeepCopyJSONValue(d.is.json)
		default:
			delete(fields, name)
		}
		return
	}
	if i, ok := index(parent, last); ok && d.is.there && reflect.DeepEqual(parent.([]any)[i], d.was.json) {
		parent.([]any)[i] = runtime.DeepCopyJSONValue(d.is.json)
	}
}

func follow(parent, step any) any {
	if name, ok := step.(string); ok {
		fields, _ := parent.(map[string]any)
		return fields[name]
	}
	if i, ok := index(parent, step); ok {
		return parent.([]any)[i]
	}
	return nil
}

// index returns the index of the list item that a step identifies.
func index(list, step any) (int, bool) {
	items, _ := list.([]any)
	s, _ := step.(map[string]any)
	if of, ok := s["of"].(int64); ok {
		i, _ := s["item"].(int64)
		return int(i), of == int64(len(items)) && i >= 0 && i < of
	}
	for key, v := range s {
		name, ok := v.(string) // others may not be comparable
		i := slices.IndexFunc(items, func(item any) bool {
			fields, _ := item.(map[string]any)
			return ok && fields[key] == name
		})
		return i, i >= 0
	}
	return 0, false
}

// mendRest is the remedy for an invalid annotation.
const mendRest = "remove the annotation, or write back what you read"

// tooMuch begins the annotation of an object whose difference is too long. The rest explains why the object cannot be
// written back.
const tooMuch = "too much: "

// putRest writes the differences that the other version needs into an annotation of obj.
func putRest(obj map[string]any, other string, all []difference) error {
	list := make([]any, len(all))
	for i, d := range all {
		entry := map[string]any{"at": d.at}
		if d.was.there {
			entry["was"] = d.was.json
		}
		if d.is.there {
			entry["is"] = d.is.json
		}
		list[i] = entry
	}
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("keep the fields that only %s has: %w", other, err)
	}
	if len(text) > restLimit {
		return fmt.Errorf("the fields that only %s has take %d bytes, more than the %d that an annotation may have: read and write this object as %s", other, len(text), restLimit, other)
	}
	fields.Ensure(obj, "metadata", "annotations")[wellknown.RestAnnotation(other)] = string(text)
	return nil
}

// takeRest returns obj without the annotation for version, sharing all else with it, and the differences in the
// annotation. An invalid annotation is an error, and obj is returned as well.
func takeRest(obj map[string]any, version string) (map[string]any, []difference, error) {
	name := wellknown.RestAnnotation(version)
	metadata, _ := obj["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, ok := annotations[name].(string)
	if !ok {
		return obj, nil, nil
	}
	obj, metadata, annotations = maps.Clone(obj), maps.Clone(metadata), maps.Clone(annotations)
	delete(annotations, name)
	metadata["annotations"] = annotations
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	obj["metadata"] = metadata

	if why, is := strings.CutPrefix(text, tooMuch); is {
		return obj, nil, errors.New(why)
	}
	var list []any
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return obj, nil, fmt.Errorf("metadata.annotations[%s]: %w; %s", name, err, mendRest)
	}
	all := make([]difference, len(list))
	for i, item := range list {
		entry, _ := item.(map[string]any)
		d := &all[i]
		d.at, _ = entry["at"].([]any)
		if len(d.at) == 0 {
			return obj, nil, fmt.Errorf("metadata.annotations[%s]: item %d leads nowhere; %s", name, i, mendRest)
		}
		d.was.json, d.was.there = entry["was"]
		d.is.json, d.is.there = entry["is"]
	}
	return obj, slices.DeleteFunc(all, func(d difference) bool { return !leads(d.at) }), nil
}

// leads reports whether conversions may change the value at the path: of the metadata, only labels and annotations.
func leads(at []any) bool {
	switch at[0] {
	case "spec", "status":
		return true
	case "metadata":
		return len(at) > 1 && (at[1] == "labels" || at[1] == "annotations")
	}
	return false
}

// lost returns the paths of spec fields that exist only in the differences, sorted.
func (k kind) lost(all []difference) []string {
	var lost []string
	for _, d := range all {
		if d.at[0] == any("spec") && d.is.there {
			lost = append(lost, k.meaningfulPaths(pathOf(d.at), d.is.json)...)
		}
	}
	slices.Sort(lost)
	return slices.Compact(lost)
}

// meaningfulPaths returns the paths at and below path with values that change what a member does.
func (k kind) meaningfulPaths(path string, v any) []string {
	if slices.Contains(k.harmless, path) || slices.Contains(k.harmless, fmt.Sprintf("%s=%v", path, v)) {
		return nil
	}
	fields, ok := v.(map[string]any)
	if !ok {
		if v == nil || reflect.ValueOf(v).IsZero() || reflect.ValueOf(v).Kind() == reflect.Slice && len(v.([]any)) == 0 {
			return nil
		}
		return []string{path}
	}
	var out []string
	for name, f := range fields {
		out = append(out, k.meaningfulPaths(path+"."+name, f)...)
	}
	return out
}

// pathOf formats a path for users.
func pathOf(at []any) string {
	var b strings.Builder
	for i, step := range at {
		switch step := step.(type) {
		case string:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		case map[string]any:
			if n, ok := step["item"]; ok {
				fmt.Fprintf(&b, "[%v]", n)
				continue
			}
			for _, name := range step {
				fmt.Fprintf(&b, "[%v]", name)
			}
		}
	}
	return b.String()
}

func deepCopy(obj map[string]any) map[string]any { return runtime.DeepCopyJSON(obj) }
