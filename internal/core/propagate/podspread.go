package propagate

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// saySpread notes on b how the template's pods keep away from each other in a member, so that the scheduler, which does
// not see the template, counts the room for them. It is the first pod template that counts, as for the requirements; of
// a template that cannot be read nothing is said.
func saySpread(b workv1alpha2.Binding, template *unstructured.Unstructured) {
	text := ""
	if paths := interpret.PodTemplates(template); len(paths) > 0 &&
		mayspread(fields.Object(template.Object, append(paths[0][:len(paths[0]):len(paths[0])], "spec")...)) {
		if t, err := interpret.PodTemplate(template, paths[0]); err == nil {
			text = capacity.SpreadOf(template.GetNamespace(), t.Labels, &t.Spec).Text()
		}
	}
	annotations := b.GetAnnotations()
	if annotations[wellknown.PodSpreadAnnotation] == text {
		return
	}
	annotations = maps.Clone(annotations)
	if delete(annotations, wellknown.PodSpreadAnnotation); text != "" {
		annotations, _ = merged(annotations, map[string]string{wellknown.PodSpreadAnnotation: text})
	}
	b.SetAnnotations(annotations)
}

// mayspread returns whether a pod's spec is worth reading: most have nothing of the kind.
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
