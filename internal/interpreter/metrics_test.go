package interpreter

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// answers is a tier that implements the health of Shops.
type answers struct{ evaluate interpret.Evaluate }

func (a answers) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) (found interpret.Implementation) {
	if kind.Kind == "Shop" && operation == configv1alpha1.InterpreterOperationInterpretHealth {
		found.Evaluate = a.evaluate
	}
	return found
}

func TestCallsOfATierAreCountedByResult(t *testing.T) {
	const source, operation = "test", configv1alpha1.InterpreterOperationInterpretHealth
	shop := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	var result error
	tier := measured{answers{func(context.Context, interpret.Inputs) (interpret.Outputs, error) {
		return interpret.Outputs{Health: interpret.Healthy}, result
	}}, source}
	counts := func() map[string]float64 {
		out := map[string]float64{}
		for _, result := range []string{"success", "error"} {
			out[result] = testutil.ToFloat64(calls.WithLabelValues(source, "Shop.example.com", string(operation), result))
		}
		return out
	}

	if tier.Find(shop, configv1alpha1.InterpreterOperationRetain).Evaluate != nil {
		t.Error("an operation is implemented that the tier leaves to the next one")
	}
	before := testutil.CollectAndCount(calls)
	evaluate := tier.Find(shop, operation).Evaluate
	if got := testutil.CollectAndCount(calls) - before; got != 2 {
		t.Errorf("%d series are there before the first call, want success and error at zero", got)
	}
	for _, result = range []error{nil, nil, errors.New("line 3: nil")} {
		if out, err := evaluate(t.Context(), interpret.Inputs{}); err != result || out.Health != interpret.Healthy {
			t.Errorf("the call gives %v, %v", out, err)
		}
	}
	if diff := cmp.Diff(map[string]float64{"success": 2, "error": 1}, counts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	result = context.Canceled
	if _, err := evaluate(ended, interpret.Inputs{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call gives %v", err)
	}
	if diff := cmp.Diff(map[string]float64{"success": 2, "error": 1}, counts()); diff != "" {
		t.Errorf("a call that the hub gave up counts (-want +got):\n%s", diff)
	}
}
