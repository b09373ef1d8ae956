package interpretcli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// operationNames lists the operations in one line.
func operationNames() string {
	var names []string
	for _, o := range script.Operations {
		names = append(names, string(o.Operation))
	}
	return strings.Join(names, ", ")
}

// question is an operation with its arguments. check reports which arguments an operation needs.
type question struct {
	operation configv1alpha1.InterpreterOperation
	// desired is the template or a manifest. observed is the object in a member.
	desired, observed *unstructured.Unstructured
	// replicas is the number for ReviseReplica.
	replicas *int32
	// items are the statuses to aggregate.
	items []workv1alpha2.AggregatedStatusItem
}

// part is one named part of an answer, as a JSON value.
type part struct {
	name  string
	value any
}

// object returns the object that the question is about; nil without objects.
func (q question) object() *unstructured.Unstructured {
	if q.desired != nil {
		return q.desired
	}
	return q.observed
}

// check returns an error for missing or unused arguments. The parameters are the names of arguments for the message.
func (q question) check(desired, observed, replicas string) error {
	known := func(o script.Operation) bool { return o.Operation == q.operation }
	switch {
	case !slices.ContainsFunc(script.Operations, known):
		return fmt.Errorf("operation %q is not known; there is %s", q.operation, operationNames())
	case q.operation == configv1alpha1.InterpreterOperationRetain:
		if q.desired == nil || q.observed == nil {
			return fmt.Errorf("%s needs %s and %s: the desired and the observed object", q.operation, desired, observed)
		}
	case q.object() == nil:
		return fmt.Errorf("%s needs an object: set %s or %s", q.operation, desired, observed)
	case q.desired != nil && q.observed != nil:
		return fmt.Errorf("%s takes one object: set %s or %s, not both", q.operation, desired, observed)
	}
	if q.replicas != nil && *q.replicas < 0 {
		return fmt.Errorf("%s %d: there are no fewer than 0 replicas", replicas, *q.replicas)
	}
	if q.operation == configv1alpha1.InterpreterOperationReviseReplica && q.replicas == nil {
		return fmt.Errorf("%s needs %s: the new number of replicas", q.operation, replicas)
	}
	return nil
}

// errNotAnswered is the error of answer if no tier implements the operation for the kind.
var errNotAnswered = errors.New("no interpreter implements this operation for the kind")

// answer runs the operation. The question must have passed check. The answer shares no memory with it.
func (q question) answer(ctx context.Context, tier interpret.Tier) ([]part, error) {
	evaluate := tier.Find(q.object().GroupVersionKind(), q.operation).Evaluate
	if evaluate == nil {
		return nil, errNotAnswered
	}
	in := interpret.Inputs{Object: q.object().DeepCopy(), Items: q.items}
	if q.observed != nil {
		in.Observed = q.observed.DeepCopy()
	}
	if q.replicas != nil {
		in.Replicas = *q.replicas
	}
	out, err := evaluate(ctx, in)
	if err != nil {
		return nil, err
	}
	switch q.operation {
	case configv1alpha1.InterpreterOperationRetain:
		return []part{{"retained", out.Object.Object}}, nil
	case configv1alpha1.InterpreterOperationReviseReplica:
		return []part{{"revised", out.Object.Object}}, nil
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return []part{{"aggregatedStatus", out.Object.Object}}, nil
	case configv1alpha1.InterpreterOperationInterpretReplica:
		requires, err := plain(out.Requirements)
		return []part{{"replica", int64(out.Replicas)}, {"requires", requires}}, err
	case configv1alpha1.InterpreterOperationInterpretComponent:
		components, err := plain(append([]workv1alpha2.Component{}, out.Components...))
		return []part{{"components", components}}, err
	case configv1alpha1.InterpreterOperationInterpretStatus:
		if out.Status == nil {
			return []part{{"status", nil}}, nil
		}
		return []part{{"status", out.Status}}, nil
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return []part{{"healthy", out.Health.Karmada() == "Healthy"}, {"health", string(out.Health)}}, nil
	}
	dependencies, err := plain(append([]configv1alpha1.DependentObjectReference{}, out.Dependencies...))
	return []part{{"dependencies", dependencies}}, err
}

// plain returns a typed value as a JSON value.
func plain(value any) (any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Value any `json:"value"`
	}{value})
	return object["value"], err
}
