// Package fields reads fields of unstructured objects and sets their labels and annotations. A missing field, or one of
// another type, is the zero value; use At to distinguish them. Nothing that is read is copied.
package fields

import (
	"encoding/json"
	"maps"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// At is the value at path, not a copy; nil when there is none on the way.
func At(m map[string]any, path ...string) any {
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

// Whole is v as an integer; scripts and hand-made objects have floats where an API server has integers. A float so
// large that it stands for several integers is none.
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

// Number is the integer at path; 0 when there is none.
func Number(m map[string]any, path ...string) int64 {
	n, _ := Whole(At(m, path...))
	return n
}

// Text is the string at path.
func Text(m map[string]any, path ...string) string {
	s, _ := At(m, path...).(string)
	return s
}

// Yes is the boolean at path.
func Yes(m map[string]any, path ...string) bool {
	b, _ := At(m, path...).(bool)
	return b
}

// Object is the object at path, not a copy.
func Object(m map[string]any, path ...string) map[string]any {
	o, _ := At(m, path...).(map[string]any)
	return o
}

// List is the list at path, not a copy.
func List(m map[string]any, path ...string) []any {
	l, _ := At(m, path...).([]any)
	return l
}

// Objects are the elements of the list at path that are objects, not copies.
func Objects(m map[string]any, path ...string) []map[string]any {
	var found []map[string]any
	for _, v := range List(m, path...) {
		if o, ok := v.(map[string]any); ok {
			found = append(found, o)
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

// Ensure is the object at path. It makes the objects that are missing on the way.
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

// Float is v as a number, of any type that objects have.
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
