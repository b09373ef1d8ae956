package fleet

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// The short names by which this package reads objects.
var (
	field  = fields.Value
	whole  = fields.Whole
	number = fields.Number
	text   = fields.Text
	object = fields.Object
	list   = fields.List

	objects = fields.Objects
)

// setField puts a value at path of u; an error if there is something else than an object on the way.
func setField(u *unstructured.Unstructured, value any, path ...string) error {
	return unstructured.SetNestedField(u.Object, value, path...)
}
