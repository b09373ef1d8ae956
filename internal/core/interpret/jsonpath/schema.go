package jsonpath

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind of value that an operation wants at its path.
type Kind string

// The kinds.
const (
	Anything Kind = "anything"
	Whole    Kind = "a whole number"
	Number   Kind = "a number"
)

// Check says whether objects with the OpenAPI v3 schema of a definition can have the field, and a value of the kind
// there. A schema that says nothing, or keeps what it does not know, can have anything.
func (p Path) Check(schema map[string]any, want Kind) error {
	for i, s := range p.steps {
		if s.key == "metadata" && i == 0 {
			return nil // of every object, and no schema says it
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

// descend is the schema one step further; nil if there cannot be anything, open if there can be anything.
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

// alternatives are what there is in place of the field: the one that was probably meant, or all if they are few.
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
