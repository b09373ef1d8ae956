package interpreter

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// The label source is the name of a tier, kind is "Kind.group". A label for the customization or the webhook is not
// needed: the first one that implements an operation of a kind answers for all objects of it.
var (
	calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "argosy_interpreter_calls_total",
		Help: "Number of calls of interpreter scripts, customizations and webhooks, by result.",
	}, []string{"source", "kind", "operation", "result"})
	callDurations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "argosy_interpreter_call_duration_seconds",
		Help:    "Duration of calls of interpreter scripts, customizations and webhooks.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9), // from 0.1 ms to 6.5 s: scripts and webhooks
	}, []string{"source", "operation"})
)

func init() { metrics.Registry.MustRegister(calls, callDurations) }

// measured counts the calls of a tier. A call that a breaker answers counts, too: the object is not interpreted.
type measured struct {
	interpret.Tier
	source string
}

// Find implements interpret.Tier.
func (m measured) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpret.Implementation {
	found := m.Tier.Find(kind, operation)
	evaluate := found.Evaluate
	if evaluate == nil {
		return found
	}
	// Both series begin at zero, so that the first failure is an increase.
	results := calls.MustCurryWith(prometheus.Labels{"source": m.source, "kind": kind.GroupKind().String(),
		"operation": string(operation)})
	succeeded, failed := results.WithLabelValues("success"), results.WithLabelValues("error")
	duration := callDurations.WithLabelValues(m.source, string(operation))
	found.Evaluate = func(ctx context.Context, in interpret.Inputs) (interpret.Outputs, error) {
		start := time.Now()
		out, err := evaluate(ctx, in)
		switch {
		case err == nil:
			succeeded.Inc()
		case ctx.Err() != nil:
			return out, err // the caller gave up
		default:
			failed.Inc()
		}
		duration.Observe(time.Since(start).Seconds())
		return out, err
	}
	return found
}
