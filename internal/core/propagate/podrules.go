package propagate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// setPodRules copies the spread of the template's pods within a member, and what they count in quotas, to b, because
// the scheduler does not see the template and needs them to count room. It uses the first pod template, like the
// resource requests. An unreadable template has none.
func setPodRules(b workv1alpha2.Binding, template *unstructured.Unstructured) {
	spread, use := "", ""
	if path, _ := interpret.FirstPodTemplate(template); path != nil &&
		mayHaveRules(fields.Object(template.Object, append(path[:len(path):len(path)], "spec")...)) {
		if t, err := interpret.PodTemplate(template, path); err == nil {
			spread = capacity.SpreadOf(template.GetNamespace(), t.Labels, &t.Spec).Text()
			use = capacity.QuotaUseOf(&t.Spec).Text()
		}
	}
	fields.PutAnnotation(b, wellknown.PodSpreadAnnotation, spread)
	fields.PutAnnotation(b, wellknown.QuotaUseAnnotation, use)
}

// mayHaveRules reports whether a pod's spec may have such rules. One without need not be read.
func mayHaveRules(pod map[string]any) bool {
	if pod["affinity"] != nil || pod["topologySpreadConstraints"] != nil || pod["activeDeadlineSeconds"] != nil {
		return true
	}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range fields.Objects(pod, list) {
			if fields.Value(c, "resources", "limits") != nil {
				return true
			}
			for _, port := range fields.Objects(c, "ports") {
				if port["hostPort"] != nil || fields.Yes(pod, "hostNetwork") {
					return true
				}
			}
		}
	}
	return false
}
