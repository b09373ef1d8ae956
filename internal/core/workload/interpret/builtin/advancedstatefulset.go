package builtin

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// advancedStatefulSet is OpenKruise's StatefulSet, v1alpha1 and v1beta1, with equal fields here.
//
// Revise sets only the replicas. Other shares, including ordinals, are divided where all clusters are known.
func advancedStatefulSet() *interpret.Hooks {
	counters := []string{
		"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas", "updatedReadyReplicas",
		"updatedAvailableReplicas",
	}
	return &interpret.Hooks{
		Replicas:   replicas,
		Components: mainComponent,
		Revise:     revise,
		Retain: retainAll(retainReplicas, retainRollout, retainImmutable(immutableSelector,
			immutableText("spec", "serviceName"), immutableText("spec", "podManagementPolicy"), immutableStorage)),
		Reflect: reflectWhole,
		Health:  rollingHealth,
		Aggregate: counting(settled, counters, reaching("updatedAvailableReplicas"),
			addRevisions, addCollisions, addConditions, addSelector, addVolumeClaims),
	}
}

// addVolumeClaims adds up the claims per claim template over the clusters.
func addVolumeClaims(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
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
	if claims == nil {
		return nil
	}
	sortBy(claims, "volumeClaimName")
	status["volumeClaims"] = claims
	return nil
}
