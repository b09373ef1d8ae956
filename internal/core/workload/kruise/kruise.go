// Package kruise converts objects of OpenKruise between v1alpha1 and v1beta1 without loss: an annotation keeps what a
// version cannot express, and the way back restores it. The API server, which stores v1beta1, calls it, and so does
// core/dispatch, which sends members the version that they serve.
package kruise

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/api/kruise"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

const (
	alpha = "v1alpha1"
	beta  = "v1beta1"
)

// restLimit is the maximum size of the annotation, because the size of all annotations of an object is limited.
const restLimit = 128 << 10

// rule converts a kind between its versions, apart from fields that one version lacks. Its functions change the
// complete object in place; spec may be missing.
type rule struct {
	up, down func(obj map[string]any)
	// harmless are fields, "path" or "path=value", that may be dropped: the other version expresses or implies them.
	harmless []string
}

// kind has the schemas and rules of a kind.
type kind struct {
	rule
	schemas map[string]*apiextensionsv1.JSONSchemaProps // by version
}

// kinds are the kinds with several versions.
var kinds = sync.OnceValue(func() map[schema.GroupKind]kind {
	defined, err := kruise.Kinds()
	if err != nil {
		panic(err) // the files are part of the program, and its tests read them
	}
	all := map[schema.GroupKind]kind{}
	for _, d := range defined {
		if len(d.Versions) < 2 {
			continue
		}
		gk := schema.GroupKind{Group: d.Group, Kind: d.Kind}
		k := kind{rule: rules[gk], schemas: map[string]*apiextensionsv1.JSONSchemaProps{}}
		for _, v := range d.Versions {
			k.schemas[v.Name] = d.Schema(v.Name)
		}
		all[gk] = k
	}
	return all
})

// Converts reports whether Convert supports the kind.
func Converts(gk schema.GroupKind) bool {
	_, ok := kinds()[gk]
	return ok
}

// Convert returns obj in apiVersion, of the same group. A round trip returns the same object; if the object was
// changed in between, fields that the other version cannot express are kept. obj is not changed; it is the result if
// it already has that version.
func Convert(obj *unstructured.Unstructured, apiVersion string) (*unstructured.Unstructured, error) {
	if obj.GetAPIVersion() == apiVersion {
		return obj, nil
	}
	k, to, err := lookup(obj, apiVersion)
	if err != nil {
		return nil, err
	}
	out, err := k.convert(obj.Object, to)
	if err != nil {
		return nil, fmt.Errorf("convert %s to %s: %w", obj.GetKind(), apiVersion, err)
	}
	out["apiVersion"] = apiVersion
	return &unstructured.Unstructured{Object: out}, nil
}

func lookup(obj *unstructured.Unstructured, apiVersion string) (kind, string, error) {
	gvk := obj.GroupVersionKind()
	k, known := kinds()[gvk.GroupKind()]
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || !known || gv.Group != gvk.Group || k.schemas[gv.Version] == nil || k.schemas[gvk.Version] == nil {
		return kind{}, "", fmt.Errorf("cannot convert %s from %q to %q", gvk.Kind, obj.GetAPIVersion(), apiVersion)
	}
	return k, gv.Version, nil
}

// otherVersion returns the version that is not this one.
func otherVersion(version string) string {
	if version == alpha {
		return beta
	}
	return alpha
}

// convert returns obj, of the other version, in version to. An annotation of the result keeps what this version cannot
// express; what the annotation of obj keeps is restored.
//
// The rules do not write the annotation: it contains the differences after converting back. So nothing is lost even if
// a rule is wrong, and nothing is recorded that the rules convert correctly.
//
// A write with an invalid annotation is rejected. A read never is, since one invalid object would break lists for all
// users: a read ignores an invalid annotation, and reports one that is too long.
func (k kind) convert(obj map[string]any, to string) (map[string]any, error) {
	from := otherVersion(to)
	written := to == beta
	bare, kept, err := takeRest(obj, to)
	if err != nil && written {
		return nil, err
	}
	out := k.translate(bare, to)
	if len(kept) > 0 {
		laid := deepCopy(out)
		lay(laid, kept)
		if at := k.misfit(laid, to); at == "" {
			out = laid
		} else if written {
			return nil, fmt.Errorf("metadata.annotations[%s]: gives %s an invalid value; %s", wellknown.RestAnnotation(to),
				at,
				mendRest)
		}
	}
	back := k.translate(out, from)
	if wrong := differences(back, bare); len(wrong) > 0 {
		if err := putRest(out, from, wrong); err != nil {
			if written {
				return nil, err
			}
			fields.Ensure(out, "metadata", "annotations")[wellknown.RestAnnotation(from)] = tooMuch + err.Error()
		}
	}
	return out, nil
}

// misfit returns the path where obj does not match the schema of its version; empty if it matches.
func (k kind) misfit(obj map[string]any, version string) string {
	for _, part := range []string{"spec", "status"} {
		if s, known := k.schemas[version].Properties[part]; known && obj[part] != nil {
			if at := misfit(part, obj[part], &s); at != "" {
				return at
			}
		}
	}
	for _, marks := range []string{"labels", "annotations"} {
		v := object(obj, "metadata")[marks]
		if fields, ok := v.(map[string]any); v != nil && !ok {
			return "metadata." + marks
		} else {
			for name, mark := range fields {
				if _, ok := mark.(string); !ok {
					return "metadata." + marks + "[" + name + "]"
				}
			}
		}
	}
	return ""
}

var schemaTypes = map[reflect.Kind]string{reflect.Map: "object", reflect.Slice: "array", reflect.String: "string",
	reflect.Int64: "integer", reflect.Float64: "number", reflect.Bool: "boolean"}

func misfit(at string, value any, s *apiextensionsv1.JSONSchemaProps) string {
	is := schemaTypes[reflect.ValueOf(value).Kind()]
	fits := s.Type == "" && (!s.XIntOrString || is == "string" || is == "integer")
	if value != nil && s.Type != is && !fits && !(is == "integer" && s.Type == "number") {
		return at
	}
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			p, known := s.Properties[name]
			if !known && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
				p, known = *s.AdditionalProperties.Schema, true
			}
			if known {
				if bad := misfit(at+"."+name, v[name], &p); bad != "" {
					return bad
				}
			}
		}
	case []any:
		if s.Items != nil && s.Items.Schema != nil {
			for i := range v {
				if bad := misfit(fmt.Sprintf("%s[%d]", at, i), v[i], s.Items.Schema); bad != "" {
					return bad
				}
			}
		}
	}
	return ""
}

// translate applies the rules, and drops fields that version to does not have.
func (k kind) translate(obj map[string]any, to string) map[string]any {
	out := deepCopy(obj)
	step := k.up
	if to == alpha {
		step = k.down
	}
	if step != nil {
		step(out)
	}
	for _, part := range []string{"spec", "status"} {
		if fields, ok := out[part]; ok {
			s, known := k.schemas[to].Properties[part]
			if !known {
				delete(out, part)
				continue
			}
			prune(fields, &s)
		}
	}
	return out
}

// prune removes fields that are not in the schema.
func prune(value any, s *apiextensionsv1.JSONSchemaProps) {
	switch value := value.(type) {
	case map[string]any:
		if s.XPreserveUnknownFields != nil && len(s.Properties) == 0 {
			return
		}
		for name := range value {
			p, known := s.Properties[name]
			switch {
			case known:
				prune(value[name], &p)
			case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
				prune(value[name], s.AdditionalProperties.Schema)
			case s.XPreserveUnknownFields == nil:
				delete(value, name)
			}
		}
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return
		}
		for _, item := range value {
			prune(item, s.Items.Schema)
		}
	}
}

// Lossy is the error for an object that a version cannot express. It names the fields.
type Lossy struct {
	Kind, APIVersion string
	// Fields are the paths that would be lost, sorted.
	Fields []string
}

func (e *Lossy) Error() string {
	return fmt.Sprintf("%s of %s has no %s; remove that, or place the object where another version is served: a newer OpenKruise may serve one",
		e.Kind, e.APIVersion, strings.Join(e.Fields, ", "))
}

// ForMember returns obj in a version that a member serves, without the annotation for the other version. served are
// the group versions of the kind; its own version is preferred. The error is a *Lossy if the member's version cannot
// express obj; the status is ignored, since members have their own. The result is nil for unknown kinds or versions.
func ForMember(obj *unstructured.Unstructured, served []string) (*unstructured.Unstructured, error) {
	gvk := obj.GroupVersionKind()
	k, known := kinds()[gvk.GroupKind()]
	if !known || k.schemas[gvk.Version] == nil {
		return nil, nil
	}
	wanted := gvk.GroupVersion()
	if !slices.Contains(served, wanted.String()) {
		wanted.Version = otherVersion(wanted.Version)
		if !slices.Contains(served, wanted.String()) {
			return nil, nil
		}
	}
	rest := wellknown.RestAnnotation(otherVersion(wanted.Version))
	if wanted.Version == gvk.Version {
		if _, ok := obj.GetAnnotations()[rest]; !ok {
			return obj, nil
		}
		// The recorded differences may be outdated: compute them again.
		there, err := Convert(obj, schema.GroupVersion{Group: gvk.Group, Version: otherVersion(gvk.Version)}.String())
		if err != nil {
			return nil, err
		}
		obj = there
	}
	out, err := Convert(obj, wanted.String())
	if err != nil {
		return nil, err
	}
	bare, kept, err := takeRest(out.Object, otherVersion(wanted.Version))
	if err != nil {
		return nil, err
	}
	if lost := k.lost(kept); len(lost) > 0 {
		return nil, &Lossy{Kind: gvk.Kind, APIVersion: wanted.String(), Fields: lost}
	}
	return &unstructured.Unstructured{Object: bare}, nil
}

// Status converts the status of an object of a kind to that kind's version, whichever version it is of: a member's
// report does not name it. Unknown fields stay, since scripts may report any. status is not changed.
func Status(kind schema.GroupVersionKind, status map[string]any) map[string]any {
	k, known := kinds()[kind.GroupKind()]
	if !known || k.schemas[kind.Version] == nil {
		return status
	}
	fields := func(version string) map[string]bool {
		of := map[string]bool{}
		for name := range k.schemas[version].Properties["status"].Properties {
			of[name] = true
		}
		return of
	}
	// As if it were of the other version: what is of this one already is left alone by rules that look for other names.
	made := object(k.translate(map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
		"status": status}, kind.Version), "status")
	was, is := fields(otherVersion(kind.Version)), fields(kind.Version)
	out := maps.Clone(status)
	maps.DeleteFunc(out, func(name string, _ any) bool { return was[name] && !is[name] })
	maps.Copy(out, made)
	return out
}
