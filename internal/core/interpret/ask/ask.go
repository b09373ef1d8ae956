// Package ask puts one question to an interpreter in the terms of JSON, for those who have objects in files: what is
// asked, of which objects, and the answer as it would be written down. What the answer is, the interpreter decides.
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
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// Operations are those that may be asked for, in the order in which people are told of them.
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

// Names are the operations in one line.
func Names() string {
	names := make([]string, len(Operations))
	for i, o := range Operations {
		names[i] = string(o)
	}
	return strings.Join(names, ", ")
}

// Question is an operation and what it is asked of. Which objects it takes depends on the operation, see Check.
type Question struct {
	Operation configv1alpha1.InterpreterOperation
	// Desired is the template, or a manifest; Observed is the object as a member has it.
	Desired, Observed *unstructured.Unstructured
	// Replicas is the number to revise to.
	Replicas *int32
	// Items are the statuses to aggregate.
	Items []workv1alpha2.AggregatedStatusItem
}

// Part is one thing that an answer consists of, as JSON values.
type Part struct {
	Name  string
	Value any
}

// Object is what the question is about; nil when neither object is given.
func (q Question) Object() *unstructured.Unstructured {
	if q.Desired != nil {
		return q.Desired
	}
	return q.Observed
}

// Check says what is missing, or given in vain. names are what the caller calls the desired object, the observed one
// and the number of replicas, such as --desired-file.
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

// ErrNotAnswered is the error of Of when no tier answers the operation for the kind.
var ErrNotAnswered = errors.New("no interpreter implements this operation for the kind")

// Answers says whether the hooks have one for the operation.
func Answers(h *interpret.Hooks, operation configv1alpha1.InterpreterOperation) bool {
	if h == nil {
		return false
	}
	switch operation {
	case configv1alpha1.InterpreterOperationRetain:
		return h.Retain != nil
	case configv1alpha1.InterpreterOperationInterpretReplica:
		return h.Replicas != nil
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return h.Components != nil
	case configv1alpha1.InterpreterOperationReviseReplica:
		return h.Revise != nil
	case configv1alpha1.InterpreterOperationInterpretStatus:
		return h.Reflect != nil
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return h.Aggregate != nil
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return h.Health != nil
	case configv1alpha1.InterpreterOperationInterpretDependency:
		return h.Dependencies != nil
	}
	return false
}

// Of asks the hooks. The question has passed Check; the answer shares nothing with it.
func (q Question) Of(ctx context.Context, h *interpret.Hooks) ([]Part, error) {
	if !Answers(h, q.Operation) {
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

// parts are pairs of name and value, the values as JSON reads them.
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
