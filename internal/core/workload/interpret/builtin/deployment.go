package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// deploymentConditions are used by kubectl wait and kubectl rollout status.
var deploymentConditions = []nativeCondition{
	{kind: "Available", good: "True", final: "MinimumReplicasAvailable", expected: true,
		fine: "Deployment has minimum availability."},
	{kind: "Progressing", good: "True", final: "NewReplicaSetAvailable", expected: true,
		fine: "Deployment has successfully progressed."},
	{kind: "ReplicaFailure", good: "False"},
}

// deployment also aggregates conditions, unlike Karmada.
func deployment() *interpret.Hooks {
	counters := []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"}
	return &interpret.Hooks{
		Replicas: replicas,
		Revise:   revise,
		Retain:   retainAll(retainReplicas, retainDeploymentRollout),
		Reflect:  reflectConditions(deploymentConditions, append(counters, "observedGeneration")...),
		Health:   deploymentHealth,
		Aggregate: counting(settledNative, counters, reaching("updatedReplicas", "availableReplicas"),
			nativeConditions(deploymentConditions)),
	}
}

func deploymentHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := specNumber(observed, 1, "replicas")
	if err != nil {
		return interpret.Unknown, err
	}
	status := object(observed.Object, "status")
	if !fresh(observed) {
		return interpret.Progressing, nil
	}
	if overdue(status) {
		return interpret.Degraded, nil
	}
	updated := number(status, "updatedReplicas")
	switch {
	case yes(observed.Object, "spec", "paused"):
		return interpret.Suspended, nil
	case updated < wanted,
		number(status, "replicas") > updated, // old replicas still exist
		number(status, "availableReplicas") < updated:
		return interpret.Progressing, nil
	}
	return interpret.Healthy, nil
}
