package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

var replicaSetConditions = []nativeCondition{{kind: "ReplicaFailure", good: "False"}}

func replicaSet() *interpret.Hooks {
	counters := []string{"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"}
	return &interpret.Hooks{
		Replicas: replicas,
		Revise:   revise,
		Retain:   retainReplicas,
		Reflect:  reflectConditions(replicaSetConditions, append(counters, "observedGeneration")...),
		Health:   replicaSetHealth,
		Aggregate: func(_ context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			rs, err := reports(items)
			if err != nil {
				return nil, err
			}
			status := sums(rs, counters...)
			status["observedGeneration"] = observedGeneration(template, rs, reach(template, status, "availableReplicas"))
			addNativeConditions(status, template, rs, replicaSetConditions)
			return settledNative(template, status), nil
		},
	}
}

func replicaSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := specNumber(observed, 1, "replicas")
	if err != nil {
		return interpret.Unknown, err
	}
	status := object(observed.Object, "status")
	if !fresh(observed) {
		return interpret.Progressing, nil
	}
	if isTrue(status, "ReplicaFailure") {
		return interpret.Degraded, nil
	}
	if number(status, "replicas") != wanted || number(status, "availableReplicas") < wanted {
		return interpret.Progressing, nil
	}
	return interpret.Healthy, nil
}
