package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// cronJob lists the active Jobs of all clusters by cluster, and the latest times.
func cronJob() *interpret.Hooks {
	return &interpret.Hooks{
		Health: cronJobHealth,
		Aggregate: foldingNative(func(_ *unstructured.Unstructured, rs []report) map[string]any {
			status := map[string]any{}
			var active []any
			for _, r := range rs {
				active = append(active, list(r.status, "active")...)
			}
			if active != nil {
				status["active"] = runtime.DeepCopyJSONValue(active)
			}
			for _, when := range []string{"lastScheduleTime", "lastSuccessfulTime"} {
				setText(status, when, latest(textsOf(rs, when)...))
			}
			return status
		}),
	}
}

// cronJobHealth reports a failed last run: no active Job, and the last success is older than the last schedule. RFC
// 3339 times in UTC compare as strings.
func cronJobHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	status := object(observed.Object, "status")
	last := text(status, "lastScheduleTime")
	switch {
	case yes(observed.Object, "spec", "suspend"):
		return interpret.Suspended, nil
	case last != "" && len(list(status, "active")) == 0 && text(status, "lastSuccessfulTime") < last:
		return interpret.Degraded, nil
	}
	return interpret.Healthy, nil
}
