package builtin

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// sidecarSet is OpenKruise's SidecarSet, v1alpha1 and v1beta1: containers that are injected into pods of others at
// creation. It has no replicas. Its status counts the injected pods.
func sidecarSet() *interpret.Hooks {
	counters := []string{"matchedPods", "updatedPods", "readyPods", "updatedReadyPods"}
	done := func(_ *unstructured.Unstructured, status map[string]any) bool {
		return number(status, "updatedReadyPods") >= number(status, "matchedPods")
	}
	return &interpret.Hooks{
		Retain:       retainSidecarHashes,
		Reflect:      reflectNoting(noMatchedPods),
		Health:       sidecarSetHealth,
		Aggregate:    counting(settled, counters, done, addCollisions, addLatestRevision),
		Dependencies: sidecarDependencies,
	}
}

// addLatestRevision adds the common revision of the clusters.
func addLatestRevision(status map[string]any, _ *unstructured.Unstructured, rs []report) error {
	setText(status, "latestRevision", common(rs, "latestRevision"))
	return nil
}

// retainSidecarHashes keeps the hashes that the member's webhook computes. An exported template has those of its
// cluster.
func retainSidecarHashes(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var paths [][]string
	for key := range observed.GetAnnotations() {
		if strings.HasPrefix(key, "kruise.io/sidecarset-hash") {
			paths = append(paths, []string{"metadata", "annotations", key})
		}
	}
	return retainFields(paths...)(ctx, desired, observed)
}

// sidecarSetHealth returns the health. A SidecarSet without matching pods is healthy, because it may be created before
// them.
func sidecarSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	spec, status := object(observed.Object, "spec"), object(observed.Object, "status")
	matched, updated := number(status, "matchedPods"), number(status, "updatedPods")
	keptOld, _, err := fleet.Limits(observed, matched)
	if err != nil {
		return interpret.Unknown, err
	}
	still := text(spec, "updateStrategy", "type") == "NotUpdate" || yes(spec, "updateStrategy", "paused")
	switch {
	case !fresh(observed):
		return interpret.Progressing, nil
	case still && updated < matched:
		return interpret.Suspended, nil
	case still:
		return interpret.Healthy, nil
	case updated < matched-keptOld, number(status, "updatedReadyPods") < updated:
		return interpret.Progressing, nil
	case updated < matched:
		return interpret.Suspended, nil
	}
	return interpret.Healthy, nil
}

// sidecarDependencies returns the dependencies of containers and volumes in the namespaces that the SidecarSet names:
// by spec.namespace in v1alpha1, or by the name label of namespaces. With another or no namespace selector a policy
// must propagate the dependencies.
func sidecarDependencies(_ context.Context,
	obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	var deps []configv1alpha1.DependentObjectReference
	for _, path := range interpret.PodSpecs(obj) {
		t, err := interpret.PodSpec(obj, path)
		if err != nil {
			return nil, err
		}
		for _, namespace := range injectedNamespaces(obj) {
			deps = append(deps, interpret.PodDependencies(t, namespace)...)
		}
	}
	return interpret.SortDependencies(deps), nil
}

// injectedNamespaces returns the namespaces that a SidecarSet names, in no order; none if it may inject anywhere.
func injectedNamespaces(obj *unstructured.Unstructured) []string {
	if ns := text(obj.Object, "spec", "namespace"); ns != "" {
		return []string{ns}
	}
	selector := object(obj.Object, "spec", "namespaceSelector")
	if ns := text(selector, "matchLabels", corev1.LabelMetadataName); ns != "" {
		return []string{ns}
	}
	var names []string
	for _, e := range objects(selector, "matchExpressions") {
		if text(e, "key") != corev1.LabelMetadataName || text(e, "operator") != "In" {
			continue
		}
		for _, v := range list(e, "values") {
			if ns, ok := v.(string); ok && ns != "" && !slices.Contains(names, ns) {
				names = append(names, ns)
			}
		}
	}
	return names
}
