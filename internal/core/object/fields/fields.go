// Package fields reads fields of unstructured objects and sets their labels and annotations. A missing field, or one of
// another type, is the zero value; use Value to distinguish them. Nothing that is read is copied.
package fields

import (
	"encoding/json"
	"maps"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Value returns the value at path; nil if there is none.
func Value(m map[string]any, path ...string) any {
	var v any = m
	for _, key := range path {
		inner, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = inner[key]
	}
	return v
}

// Whole returns v as an integer. It accepts integral floats, which scripts and files can have, unless they are too
// large to be exact.
func Whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		if n != math.Trunc(n) || math.Abs(n) >= 1<<53 {
			return 0, false
		}
		return int64(n), true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	}
	return 0, false
}

// Number returns the integer at path; 0 if there is none.
func Number(m map[string]any, path ...string) int64 {
	n, _ := Whole(Value(m, path...))
	return n
}

// Text returns the string at path.
func Text(m map[string]any, path ...string) string {
	s, _ := Value(m, path...).(string)
	return s
}

// Yes returns the boolean at path.
func Yes(m map[string]any, path ...string) bool {
	b, _ := Value(m, path...).(bool)
	return b
}

// Object returns the object at path.
func Object(m map[string]any, path ...string) map[string]any {
	o, _ := Value(m, path...).(map[string]any)
	return o
}

// List returns the list at path.
func List(m map[string]any, path ...string) []any {
	l, _ := Value(m, path...).([]any)
	return l
}

// Objects returns the elements of the list at path that are objects.
func Objects(m map[string]any, path ...string) []map[string]any {
	var found []map[string]any
	for _, v := range List(m, path...) {
		if o, ok := v.(map[string]any); ok {
			found = append(found, o)
		}
	}
	return found
}

// Texts returns the elements of the list at path that are strings.
func Texts(m map[string]any, path ...string) []string {
	var found []string
	for _, v := range List(m, path...) {
		if s, ok := v.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

// Reads reports whether a client that decodes JSON can read a value as a T. Names of fields match in any case, as they
// do for it.
func Reads[T any](v any) bool {
	raw, err := json.Marshal(v)
	return err == nil && json.Unmarshal(raw, new(T)) == nil
}

// Ensure returns the object at path. It creates missing objects on the way.
func Ensure(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		o, ok := m[key].(map[string]any)
		if !ok {
			o = map[string]any{}
			m[key] = o
		}
		m = o
	}
	return m
}

// DropEmpty deletes the object at key if it is empty.
func DropEmpty(m map[string]any, key string) {
	if o, ok := m[key].(map[string]any); ok && len(o) == 0 {
		delete(m, key)
	}
}

// Float returns v as a number.
func Float(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int32:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

// SetAnnotation sets an annotation of obj. The map that obj had is not changed.
func SetAnnotation(obj metav1.Object, key, value string) {
	obj.SetAnnotations(withEntry(obj.GetAnnotations(), key, value))
}

// PutAnnotation sets an annotation of obj, and removes it for an empty value. The map that obj had is not changed.
func PutAnnotation(obj metav1.Object, key, value string) {
	if value != "" {
		SetAnnotation(obj, key, value)
	} else if _, has := obj.GetAnnotations()[key]; has {
		annotations := maps.Clone(obj.GetAnnotations())
		if delete(annotations, key); len(annotations) == 0 {
			annotations = nil
		}
		obj.SetAnnotations(annotations)
	}
}

// SetLabel sets a label of obj. The map that obj had is not changed.
func SetLabel(obj metav1.Object, key, value string) {
	obj.SetLabels(withEntry(obj.GetLabels(), key, value))
}

func withEntry(m map[string]string, key, value string) map[string]string {
	if m = maps.Clone(m); m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
