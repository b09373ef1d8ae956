package jsonpath

import (
	"context"
	"fmt"
	"math"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Hooks returns the operations with a path in the rules, without those with a script or nothing. A path that admission
// would reject makes only its own operation fail.
func Hooks(rules *configv1alpha1.CustomizationRules) interpret.Operations {
	all := interpret.Operations{}
	// add adds an operation; bad is why its paths cannot be read.
	add := func(operation configv1alpha1.InterpreterOperation, bad error,
		evaluate func(in interpret.Inputs, out *interpret.Outputs) error) {
		all[operation] = func(_ context.Context, in interpret.Inputs) (out interpret.Outputs, err error) {
			if err = bad; err == nil {
				err = evaluate(in, &out)
			}
			return out, err
		}
	}
	addPath := func(operation configv1alpha1.InterpreterOperation, r *configv1alpha1.OperationRule,
		evaluate func(path Path, in interpret.Inputs, out *interpret.Outputs) error) {
		if r != nil && r.JSONPath != "" {
			path, bad := one(r.JSONPath)
			add(operation, bad, func(in interpret.Inputs, out *interpret.Outputs) error { return evaluate(path, in, out) })
		}
	}
	addPath(configv1alpha1.InterpreterOperationInterpretReplica, rules.ReplicaResource, replicas)
	addPath(configv1alpha1.InterpreterOperationReviseReplica, rules.ReplicaRevision, revised)
	addPath(configv1alpha1.InterpreterOperationInterpretStatus, rules.StatusReflection, reflected)
	if r := rules.HealthInterpretation; r != nil {
		addPath(configv1alpha1.InterpreterOperationInterpretHealth, &r.OperationRule, health(r.Expected))
	}
	if texts := retained(rules.Retention); len(texts) > 0 {
		paths, bad := several(texts)
		add(configv1alpha1.InterpreterOperationRetain, bad,
			func(in interpret.Inputs, out *interpret.Outputs) (err error) {
				out.Object, err = Retain(paths, in.Object, in.Observed)
				return err
			})
	}
	if r := rules.StatusAggregation; r != nil && r.JSONPaths != nil {
		f, bad := newFold(r.JSONPaths)
		add(configv1alpha1.InterpreterOperationAggregateStatus, bad,
			func(in interpret.Inputs, out *interpret.Outputs) (err error) {
				out.Object, err = f.aggregate(in.Object, in.Items)
				return err
			})
	}
	return all
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
func replicas(path Path, in interpret.Inputs, out *interpret.Outputs) error {
	v, found, err := path.get(in.Object.Object)
	if err != nil {
		return err
	}
	n := int64(1)
	if found {
		var ok bool
		if n, ok = fields.Whole(v); !ok || n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%s %s, where a number of replicas is required: a whole number from 0 to %d", path,
				describe(v), math.MaxInt32)
		}
	}
	out.Replicas = int32(n)
	out.Requirements, err = interpret.Requirements(in.Object)
	return err
}

func revised(path Path, in interpret.Inputs, out *interpret.Outputs) error {
	out.Object = in.Object.DeepCopy()
	return path.set(out.Object.Object, int64(in.Replicas))
}

// reflected returns the status, or a status with only the one field.
func reflected(path Path, in interpret.Inputs, out *interpret.Outputs) error {
	v, found, err := path.get(in.Object.Object)
	if err != nil || !found {
		return err
	}
	if path.Root() {
		status, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%s %s, where an object is required", path, describe(v))
		}
		out.Status = copied(status).(map[string]any)
		return nil
	}
	only := map[string]any{}
	if err := path.skeleton(in.Object.Object, only, copied(v)); err != nil {
		return err
	}
	out.Status, _ = only["status"].(map[string]any)
	return nil
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
func health(expected string) func(path Path, in interpret.Inputs, out *interpret.Outputs) error {
	return func(path Path, in interpret.Inputs, out *interpret.Outputs) error {
		v, found, err := path.get(in.Object.Object)
		switch {
		case !found:
			out.Health = interpret.Progressing
		case plain(v) == expected:
			out.Health = interpret.Healthy
		default:
			out.Health = interpret.Degraded
		}
		return err
	}
}

// plain writes a value as in YAML: strings without quotes, others as JSON.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return text.JSON(v)
}
