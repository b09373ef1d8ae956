package jsonpath

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Hooks returns the operations with a path in the rules; those with a script or nothing are nil. A path that admission
// would reject makes only its own operation fail.
func Hooks(rules *configv1alpha1.CustomizationRules) *interpret.Hooks {
	h := &interpret.Hooks{}
	if r := rules.ReplicaResource; r != nil && r.JSONPath != "" {
		path, bad := one(r.JSONPath)
		h.Replicas = func(_ context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements,
			error) {
			if bad != nil {
				return 0, nil, bad
			}
			return replicas(path, obj)
		}
	}
	if r := rules.ReplicaRevision; r != nil && r.JSONPath != "" {
		path, bad := one(r.JSONPath)
		h.Revise = func(_ context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured,
			error) {
			if bad != nil {
				return nil, bad
			}
			revised := obj.DeepCopy()
			return revised, path.set(revised.Object, int64(replicas))
		}
	}
	if r := rules.StatusReflection; r != nil && r.JSONPath != "" {
		path, bad := one(r.JSONPath)
		h.Reflect = func(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			if bad != nil {
				return nil, bad
			}
			return reflected(path, observed)
		}
	}
	if r := rules.HealthInterpretation; r != nil && r.JSONPath != "" {
		path, bad := one(r.JSONPath)
		expected := r.Expected
		h.Health = func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			if bad != nil {
				return interpret.Unknown, bad
			}
			return health(path, expected, observed)
		}
	}
	if texts := retained(rules.Retention); len(texts) > 0 {
		paths, bad := several(texts)
		h.Retain = func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if bad != nil {
				return nil, bad
			}
			return Retain(paths, desired, observed)
		}
	}
	if r := rules.StatusAggregation; r != nil && r.JSONPaths != nil {
		f, bad := newFold(r.JSONPaths)
		h.Aggregate = func(_ context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			if bad != nil {
				return nil, bad
			}
			return f.aggregate(template, items)
		}
	}
	return h
}

// retained returns the paths of a retention rule, from either of its fields.
func retained(r *configv1alpha1.RetentionRule) []string {
	switch {
	case r == nil:
		return nil
	case r.JSONPath != "":
		return append([]string{r.JSONPath}, r.JSONPaths...)
	}
	return r.JSONPaths
}

func one(text string) (Path, error) {
	p, err := Parse(text)
	if err != nil {
		return p, fmt.Errorf("jsonPath %q: %w", text, err)
	}
	return p, nil
}

func several(texts []string) ([]Path, error) {
	paths := make([]Path, len(texts))
	for i, text := range texts {
		var err error
		if paths[i], err = one(text); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// replicas reads the field; the default is one, as for Kubernetes workloads. Requirements come from the pod template if
// it is in the usual place.
func replicas(path Path, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	v, found, err := path.get(obj.Object)
	if err != nil {
		return 0, nil, err
	}
	n := int64(1)
	if found {
		var ok bool
		if n, ok = fields.Whole(v); !ok || n < 0 || n > math.MaxInt32 {
			return 0, nil, fmt.Errorf("%s %s, where a number of replicas is required: a whole number from 0 to %d", path,
				describe(v), math.MaxInt32)
		}
	}
	req, err := interpret.Requirements(obj)
	return int32(n), req, err
}

// reflected returns the status, or a status with only the one field.
func reflected(path Path, observed *unstructured.Unstructured) (map[string]any, error) {
	v, found, err := path.get(observed.Object)
	if err != nil || !found {
		return nil, err
	}
	if path.Root() {
		status, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s %s, where an object is required", path, describe(v))
		}
		return copied(status).(map[string]any), nil
	}
	only := map[string]any{}
	if err := path.skeleton(observed.Object, only, copied(v)); err != nil {
		return nil, err
	}
	status, _ := only["status"].(map[string]any)
	return status, nil
}

// skeleton writes value at the path into an empty object. Lists on the way come from the original, as short as
// possible.
func (p Path) skeleton(original, object map[string]any, value any) error {
	for i, s := range p.steps {
		if s.key == "" { // an element: copy the whole list
			p.steps = p.steps[:i]
			v, _, err := p.get(original)
			if err != nil {
				return err
			}
			value = copied(v)
			break
		}
	}
	return p.set(object, value)
}

// health compares the field with its value in a healthy object. A missing field means unknown.
func health(path Path, expected string, observed *unstructured.Unstructured) (interpret.Health, error) {
	v, found, err := path.get(observed.Object)
	if err != nil {
		return interpret.Unknown, err
	}
	if !found {
		return interpret.Progressing, nil
	}
	if text(v) == expected {
		return interpret.Healthy, nil
	}
	return interpret.Degraded, nil
}

// text writes a value as in YAML: strings without quotes, others as JSON.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}
