package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// advancedCronJob is OpenKruise's AdvancedCronJob, v1alpha1 and v1beta1. It runs in every cluster that has it. The
// template's status lists active jobs without clusters, because the schema has no field for them; the binding has them
// per cluster.
func advancedCronJob() *interpret.Hooks {
	return &interpret.Hooks{
		Health: pausedOrHealthy("paused"),
		Aggregate: folding(func(_ *unstructured.Unstructured, rs []report) map[string]any {
			status := map[string]any{}
			setText(status, "type", common(rs, "type"))
			gather(status, rs, "active", asIs)
			setText(status, "lastScheduleTime", latest(textsOf(rs, "lastScheduleTime")...))
			return status
		}),
		Dependencies: func(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference,
			error) {
			deps, err := podDependencies(ctx, obj)
			if err != nil {
				return nil, err
			}
			pull := list(obj.Object, "spec", "template", "imageListPullJobTemplate", "spec", "pullSecrets")
			return interpret.SortDependencies(append(deps, secretsNamed(obj, pull)...)), nil
		},
	}
}

// pausedOrHealthy returns the health of kinds without failures: Suspended if the spec's field pauses it, otherwise
// Healthy.
func pausedOrHealthy(pausedBy string) func(context.Context, *unstructured.Unstructured) (interpret.Health, error) {
	return func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
		if yes(observed.Object, "spec", pausedBy) {
			return interpret.Suspended, nil
		}
		return interpret.Healthy, nil
	}
}

// secretsNamed returns the named Secrets in the namespace of obj.
func secretsNamed(obj *unstructured.Unstructured, secrets []any) []configv1alpha1.DependentObjectReference {
	var deps []configv1alpha1.DependentObjectReference
	for _, s := range secrets {
		if name, _ := s.(string); name != "" {
			deps = append(deps, configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret",
				Namespace: obj.GetNamespace(), Name: name})
		}
	}
	return deps
}
