package jsonpath

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is the kind of value that an operation needs at its path.
type Kind string

// The kinds of values.
const (
	Anything Kind = "anything"
	Whole    Kind = "a whole number"
	Number   Kind = "a number"
)

// Check returns an error if objects with the OpenAPI v3 schema cannot have the field or a value of the kind. A schema
// without properties, or that preserves unknown fields, allows everything.
func (p Path) Check(schema map[string]any, want Kind) error {
	for i, s := range p.steps {
		if s.key == "metadata" && i == 0 {
			return nil // exists in every object, but in no schema
		}
		next, open := descend(schema, s)
		if open {
			return nil
		}
		if next == nil {
			return fmt.Errorf("%s does not exist in the kind's schema%s", p.upTo(i+1), alternatives(schema, s))
		}
		schema = next
	}
	return accepts(schema, p, want)
}

// descend returns the schema of the next step; nil if there can be nothing, open if there can be anything.
func descend(schema map[string]any, s step) (next map[string]any, open bool) {
	of := func(key string) map[string]any { m, _ := schema[key].(map[string]any); return m }
	if s.key == "" {
		if next = of("items"); next != nil {
			return next, false
		}
		return nil, schema["type"] == nil
	}
	if next, _ = of("properties")[s.key].(map[string]any); next != nil {
		return next, false
	}
	if next = of("additionalProperties"); next != nil {
		return next, false
	}
	return nil, schema["additionalProperties"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true ||
		schema["x-kubernetes-embedded-resource"] == true || schema["type"] == nil && of("properties") == nil
}

func accepts(schema map[string]any, p Path, want Kind) error {
	kind, _ := schema["type"].(string)
	if want == Anything || kind == "" || schema["x-kubernetes-int-or-string"] == true || kind == "integer" ||
		kind == "number" && want == Number {
		return nil
	}
	return fmt.Errorf("%s is of type %s in the kind's schema, but %s is required", p, kind, want)
}

// alternatives suggests other fields: the probable one, or all if they are few.
func alternatives(schema map[string]any, s step) string {
	properties, _ := schema["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(properties))
	for _, name := range names {
		a, b := strings.ToLower(name), strings.ToLower(s.key)
		if a == b || s.key != "" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			return "; did you mean " + name + "?"
		}
	}
	const few = 12
	if len(names) == 0 || len(names) > few {
		return ""
	}
	return "; there is " + strings.Join(names, ", ")
}
