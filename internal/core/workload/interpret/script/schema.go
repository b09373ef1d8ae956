package script

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// Schema is what the conversion from Lua and checks of paths need to know about a kind: Lua has one type for lists and
// objects, so the schema distinguishes empty ones. A nil schema knows nothing.
type Schema struct {
	// Type is object, array, string, integer, number or boolean; empty if ambiguous.
	Type string
	// Properties are the fields of an object. Values is the schema of all other fields.
	Properties map[string]*Schema
	Values     *Schema
	// Items is the schema of the elements of an array.
	Items *Schema
}

// SchemaOf converts the schema of a CRD version; nil gives nil.
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
	more := ptr.Deref(props.AdditionalProperties, apiextensionsv1.JSONSchemaPropsOrBool{})
	s.Values = SchemaOf(more.Schema)
	if s.Values == nil && (more.Allows || ptr.Deref(props.XPreserveUnknownFields, props.XEmbeddedResource)) {
		s.Values = &Schema{} // any field, of any type
	}
	if props.Items != nil {
		s.Items = SchemaOf(props.Items.Schema)
	}
	return s
}

// Field returns the schema of a field; nil if unknown.
func (s *Schema) Field(name string) *Schema {
	if s == nil {
		return nil
	}
	if p, ok := s.Properties[name]; ok {
		return p
	}
	return s.Values
}

// items returns the schema of list elements; nil if unknown.
func (s *Schema) items() *Schema {
	if s == nil {
		return nil
	}
	return s.Items
}
