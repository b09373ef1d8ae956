package why

import (
	"cmp"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// explainScaling lists the FederatedHPAs that scale the template, and why one does not.
func (e *explanation) explainScaling() {
	all := slices.Clone(e.Scalers)
	slices.SortFunc(all, func(a, b autoscalingv1alpha1.FederatedHPA) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		f := &all[i]
		ref := f.Spec.ScaleTargetRef
		if f.Namespace != e.template.Namespace || ref.Name != e.template.Name ||
			match.GroupKind(ref.APIVersion, ref.Kind) != e.template.GroupKind() {
			continue
		}
		lowest := int32(1)
		if f.Spec.MinReplicas != nil {
			lowest = *f.Spec.MinReplicas
		}
		who := "the hub scales"
		if f.Distributed() {
			who = "autoscalers in the members scale"
		}
		e.answer.Scaling = append(e.answer.Scaling, fmt.Sprintf("FederatedHPA %s: %s it by load, from %d to %s; %d now",
			f.Name, who, lowest, text.Count(int(f.Spec.MaxReplicas), "replica"), f.Status.CurrentReplicas))
		for _, c := range f.Status.Conditions {
			if c.Type == autoscalingv1alpha1.BoundsSplit && c.Status != corev1.ConditionFalse {
				e.answer.Scaling = append(e.answer.Scaling, fmt.Sprintf("FederatedHPA %s: %s", f.Name, c.Message))
			}
			if c.Status == corev1.ConditionFalse && c.Reason == autoscalingv1alpha1.ReasonFrozen {
				e.find(Waiting, "", fmt.Sprintf("FederatedHPA %s waits: %s", f.Name, c.Message), "")
			} else if c.Status == corev1.ConditionFalse &&
				(c.Type == autoscalingv2.AbleToScale || c.Type == autoscalingv2.ScalingActive ||
					c.Type == autoscalingv1alpha1.BoundsSplit) {
				e.find(Attention, "", fmt.Sprintf("FederatedHPA %s does not scale it: %s", f.Name, c.Message),
					"see the conditions of the FederatedHPA")
			}
		}
	}
}
