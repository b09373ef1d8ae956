package jsonpath

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// Kind is the kind of value that an operation needs at its path.
type Kind string

// The kinds of values.
const (
	Anything Kind = "anything"
	Whole    Kind = "a whole number"
	Number   Kind = "a number"
)

// Check returns an error if objects with the schema cannot have the field or a value of the kind. A schema without
// fields allows everything, as do the fields that a schema preserves without knowing them.
func (p Path) Check(schema *script.Schema, want Kind) error {
	for i, s := range p.steps {
		if s.key == "metadata" && i == 0 || schema == nil ||
			(schema.Type == "" || i == 0) && schema.Properties == nil {
			return nil // metadata exists in every object, but in no schema
		}
		next := schema.Items
		if s.key != "" {
			next = schema.Field(s.key)
		}
		if next == nil {
			return fmt.Errorf("%s does not exist in the kind's schema%s", p.upTo(i+1), alternatives(schema, s))
		}
		schema = next
	}
	switch {
	case want == Anything, schema.Type == "", schema.Type == "integer", schema.Type == "number" && want == Number:
		return nil
	}
	return fmt.Errorf("%s is of type %s in the kind's schema, but %s is required", p, schema.Type, want)
}

// alternatives suggests other fields: the probable one, or all if they are few.
func alternatives(schema *script.Schema, s step) string {
	names := slices.Sorted(maps.Keys(schema.Properties))
	if meant := text.Meant(s.key, names); meant != "" {
		return "; did you mean " + meant + "?"
	}
	const few = 12
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return "; there is " + strings.Join(names, ", ")
}
