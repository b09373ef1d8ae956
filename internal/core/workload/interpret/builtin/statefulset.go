package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func statefulSet() *interpret.Hooks {
	counters := []string{"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"}
	return &interpret.Hooks{
		Replicas:  replicas,
		Revise:    revise,
		Retain:    retainAll(retainReplicas, retainRollout),
		Reflect:   reflectFields(append(counters, "currentRevision", "updateRevision", "observedGeneration")...),
		Health:    statefulSetHealth,
		Aggregate: counting(settledNative, counters, reaching("readyReplicas"), addRevisions),
	}
}

func statefulSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := specNumber(observed, 1, "replicas")
	if err != nil {
		return interpret.Unknown, err
	}
	partition, err := specNumber(observed, 0, "updateStrategy", "rollingUpdate", "partition")
	if err != nil {
		return interpret.Unknown, err
	}
	status := object(observed.Object, "status")
	updated := number(status, "updatedReplicas")
	if !fresh(observed) || number(status, "replicas") != wanted || number(status, "availableReplicas") < wanted {
		return interpret.Progressing, nil
	}
	if text(observed.Object, "spec", "updateStrategy", "type") == "OnDelete" {
		return interpret.Healthy, nil
	}
	// A partition is an ordinal: pods from it on are updated.
	first := number(observed.Object, "spec", "ordinals", "start")
	keptOld := min(max(partition-first, 0), wanted)
	switch {
	case updated < wanted-keptOld:
		return interpret.Progressing, nil
	case updated < wanted:
		return interpret.Suspended, nil
	}
	return interpret.Healthy, nil
}
