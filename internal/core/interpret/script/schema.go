package script

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Schema is what a conversion from Lua wants to know about a kind: Lua has one type for lists and objects, so an empty
// one is told apart by its place. A nil schema knows nothing.
type Schema struct {
	// Type is object, array, string, integer, number or boolean; empty when it may be several.
	Type string
	// Properties are the fields of an object, Values what any other field holds.
	Properties map[string]*Schema
	Values     *Schema
	// Items are the elements of an array.
	Items *Schema
}

// SchemaOf takes what is needed from the schema of a definition's version; nil gives nil.
func SchemaOf(props *apiextensionsv1.JSONSchemaProps) *Schema {
	if props == nil {
		return nil
	}
	s := &Schema{Type: props.Type}
	if len(props.Properties) > 0 {
		s.Properties = make(map[string]*Schema, len(props.Properties))
		for name := range props.Properties {
			p := props.Properties[name]
			s.Properties[name] = SchemaOf(&p)
		}
	}
	if props.AdditionalProperties != nil {
		s.Values = SchemaOf(props.AdditionalProperties.Schema)
	}
	if props.Items != nil {
		s.Items = SchemaOf(props.Items.Schema)
	}
	return s
}

// field is the schema of a field; nil when it is not known.
func (s *Schema) field(name string) *Schema {
	if s == nil {
		return nil
	}
	if p, ok := s.Properties[name]; ok {
		return p
	}
	return s.Values
}

// items is the schema of a list's elements; nil when it is not known.
func (s *Schema) items() *Schema {
	if s == nil {
		return nil
	}
	return s.Items
}
