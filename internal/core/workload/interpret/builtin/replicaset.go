package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		Aggregate: counting(settledNative, counters, reaching("availableReplicas"),
			nativeConditions(replicaSetConditions)),
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
