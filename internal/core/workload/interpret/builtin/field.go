package builtin

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Short names of functions that read objects.
var (
	field   = fields.Value
	whole   = fields.Whole
	number  = fields.Number
	text    = fields.Text
	yes     = fields.Yes
	object  = fields.Object
	list    = fields.List
	objects = fields.Objects
)

// specNumber returns the integer at path in the spec, or otherwise if it is not set. Other types are an error.
func specNumber(obj *unstructured.Unstructured, otherwise int64, path ...string) (int64, error) {
	v := field(object(obj.Object, "spec"), path...)
	if v == nil {
		return otherwise, nil
	}
	n, ok := whole(v)
	if !ok {
		return 0, fmt.Errorf("spec.%s: %v is not an integer", strings.Join(path, "."), v)
	}
	return n, nil
}

// conditionText returns a string field of the condition of a type; empty if there is none.
func conditionText(status map[string]any, kind, name string) string {
	for _, c := range objects(status, "conditions") {
		if text(c, "type") == kind {
			return text(c, name)
		}
	}
	return ""
}

// isTrue reports whether the condition of a type is True.
func isTrue(status map[string]any, kind string) bool {
	return conditionText(status, kind, "status") == "True"
}

// overdue reports whether the object's own progress deadline has expired.
func overdue(status map[string]any) bool {
	return conditionText(status, "Progressing", "status") == "False" &&
		conditionText(status, "Progressing", "reason") == "ProgressDeadlineExceeded"
}
