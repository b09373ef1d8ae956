package builtin

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// cloneSet is OpenKruise's CloneSet, v1alpha1 (strategy directly in updateStrategy) and v1beta1 (in rollingUpdate).
//
// Revise sets only the replicas. Other shares are divided where all clusters are known.
func cloneSet() *interpret.Hooks {
	counters := []string{
		"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas",
		"updatedAvailableReplicas", "expectedUpdatedReplicas",
	}
	return &interpret.Hooks{
		Replicas:   replicas,
		Components: mainComponent,
		Revise:     revise,
		Retain:     retainAll(retainReplicas, retainPodsToDelete, retainRollout, retainImmutable(immutableSelector)),
		Reflect:    reflectWhole,
		Health:     rollingHealth,
		Aggregate: counting(settled, counters, reaching("updatedAvailableReplicas"),
			addRevisions, addCollisions, addConditions, addSelector),
	}
}

// retainPodsToDelete drops the names that the member's controller removed from its list because the pods are gone.
// Sending them again would be rejected or repeat forever. A name that the hub has not sent yet is new, not removed. A
// new generation of the template may use names again.
func retainPodsToDelete(_ context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	path := []string{"spec", "scaleStrategy", "podsToDelete"}
	names, left := list(desired.Object, path...), list(observed.Object, path...)
	made := func(obj *unstructured.Unstructured) string {
		return text(obj.Object, "metadata", "annotations", workv1alpha2.TemplateGenerationAnnotation)
	}
	if len(names) == 0 || made(desired) != made(observed) {
		return desired, nil
	}
	// An object from an older hub has no record. Then all names count as sent.
	sent, recorded := observed.GetAnnotations()[wellknown.SentPodsToDeleteAnnotation]
	gone := func(name any) bool {
		if text, ok := name.(string); ok && recorded && !slices.Contains(strings.Split(sent, ","), text) {
			return false
		}
		return !slices.ContainsFunc(left, func(there any) bool { return equal(name, there) })
	}
	kept := slices.DeleteFunc(slices.Clone(names), gone)
	if len(kept) == len(names) {
		return desired, nil
	}
	return withField(desired, kept, path...)
}
