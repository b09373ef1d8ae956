package fleet

import "github.com/argosy-io/argosy/internal/core/object/fields"

// The short names by which this package reads objects.
var (
	field  = fields.Value
	whole  = fields.Whole
	number = fields.Number
	text   = fields.Text
	object = fields.Object
	list   = fields.List

	objects = fields.Objects
	texts   = fields.Texts
)

// sumOf adds up fields.
func sumOf(status map[string]any, names []string) (total int64) {
	for _, name := range names {
		total += number(status, name)
	}
	return total
}
