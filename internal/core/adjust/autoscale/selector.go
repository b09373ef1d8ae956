package autoscale

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Selector returns the label selector for the pods of a workload: spec.selector, or else status.selector as in the
// scale subresource.
func Selector(workload *unstructured.Unstructured) (string, error) {
	name := fmt.Sprintf("%s %s", workload.GetKind(), workload.GetName())
	var s labels.Selector
	if spec := fields.Object(workload.Object, "spec", "selector"); len(spec) > 0 {
		var err error
		if s, err = match.ParseSelector(spec); err != nil {
			return "", fmt.Errorf("spec.selector of %s selects no pods: %w", name, err)
		}
	} else {
		text := cmp.Or(fields.Text(workload.Object, "status", "labelSelector"),
			fields.Text(workload.Object, "status", "selector"))
		var err error
		if s, err = labels.Parse(text); err != nil {
			return "", fmt.Errorf("status of %s selects no pods: %w", name, err)
		}
	}
	if s.Empty() {
		return "", fmt.Errorf("neither spec.selector nor the status of %s selects its pods", name)
	}
	return s.String(), nil
}
