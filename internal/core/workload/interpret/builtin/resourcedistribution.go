package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// resourceDistribution is OpenKruise's ResourceDistribution, v1alpha1 and v1beta1, which spell the list of failed
// namespaces differently. It distributes within a cluster, so failed namespaces are listed as cluster/namespace.
func resourceDistribution() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: reflectWhole,
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			switch {
			case !fresh(observed):
				return interpret.Progressing, nil
			case number(observed.Object, "status", "failed") > 0:
				return interpret.Degraded, nil
			}
			return interpret.Healthy, nil
		},
		Aggregate: counting(settled, []string{"desired", "succeeded", "failed"}, unknown,
			func(status map[string]any, template *unstructured.Unstructured, rs []report) error {
				always := func(string) bool { return true } // all conditions report failures
				setConditions(status, rs, always, "lastTransitionTime")
				for _, c := range objects(status, "conditions") {
					failedNamespaces(c, template, rs)
				}
				return nil
			}),
	}
}

// failedNamespaces lists in an aggregated condition the namespaces of the clusters in its state.
func failedNamespaces(condition map[string]any, template *unstructured.Unstructured, rs []report) {
	const old, present = "failedNamespace", "failedNamespaces"
	var names []any
	for _, r := range rs {
		for _, c := range objects(r.status, "conditions") {
			if text(c, "type") != text(condition, "type") || text(c, "status") != text(condition, "status") {
				continue
			}
			for _, spelling := range []string{old, present} {
				for _, ns := range list(c, spelling) {
					if name, ok := ns.(string); ok && len(names) < listed {
						names = append(names, r.cluster+"/"+name)
					}
				}
			}
		}
	}
	if names == nil {
		return
	}
	spelling := present
	if template.GroupVersionKind().Version == "v1alpha1" {
		spelling = old
	}
	condition[spelling] = names
}
