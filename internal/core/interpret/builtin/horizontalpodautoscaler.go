package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// horizontalPodAutoscaler leaves out currentMetrics: they change at every look, and an average of averages is none.
func horizontalPodAutoscaler() *interpret.Hooks {
	counters := []string{"currentReplicas", "desiredReplicas"}
	return &interpret.Hooks{
		Reflect: reflectFields(append(counters, "lastScaleTime", "conditions", "observedGeneration")...),
		Aggregate: func(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			rs, err := reports(items)
			if err != nil {
				return nil, err
			}
			status := sums(rs, counters...)
			setText(status, "lastScaleTime", latest(textsOf(rs, "lastScaleTime")...))
			limited := func(kind string) bool { return kind == "ScalingLimited" }
			if c := conditions(rs, limited, "lastTransitionTime"); c != nil {
				status["conditions"] = c
			}
			status["observedGeneration"] = observedGeneration(template, rs, false)
			return settledNative(template, status), nil
		},
	}
}
