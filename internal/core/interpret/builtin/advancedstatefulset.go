package builtin

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// advancedStatefulSet is OpenKruise's StatefulSet, v1alpha1 and v1beta1, which agree in what is read here.
//
// Revise sets the replicas alone: partition and maxUnavailable are not yet shares of the whole, and every cluster counts
// its ordinals from the same start. Retain leaves a changed immutable field in place, so that the member's refusal is seen.
func advancedStatefulSet() *interpret.Hooks {
	counters := []string{
		"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas", "updatedReadyReplicas",
		"updatedAvailableReplicas",
	}
	return &interpret.Hooks{
		Replicas: replicas,
		Revise:   revise,
		Retain: func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			retained, err := retainReplicas(ctx, desired, observed)
			if err != nil {
				return nil, err
			}
			return retainRollout(ctx, retained, observed)
		},
		Reflect: reflectWhole,
		Health:  advancedStatefulSetHealth,
		Aggregate: func(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			rs, err := reports(items)
			if err != nil {
				return nil, err
			}
			status := sums(rs, counters...)
			if err := kruiseStatus(status, template, rs); err != nil {
				return nil, err
			}
			if claims := volumeClaims(rs); claims != nil {
				status["volumeClaims"] = claims
			}
			status["observedGeneration"] = observedGeneration(template, rs, reach(template, status, "updatedAvailableReplicas"))
			return settled(template, status), nil
		},
		// Its pods, and the Service that names them.
		Dependencies: func(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
			deps, err := podDependencies(ctx, obj)
			if err != nil {
				return nil, err
			}
			if name := text(obj.Object, "spec", "serviceName"); name != "" {
				deps = append(deps, configv1alpha1.DependentObjectReference{
					APIVersion: "v1", Kind: "Service", Namespace: obj.GetNamespace(), Name: name,
				})
			}
			return interpret.SortDependencies(deps), nil
		},
	}
}

func advancedStatefulSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := specNumber(observed, 1, "replicas")
	if err != nil {
		return interpret.Unknown, err
	}
	partition, err := specNumber(observed, 0, "updateStrategy", "rollingUpdate", "partition")
	if err != nil {
		return interpret.Unknown, err
	}
	// Unlike that of Kubernetes, this partition counts pods.
	held := min(max(partition, 0), wanted)
	status := object(observed.Object, "status")
	if !fresh(observed) {
		return interpret.Progressing, nil
	}
	paused := strategy(observed, "paused") == true
	onDelete := text(observed.Object, "spec", "updateStrategy", "type") == "OnDelete"
	short := number(status, "replicas") != wanted || number(status, "availableReplicas") < wanted
	if !paused && !onDelete {
		short = short || updatedAvailable(status) < wanted-held
	}
	switch {
	case short && (isTrue(status, "FailedCreatePod") || isTrue(status, "FailedUpdatePod")):
		return interpret.Degraded, nil
	case short:
		return interpret.Progressing, nil
	case paused, held > 0 && number(status, "updatedReplicas") < wanted:
		return interpret.Suspended, nil
	}
	return interpret.Healthy, nil
}

// volumeClaims adds up what the clusters say of the claims made from each claim template, by its name.
func volumeClaims(rs []report) []any {
	var claims []any
	byName := map[string]map[string]any{}
	for _, r := range rs {
		for _, c := range objects(r.status, "volumeClaims") {
			name := text(c, "volumeClaimName")
			sum := byName[name]
			if sum == nil {
				sum = map[string]any{"volumeClaimName": name}
				byName[name] = sum
				claims = append(claims, sum)
			}
			for _, counter := range []string{"compatibleReplicas", "compatibleReadyReplicas"} {
				sum[counter] = number(sum, counter) + number(c, counter)
			}
		}
	}
	slices.SortFunc(claims, func(a, b any) int {
		return cmp.Compare(text(a.(map[string]any), "volumeClaimName"), text(b.(map[string]any), "volumeClaimName"))
	})
	return claims
}
