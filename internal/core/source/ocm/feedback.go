package ocm

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/internal/core/kind"
)

// wellKnown returns the values of WellKnownStatus; nil for kinds without any. Those of Kubernetes kinds are the same as
// in Open Cluster Management. StatefulSet and the kinds of OpenKruise and Argo are additions with similar names.
func wellKnown(gk schema.GroupKind) (paths []ocmv1.JsonPath) {
	for _, f := range kind.Lookup(gk).Feedback {
		name, field, renamed := strings.Cut(f, "=")
		if !renamed {
			field = strings.ToLower(f[:1]) + f[1:]
		}
		paths = append(paths, ocmv1.JsonPath{Name: name, Path: ".status." + field})
	}
	return paths
}

// WellKnown reports whether WellKnownStatus supports the kind.
func WellKnown(gk schema.GroupKind) bool { return kind.Lookup(gk).Feedback != nil }

// WellKnownKinds returns the kinds that WellKnownStatus supports, sorted.
func WellKnownKinds() (all []string) {
	for _, gk := range kind.Select(func(k *kind.Kind) bool { return k.Feedback != nil }) {
		all = append(all, gk.String())
	}
	return all
}

// Feedback returns the values that the rules request. Errors for single values do not hide the others.
func Feedback(rules []ocmv1.FeedbackRule, object *unstructured.Unstructured) ([]ocmv1.FeedbackValue, error) {
	var values []ocmv1.FeedbackValue
	var errs []error
	named := map[string]bool{}
	for _, rule := range rules {
		paths := rule.JsonPaths
		if rule.Type == ocmv1.FeedbackWellKnownStatus {
			if paths = wellKnown(object.GroupVersionKind().GroupKind()); paths == nil {
				errs = append(errs, fmt.Errorf("cannot find the wellknown statuses for resource with gvk %s",
					object.GroupVersionKind()))
			}
		}
		for _, path := range paths {
			if named[path.Name] {
				continue // names are unique in the list; the first wins
			}
			if path.Version != "" && path.Version != object.GroupVersionKind().Version {
				errs = append(errs, fmt.Errorf("version set in the path %s is not matched for the related resource", path.Name))
				continue
			}
			value, err := valueAt(path, object)
			if err != nil {
				errs = append(errs, err)
			}
			if value != nil {
				named[path.Name] = true
				values = append(values, *value)
			}
		}
	}
	return values, errors.Join(errs...)
}

const (
	// pathLimit is the maximum size of a path in bytes, because the parser is recursive.
	pathLimit = 1024
	// unionLimit is the maximum number of commas in a path. Each index list multiplies the results.
	unionLimit = 8
	// textLimit is the maximum size of a value in bytes, equal to the limit of Open Cluster Management for raw JSON.
	textLimit = 1024
)

// ParsePath parses and validates the path of a value.
func ParsePath(path ocmv1.JsonPath) (*jsonpath.JSONPath, error) {
	switch {
	case len(path.Path) > pathLimit:
		return nil, fmt.Errorf("the path of %s has %d bytes, more than %d", path.Name, len(path.Path), pathLimit)
	case strings.ContainsAny(path.Path, "{}"):
		return nil, fmt.Errorf("parse the path %s of %s: it must be one expression without braces, such as .status.readyReplicas", path.Path, path.Name)
	case strings.Count(path.Path, "..") > 1:
		return nil, fmt.Errorf("parse the path %s of %s: .. may occur only once", path.Path, path.Name)
	case strings.Count(path.Path, ",") > unionLimit:
		return nil, fmt.Errorf("parse the path %s of %s: it has more than %d commas", path.Path, path.Name, unionLimit)
	}
	j := jsonpath.New(path.Name).AllowMissingKeys(true)
	if err := j.Parse("{" + path.Path + "}"); err != nil {
		return nil, fmt.Errorf("parse the path %s of %s: %w", path.Path, path.Name, err)
	}
	return j, nil
}

// valueAt returns the first value at a path; nil if there is none.
func valueAt(path ocmv1.JsonPath, object *unstructured.Unstructured) (*ocmv1.FeedbackValue, error) {
	j, err := ParsePath(path)
	if err != nil {
		return nil, err
	}
	found, err := find(j, object)
	if err != nil {
		return nil, fmt.Errorf("find %s of %s: %w", path.Path, path.Name, err)
	}
	if len(found) == 0 || len(found[0]) == 0 {
		return nil, nil
	}
	v := found[0][0]
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil, nil
	}
	value := ocmv1.FieldValue{}
	switch is := v.Interface().(type) {
	case int64:
		value.Type, value.Integer = ocmv1.ValueInteger, &is
	case string:
		if len(is) > textLimit {
			return nil, fmt.Errorf("the value of %s at %s has %d bytes, more than %d", path.Name, path.Path, len(is), textLimit)
		}
		value.Type, value.String = ocmv1.ValueString, &is
	case bool:
		value.Type, value.Boolean = ocmv1.ValueBoolean, &is
	default:
		return nil, fmt.Errorf("the value of %s at %s is a %s: only integers, strings and booleans are reported", path.Name,
			path.Path, describe(is))
	}
	return &ocmv1.FeedbackValue{Name: path.Name, Value: value}, nil
}

// find evaluates a path. Some valid paths make the library panic.
func find(j *jsonpath.JSONPath, object *unstructured.Unstructured) (found [][]reflect.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be evaluated: %v", r)
		}
	}()
	return j.FindResults(object.Object)
}

func describe(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case float64:
		return "number with a fraction"
	}
	return fmt.Sprintf("%T", v)
}
