package jsonpath_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/core/workload/interpret/jsonpath"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

func TestPathIsCheckedAgainstSchema(t *testing.T) {
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(`
type: object
properties:
  spec:
    type: object
    properties:
      replicas: {type: integer}
      weight: {type: number}
      name: {type: string}
      share: {x-kubernetes-int-or-string: true}
      labels: {type: object, additionalProperties: {type: string}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
      items: {type: array, items: {type: object, properties: {x: {type: integer}}}}
`), props); err != nil {
		t.Fatal(err)
	}
	for path, c := range map[string]struct {
		want  jsonpath.Kind
		error string
	}{
		".spec.replicas":            {jsonpath.Whole, ""},
		".spec.share":               {jsonpath.Whole, ""},
		".spec.weight":              {jsonpath.Number, ""},
		".spec.items[3].x":          {jsonpath.Whole, ""},
		".spec.labels['a.b/c']":     {jsonpath.Anything, ""},
		".spec.free.whatever[0].is": {jsonpath.Whole, ""},
		".metadata.annotations.x":   {jsonpath.Anything, ""},
		".spec.replica": {jsonpath.Whole,
			".spec.replica does not exist in the kind's schema; did you mean replicas?"},
		".spec.Replicas": {jsonpath.Whole, "did you mean replicas?"},
		".status.x":      {jsonpath.Number, ".status does not exist in the kind's schema; there is spec"},
		".spec.items.x":  {jsonpath.Whole, ".spec.items.x does not exist"},
		".spec.name": {jsonpath.Whole,
			".spec.name is of type string in the kind's schema, but a whole number is required"},
	} {
		p, err := jsonpath.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		err = p.Check(script.SchemaOf(props), c.want)
		if c.error == "" {
			expectObject(t, path, err)
			continue
		}
		expectObject(t, path, err, c.error)
	}
}
