package controllertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/argosy-io/argosy/api/crds"
)

// objectSchema is the schema of a version of one of the hub's kinds.
type objectSchema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator // nil without rules in CEL
}

// schemas returns the schemas of the hub's kinds. Each is compiled when it is first used.
var schemas = sync.OnceValues(func() (map[schema.GroupVersionKind]func() (*objectSchema, error), error) {
	definitions, err := crds.Definitions()
	all := map[schema.GroupVersionKind]func() (*objectSchema, error){}
	for _, d := range definitions {
		for _, v := range d.Spec.Versions {
			all[schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind}] =
				sync.OnceValues(func() (*objectSchema, error) { return compile(v.Schema.OpenAPIV3Schema) })
		}
	}
	return all, err
})

func compile(v1 *apiextensionsv1.JSONSchemaProps) (s *objectSchema, err error) {
	props := &apiextensions.JSONSchemaProps{}
	if err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, props, nil); err != nil {
		return nil, err
	}
	s = &objectSchema{}
	if s.structural, err = structuralschema.NewStructural(props); err != nil {
		return nil, err
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	s.validator, _, err = validation.NewSchemaValidator(props)
	return s, err
}

// validate returns why an API server with the definitions of api/crds refuses an object; nothing for other kinds.
func validate(ctx context.Context, obj *unstructured.Unstructured) (field.ErrorList, error) {
	all, err := schemas()
	if err != nil {
		return nil, err
	}
	compiled := all[obj.GroupVersionKind()]
	if compiled == nil {
		return nil, nil
	}
	s, err := compiled()
	if err != nil {
		return nil, fmt.Errorf("compile the schema of %s: %w", obj.GroupVersionKind(), err)
	}
	content := obj.DeepCopy().Object
	defaulting.PruneNonNullableNullsWithoutDefaults(content, s.structural)
	defaulting.Default(content, s.structural)
	errs := validation.ValidateCustomResource(nil, content, s.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, content)...)
	if s.rules != nil {
		broken, _ := s.rules.Validate(ctx, nil, s.structural, content, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs, nil
}

// checkWrites returns a transport that validates what the server stores for the writes of its clients. The server in
// memory has no schemas and takes everything. What is invalid fails the test at its end.
func (h *Hub) checkWrites(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil || resp.StatusCode >= http.StatusMultipleChoices || r.Method == http.MethodGet ||
			r.Method == http.MethodDelete {
			return resp, err
		}
		stored, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it is read
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(stored))
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON(stored) != nil {
			return resp, nil // it is no object
		}
		errs, err := validate(r.Context(), obj)
		if err != nil {
			return nil, err
		}
		h.invalidMu.Lock()
		defer h.invalidMu.Unlock()
		for _, err := range errs {
			if strings.HasSuffix(r.URL.Path, "/status") && !strings.HasPrefix(err.Field, "status") {
				continue // of the test
			}
			what := fmt.Sprintf("%s %s writes what api/crds does not permit: %v", r.Method, r.URL.Path, err)
			permitted := slices.ContainsFunc(h.permitted, func(text string) bool { return strings.Contains(what, text) })
			if !permitted && !slices.Contains(h.invalid, what) {
				h.invalid = append(h.invalid, what)
			}
		}
		return resp, nil
	})
}

// Permit permits writes that the schemas of api/crds do not, if the message contains a text: the test has stored such
// an object on purpose.
func (h *Hub) Permit(text string) {
	h.invalidMu.Lock()
	defer h.invalidMu.Unlock()
	h.permitted = append(h.permitted, text)
}

// roundTripper is a function as a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
