package simulate

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/crds"
)

// structurals returns the schemas of the hub's own kinds. Each is compiled when it is first used.
var structurals = sync.OnceValues(func() (map[schema.GroupVersionKind]func() (*structuralschema.Structural, error),
	error) {
	definitions, err := crds.Definitions()
	all := map[schema.GroupVersionKind]func() (*structuralschema.Structural, error){}
	for _, d := range definitions {
		for _, v := range d.Spec.Versions {
			all[schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind}] =
				sync.OnceValues(func() (*structuralschema.Structural, error) {
					props := &apiextensions.JSONSchemaProps{}
					if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
						v.Schema.OpenAPIV3Schema, props, nil); err != nil {
						return nil, err
					}
					return structuralschema.NewStructural(props)
				})
		}
	}
	return all, err
})

// fillDefaults sets the defaults of the schema in an object of one of the hub's own kinds, as the API server does.
func fillDefaults(u *unstructured.Unstructured) error {
	all, err := structurals()
	if err != nil {
		return err
	}
	compiled, own := all[u.GroupVersionKind()]
	if !own {
		return nil
	}
	s, err := compiled()
	if err != nil {
		return fmt.Errorf("read the schema of %s: %w", u.GroupVersionKind(), err)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, s)
	defaulting.Default(u.Object, s)
	return nil
}
