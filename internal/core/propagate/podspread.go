package propagate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// setSpread copies the spread of the template's pods within a member to b, because the scheduler does not see the
// template and needs it to count room. It uses the first pod template, like the resource requests. An unreadable
// template has none.
func setSpread(b workv1alpha2.Binding, template *unstructured.Unstructured) {
	text := ""
	if paths := interpret.PodTemplates(template); len(paths) > 0 &&
		mayspread(fields.Object(template.Object, append(paths[0][:len(paths[0]):len(paths[0])], "spec")...)) {
		if t, err := interpret.PodTemplate(template, paths[0]); err == nil {
			text = capacity.SpreadOf(template.GetNamespace(), t.Labels, &t.Spec).Text()
		}
	}
	fields.PutAnnotation(b, wellknown.PodSpreadAnnotation, text)
}

// mayspread reports whether a pod's spec may have spread settings; most have none and need not be read.
func mayspread(pod map[string]any) bool {
	if pod["affinity"] != nil || pod["topologySpreadConstraints"] != nil {
		return true
	}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range fields.Objects(pod, list) {
			for _, port := range fields.Objects(c, "ports") {
				if port["hostPort"] != nil || fields.Yes(pod, "hostNetwork") {
					return true
				}
			}
		}
	}
	return false
}
