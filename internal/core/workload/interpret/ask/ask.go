// Package ask runs one operation of an interpreter on objects from files, with arguments and results as JSON. The
// interpreter decides the result.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Operations are the supported operations in display order.
var Operations = []configv1alpha1.InterpreterOperation{
	configv1alpha1.InterpreterOperationRetain,
	configv1alpha1.InterpreterOperationInterpretReplica,
	configv1alpha1.InterpreterOperationInterpretComponent,
	configv1alpha1.InterpreterOperationReviseReplica,
	configv1alpha1.InterpreterOperationInterpretStatus,
	configv1alpha1.InterpreterOperationAggregateStatus,
	configv1alpha1.InterpreterOperationInterpretHealth,
	configv1alpha1.InterpreterOperationInterpretDependency,
}

// Names lists the operations in one line.
func Names() string {
	names := make([]string, len(Operations))
	for i, o := range Operations {
		names[i] = string(o)
	}
	return strings.Join(names, ", ")
}

// Question is an operation with its arguments. Check reports which arguments an operation needs.
type Question struct {
	Operation configv1alpha1.InterpreterOperation
	// Desired is the template or a manifest. Observed is the object in a member.
	Desired, Observed *unstructured.Unstructured
	// Replicas is the number for ReviseReplica.
	Replicas *int32
	// Items are the statuses to aggregate.
	Items []workv1alpha2.AggregatedStatusItem
}

// Part is one named part of a result, as a JSON value.
type Part struct {
	Name  string
	Value any
}

// Object returns the object that the question is about; nil without objects.
func (q Question) Object() *unstructured.Unstructured {
	if q.Desired != nil {
		return q.Desired
	}
	return q.Observed
}

// Check returns an error for missing or unused arguments. The parameters are the caller's names for them, such as
// --desired-file.
func (q Question) Check(desired, observed, replicas string) error {
	if !slices.Contains(Operations, q.Operation) {
		return fmt.Errorf("operation %q is not known; there is %s", q.Operation, Names())
	}
	switch {
	case q.Operation == configv1alpha1.InterpreterOperationRetain:
		if q.Desired == nil || q.Observed == nil {
			return fmt.Errorf("%s needs %s and %s: the desired and the observed object", q.Operation, desired, observed)
		}
	case q.Desired == nil && q.Observed == nil:
		return fmt.Errorf("%s needs an object: set %s or %s", q.Operation, desired, observed)
	case q.Desired != nil && q.Observed != nil:
		return fmt.Errorf("%s takes one object: set %s or %s, not both", q.Operation, desired, observed)
	}
	if q.Replicas != nil && *q.Replicas < 0 {
		return fmt.Errorf("%s %d: there are no fewer than 0 replicas", replicas, *q.Replicas)
	}
	if q.Operation == configv1alpha1.InterpreterOperationReviseReplica && q.Replicas == nil {
		return fmt.Errorf("%s needs %s: the new number of replicas", q.Operation, replicas)
	}
	return nil
}

// ErrNotAnswered is the error of Run if no tier implements the operation for the kind.
var ErrNotAnswered = errors.New("no interpreter implements this operation for the kind")

// Run runs the operation. The question must have passed Check. The result shares no memory with it.
func (q Question) Run(ctx context.Context, h *interpret.Hooks) ([]Part, error) {
	if !h.Implements(q.Operation) {
		return nil, ErrNotAnswered
	}
	obj := q.Object().DeepCopy()
	switch q.Operation {
	case configv1alpha1.InterpreterOperationRetain:
		out, err := h.Retain(ctx, obj, q.Observed.DeepCopy())
		return object("retained", out, err)
	case configv1alpha1.InterpreterOperationInterpretReplica:
		n, req, err := h.Replicas(ctx, obj)
		if err != nil {
			return nil, err
		}
		if req == nil {
			return parts("replica", n, "requires", nil)
		}
		return parts("replica", n, "requires", req)
	case configv1alpha1.InterpreterOperationInterpretComponent:
		out, err := h.Components(ctx, obj)
		if err != nil {
			return nil, err
		}
		return parts("components", append([]workv1alpha2.Component{}, out...))
	case configv1alpha1.InterpreterOperationReviseReplica:
		out, err := h.Revise(ctx, obj, *q.Replicas)
		return object("revised", out, err)
	case configv1alpha1.InterpreterOperationInterpretStatus:
		out, err := h.Reflect(ctx, obj)
		if err != nil {
			return nil, err
		}
		if out == nil {
			return parts("status", nil)
		}
		return parts("status", out)
	case configv1alpha1.InterpreterOperationAggregateStatus:
		out, err := h.Aggregate(ctx, obj, q.Items)
		return object("aggregatedStatus", out, err)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		out, err := h.Health(ctx, obj)
		if err != nil {
			return nil, err
		}
		return parts("healthy", out.Karmada() == "Healthy", "health", string(out))
	default:
		out, err := h.Dependencies(ctx, obj)
		if err != nil {
			return nil, err
		}
		return parts("dependencies", append([]configv1alpha1.DependentObjectReference{}, out...))
	}
}

func object(name string, out *unstructured.Unstructured, err error) ([]Part, error) {
	if err != nil {
		return nil, err
	}
	return parts(name, out.Object)
}

// parts converts pairs of name and value to JSON values.
func parts(pairs ...any) ([]Part, error) {
	var out []Part
	for i := 0; i < len(pairs); i += 2 {
		data, err := json.Marshal(pairs[i+1])
		if err != nil {
			return nil, fmt.Errorf("write the answer: %w", err)
		}
		var value any
		if err := k8sjson.Unmarshal(data, &value); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		out = append(out, Part{Name: pairs[i].(string), Value: value})
	}
	return out, nil
}
