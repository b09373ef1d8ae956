package builtin

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// horizontalPodAutoscaler omits currentMetrics: they change constantly, and averages cannot be averaged.
func horizontalPodAutoscaler() *interpret.Hooks {
	counters := []string{"currentReplicas", "desiredReplicas"}
	return &interpret.Hooks{
		Reflect: reflectFields(append(counters, "lastScaleTime", "conditions", "observedGeneration")...),
		Health:  autoscalerHealth,
		Aggregate: counting(settledNative, counters, unknown,
			func(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
				setText(status, "lastScaleTime", latest(textsOf(rs, "lastScaleTime")...))
				limited := func(kind string) bool { return kind == "ScalingLimited" }
				setConditions(status, rs, limited, "lastTransitionTime")
				return nil
			}),
	}
}

// autoscalerHealth reports an autoscaler that cannot scale or waits for its target or metrics. One without a status is
// healthy, because clusters may have no controller for it.
func autoscalerHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	status := object(observed.Object, "status")
	reason := func(kind string) string {
		if conditionText(status, kind, "status") != "False" {
			return ""
		}
		return cmp.Or(conditionText(status, kind, "reason"), "Unknown")
	}
	able, active := reason("AbleToScale"), reason("ScalingActive")
	switch {
	case active == "ScalingDisabled": // the target has zero replicas
		return interpret.Suspended, nil
	case strings.HasPrefix(active, "Invalid"), active == "AmbiguousSelector":
		return interpret.Degraded, nil
	case able == "FailedUpdateScale":
		return interpret.Degraded, nil
	case active != "", able == "FailedGetScale":
		return interpret.Progressing, nil
	}
	return interpret.Healthy, nil
}
