// Package definition reads CustomResourceDefinitions from a short notation. It contains schemas only.
//
// A file has one kind. Its fields are a map. The key is the name of a field, and the value is its type:
//
//	replicas: int32 - The desired number of pods.    a type, and its text in `kubectl explain`
//	podsToDelete: [string]                           a list
//	strategy: {paused: bool}                         an object
//	labels: {"*": string}                            a map of any keys
//	container: {name: string, "...": any}            an object with fields that are not named here
//	policy: enum(Always, Partial)                    one of these
//	selector!: selector                              required
//	pools~: [any]                                    an alternative spelling, which the hub rewrites; not in members
//	clusters^: [string]                              a field that only the hub uses; not in members
//	spec: spec of CloneSet v1beta1                   the spec of another kind of the folder, in that version;
//	                                                 "v1alpha1 or v1beta1" has the fields of both
//
// Types are the keys of scalars and named, below.
package definition

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Kind is the content of a file. The first version is the one that is stored.
type Kind struct {
	Group  string   `json:"group"`
	Kind   string   `json:"kind"`
	Plural string   `json:"plural"`
	Short  []string `json:"short,omitempty"`
	// All adds the kind to `kubectl get all` of a hub. In members, the definition of its project applies.
	All bool `json:"all,omitempty"`
	// About is the description that `kubectl explain` prints.
	About string `json:"about"`
	// Cluster is true for cluster-scoped kinds.
	Cluster bool `json:"cluster,omitempty"`
	// Scale adds the scale subresource, with the usual paths of workloads.
	Scale bool `json:"scale,omitempty"`
	// Whole kinds have no status subresource: a write of the object includes its status.
	Whole bool `json:"whole,omitempty"`
	// Columns are printed by `kubectl get`. Each is "NAME type path", or "NAME type wide path" for -o wide.
	Columns  []string  `json:"columns,omitempty"`
	Versions []Version `json:"versions"`
	// Define holds anchors that versions share.
	Define any `json:"define,omitempty"`

	// folder has all kinds of the folder, including this one.
	folder []Kind
}

// Rewritten is the description of fields that are alternative spellings.
const Rewritten = "An alternative spelling. The hub rewrites it."

// Version is one version of a kind.
type Version struct {
	Name string `json:"name"`
	// Since is the first release of the project that serves the version, such as "1.9". Empty for all releases.
	Since string `json:"since,omitempty"`
	// Required makes spec a required field.
	Required bool `json:"required,omitempty"`
	Spec     any  `json:"spec"`
	Status   any  `json:"status,omitempty"`
}

// Read returns the kinds of the files, in the order of their names.
func Read(files fs.FS) ([]Kind, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	kinds := make([]Kind, len(names))
	for i, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(data, &kinds[i]); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		kinds[i].folder = kinds
	}
	for i, name := range names {
		for _, v := range kinds[i].Versions {
			if _, err := kinds[i].schema(v, reader{aliases: true, own: true}); err != nil {
				return nil, fmt.Errorf("read %s: %s: %w", name, v.Name, err)
			}
		}
	}
	return kinds, nil
}

// Hub returns the definition that a hub serves: all versions, with the fields of the hub and alternative spellings. The
// first version is stored. Several versions need a conversion.
func (k Kind) Hub() *apiextensionsv1.CustomResourceDefinition {
	crd := k.definition(k.Versions, reader{aliases: true, own: true})
	if k.All {
		crd.Spec.Names.Categories = []string{"all"}
	}
	return crd
}

// HubCRDs returns copies of the definitions that a hub serves. err is the error of reading kinds.
func HubCRDs(kinds []Kind, err error) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds := make([]*apiextensionsv1.CustomResourceDefinition, len(kinds))
	for i, k := range kinds {
		crds[i] = k.Hub()
	}
	return crds, err
}

// Member returns the definition of one version as in a member cluster, or nil if there is no such version.
func (k Kind) Member(version string) *apiextensionsv1.CustomResourceDefinition {
	for _, v := range k.Versions {
		if v.Name == version {
			return k.definition([]Version{v}, reader{})
		}
	}
	return nil
}

// Schema returns the schema of a version on the hub, without alternative spellings, or nil if there is no such version.
func (k Kind) Schema(version string) *apiextensionsv1.JSONSchemaProps {
	for _, v := range k.Versions {
		if v.Name == version {
			s, _ := k.schema(v, reader{own: true}) // Read has seen to the error
			return s
		}
	}
	return nil
}

func (k Kind) definition(versions []Version, r reader) *apiextensionsv1.CustomResourceDefinition {
	scope := apiextensionsv1.NamespaceScoped
	if k.Cluster {
		scope = apiextensionsv1.ClusterScoped
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: k.Plural + "." + k.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.Group,
			Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: k.Kind, ListKind: k.Kind + "List", Plural: k.Plural, Singular: strings.ToLower(k.Kind), ShortNames: k.Short,
			},
		},
	}
	for i, v := range versions {
		schema, _ := k.schema(v, r) // Read has seen to the error
		version := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v.Name, Served: true, Storage: i == 0,
			Schema:                   &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema},
			AdditionalPrinterColumns: k.columns(),
		}
		if !k.Whole {
			version.Subresources = &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			}
			if k.Scale {
				selector := ".status.labelSelector"
				if k.Group == "argoproj.io" {
					selector = ".status.selector"
				}
				version.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
					SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: &selector,
				}
			}
		}
		crd.Spec.Versions = append(crd.Spec.Versions, version)
	}
	return crd
}

// columns returns the printed columns. The last one is the age of the object.
func (k Kind) columns() []apiextensionsv1.CustomResourceColumnDefinition {
	var columns []apiextensionsv1.CustomResourceColumnDefinition
	for _, text := range append(slices.Clone(k.Columns), "AGE date .metadata.creationTimestamp") {
		parts := strings.SplitN(text, " ", 3)
		for len(parts) < 3 {
			parts = append(parts, "")
		}
		c := apiextensionsv1.CustomResourceColumnDefinition{Name: parts[0], Type: parts[1], JSONPath: parts[2]}
		if path, wide := strings.CutPrefix(c.JSONPath, "wide "); wide {
			c.JSONPath, c.Priority = path, 1
		}
		columns = append(columns, c)
	}
	return columns
}

func (k Kind) schema(v Version, r reader) (*apiextensionsv1.JSONSchemaProps, error) {
	r.folder = k.folder
	root := &apiextensionsv1.JSONSchemaProps{
		Type: "object", Description: k.About,
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
		},
	}
	for name, fields := range map[string]any{"spec": v.Spec, "status": v.Status} {
		if fields == nil {
			continue
		}
		s, err := r.field(name, fields)
		if err != nil {
			return nil, err
		}
		root.Properties[name] = s
	}
	if v.Required {
		root.Required = []string{"spec"}
	}
	return root, nil
}

type reader struct {
	// aliases and own include alternative spellings, and fields of the hub, in the schema.
	aliases, own bool
	// folder has the kinds that "spec of" may name. It is nil within one of those.
	folder []Kind
}

func (r reader) field(path string, value any) (apiextensionsv1.JSONSchemaProps, error) {
	switch value := value.(type) {
	case string:
		return r.typed(path, value)
	case []any:
		if len(value) != 1 {
			return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("%s: a list names one type, not %d", path, len(value))
		}
		items, err := r.field(path+"[]", value[0])
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}},
			err
	case map[string]any:
		return r.object(path, value)
	default:
		return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("%s: %v is no type", path, value)
	}
}

func (r reader) object(path string, fields map[string]any) (apiextensionsv1.JSONSchemaProps, error) {
	s := apiextensionsv1.JSONSchemaProps{Type: "object"}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, required := strings.CutSuffix(key, "!")
		name, alias := strings.CutSuffix(name, "~")
		name, own := strings.CutSuffix(name, "^")
		if alias && !r.aliases || own && !r.own {
			continue
		}
		if name == "..." {
			s.XPreserveUnknownFields = new(true)
			continue
		}
		f, err := r.field(path+"."+name, fields[key])
		if err != nil {
			return s, err
		}
		switch {
		case name == "*":
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &f, Allows: true}
			continue
		case alias:
			f.Description = Rewritten
		case required:
			s.Required = append(s.Required, name)
		}
		if s.Properties == nil {
			s.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		s.Properties[name] = f
	}
	return s, nil
}

// typed reads "type - description".
func (r reader) typed(path, text string) (apiextensionsv1.JSONSchemaProps, error) {
	text, description, _ := strings.Cut(text, " - ")
	var s apiextensionsv1.JSONSchemaProps
	if list, ok := strings.CutPrefix(text, "enum("); ok {
		s.Type = "string"
		for value := range strings.SplitSeq(strings.TrimSuffix(list, ")"), ",") {
			s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + strings.TrimSpace(value) + `"`)})
		}
	} else if other, ok := strings.CutPrefix(text, "spec of "); ok {
		var err error
		if s, err = r.specOf(path, other); err != nil {
			return s, err
		}
	} else if scalar, ok := scalars[text]; ok {
		s = *scalar.DeepCopy()
	} else if fields, ok := named[text]; ok {
		var err error
		if s, err = r.field(path, fields); err != nil {
			return s, err
		}
		if text == "selector" {
			s.XMapType = new("atomic")
		}
	} else {
		return s, fmt.Errorf("%s: %q is no type", path, text)
	}
	s.Description = description
	return s, nil
}

// specOf reads "CloneSet v1alpha1 or v1beta1". The result has no alternative spellings.
func (r reader) specOf(path, text string) (apiextensionsv1.JSONSchemaProps, error) {
	name, versions, _ := strings.Cut(text, " ")
	var specs []apiextensionsv1.JSONSchemaProps
	for version := range strings.SplitSeq(versions, " or ") {
		spec, err := r.find(name, version)
		if err != nil {
			return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("%s: %w", path, err)
		}
		s, err := reader{}.field(path, spec)
		if err != nil {
			return s, err
		}
		specs = append(specs, s)
	}
	s := specs[0]
	for _, also := range specs[1:] {
		if err := either(path, &s, also); err != nil {
			return s, err
		}
	}
	return s, nil
}

// find returns the spec of a version of a kind.
func (r reader) find(kind, version string) (any, error) {
	for _, k := range r.folder {
		for _, v := range k.Versions {
			if k.Kind == kind && v.Name == version {
				return v.Spec, nil
			}
		}
	}
	return nil, fmt.Errorf("no %s of version %q is defined beside it", kind, version)
}

// either extends s by the fields of also. A field is required if both require it.
func either(path string, s *apiextensionsv1.JSONSchemaProps, also apiextensionsv1.JSONSchemaProps) error {
	if s.Type != also.Type || s.XIntOrString != also.XIntOrString || (s.Items == nil) != (also.Items == nil) {
		return fmt.Errorf("%s: its versions have different types", path)
	}
	for _, value := range also.Enum {
		if !slices.ContainsFunc(s.Enum, func(known apiextensionsv1.JSON) bool {
			return string(known.Raw) == string(value.Raw)
		}) {
			s.Enum = append(s.Enum, value)
		}
	}
	s.Required = slices.DeleteFunc(s.Required, func(field string) bool { return !slices.Contains(also.Required, field) })
	for name, field := range also.Properties {
		if known, ok := s.Properties[name]; ok {
			if err := either(path+"."+name, &known, field); err != nil {
				return err
			}
			field = known
		}
		s.Properties[name] = field
	}
	if s.Items != nil {
		return either(path+"[]", s.Items.Schema, *also.Items.Schema)
	}
	return nil
}

var scalars = map[string]apiextensionsv1.JSONSchemaProps{
	"string": {Type: "string"},
	"bool":   {Type: "boolean"},
	"int32":  {Type: "integer", Format: "int32"},
	"int64":  {Type: "integer", Format: "int64"},
	"time":   {Type: "string", Format: "date-time"},
	"intstr": {XIntOrString: true},
	// any is an object with fields of Kubernetes, or with arbitrary fields.
	"any": {Type: "object", XPreserveUnknownFields: new(true)},
	// atomic has one managed field for the whole value, since the managed fields of a large value take much space.
	"atomic": {Type: "object", XPreserveUnknownFields: new(true), XMapType: new("atomic")},
	// value is any JSON value.
	"value": {XPreserveUnknownFields: new(true)},
}

// named are types that several kinds have.
var named = map[string]any{
	"selector": map[string]any{
		"matchLabels":      map[string]any{"*": "string"},
		"matchExpressions": []any{map[string]any{"key!": "string", "operator!": "string", "values": []any{"string"}}},
	},
	"conditions": []any{map[string]any{
		"type!": "string", "status!": "string", "reason": "string", "message": "string",
		"lastTransitionTime": "time", "lastUpdateTime": "time", "lastProbeTime": "time", "observedGeneration": "int64",
	}},
	"hook": map[string]any{"labelsHandler": map[string]any{"*": "string"}, "finalizersHandler": []any{"string"},
		"markPodNotReady": "bool"},
	"priority": map[string]any{
		"orderPriority":  []any{map[string]any{"orderedKey!": "string"}},
		"weightPriority": []any{map[string]any{"weight!": "int32", "matchSelector!": "selector"}},
	},
	"scatter":   []any{map[string]any{"key!": "string", "value!": "string"}},
	"reference": map[string]any{"apiVersion!": "string", "kind!": "string", "name!": "string"},
}
