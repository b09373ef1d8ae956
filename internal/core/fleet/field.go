package fleet

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// field is the value at path, not a copy; nil when there is none on the way.
func field(m map[string]any, path ...string) any {
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

// number is the whole number at path; 0 when there is none.
func number(m map[string]any, path ...string) int64 {
	n, _ := whole(field(m, path...))
	return n
}

func text(m map[string]any, path ...string) string {
	s, _ := field(m, path...).(string)
	return s
}

func object(m map[string]any, path ...string) map[string]any {
	o, _ := field(m, path...).(map[string]any)
	return o
}

func list(m map[string]any, path ...string) []any {
	l, _ := field(m, path...).([]any)
	return l
}

// setField puts a value at path of u; an error if there is something else than an object on the way.
func setField(u *unstructured.Unstructured, value any, path ...string) error {
	return unstructured.SetNestedField(u.Object, value, path...)
}
