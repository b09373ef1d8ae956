package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// explainScaling lists what scales the template, and why one does not.
func (e *explanation) explainScaling() {
	by := append(e.explainFederated(), e.explainAutoscalers()...)
	if len(by) > 1 && len(e.Autoscalers) > 0 {
		e.find(Attention, "", strings.Join(by, " and ")+" scale it, and undo each other's replicas",
			"delete all but one of them")
	}
}

// explainAutoscalers explains the autoscalers in members that policies propagate, and returns them.
func (e *explanation) explainAutoscalers() (by []string) {
	for _, a := range e.Autoscalers {
		target, ok := execute.TargetOf(a)
		if !ok || target != autoscale.TargetFor(e.Facts.Template) {
			continue
		}
		name, where := a.GetKind()+" "+a.GetName(), "in each cluster"
		if _, claimed := propagate.Claimed(a); !claimed {
			e.find(Attention, "", name+" does not scale it: no policy propagates it",
				"select it in the policy that selects "+e.template.Kind+" "+e.template.Name)
			continue
		}
		if err := fleet.CheckAnnotations(a.GetAnnotations()); err != nil {
			e.find(Attention, "", name+" is not applied as it is now: "+err.Error(), "correct the annotation of "+name)
			recorded := e.Facts.Template.GetAnnotations()[wellknown.ScaledByAnnotation]
			if slices.Contains(strings.Split(recorded, ", "), name) { // members keep it as it was before
				by = append(by, name)
			}
			continue
		}
		by = append(by, name)
		if _, _, divided := fleet.TargetOf(a); divided {
			where = "in all clusters together"
		}
		if bounds, err := fleet.BoundsOf(a); err == nil {
			e.answer.Scaling = append(e.answer.Scaling, fmt.Sprintf(
				"%s: autoscalers in the members decide its replicas, from %d to %s %s", name, bounds.Min,
				text.Count(int(bounds.Max), "replica"), where))
		}
		for _, c := range fields.Objects(a.Object, "status", "conditions") {
			if slices.Contains([]string{"AbleToScale", "ScalingActive", "Ready"}, fields.Text(c, "type")) &&
				fields.Text(c, "status") == "False" && fields.Text(c, "reason") != "ScalingDisabled" {
				e.find(Attention, "", name+" does not scale it: "+fields.Text(c, "message"),
					"see `argosy why "+strings.ToLower(a.GetKind())+" "+a.GetName()+" -n "+a.GetNamespace()+"`")
			}
		}
	}
	slices.Sort(by)
	return by
}

// explainFederated explains the FederatedHPAs that scale the template, and returns them.
func (e *explanation) explainFederated() (by []string) {
	all := slices.Clone(e.Scalers)
	slices.SortFunc(all, func(a, b autoscalingv1alpha1.FederatedHPA) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		f := &all[i]
		ref := f.Spec.ScaleTargetRef
		if f.Namespace != e.template.Namespace || ref.Name != e.template.Name ||
			match.GroupKind(ref.APIVersion, ref.Kind) != e.template.GroupKind() {
			continue
		}
		by = append(by, "FederatedHPA "+f.Name)
		lowest := int32(1)
		if f.Spec.MinReplicas != nil {
			lowest = *f.Spec.MinReplicas
		}
		who := "the hub scales"
		if f.Distributed() {
			who = "autoscalers in the members scale"
		} else {
			e.findScaledMembers(f.Name)
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
	return by
}

// findScaledMembers reports the clusters whose own autoscalers set the replicas, too.
func (e *explanation) findScaledMembers(federatedHPA string) {
	for i := range e.Works {
		cluster, err := names.ClusterOf(e.Works[i].Namespace)
		c := meta.FindStatusCondition(e.Works[i].Status.Conditions, workv1alpha1.WorkScaledByMember)
		if err == nil && c != nil && c.Status == metav1.ConditionTrue {
			e.find(Attention, cluster, cluster+": "+strings.TrimSuffix(c.Message, ".")+", although FederatedHPA "+
				federatedHPA+" scales the workload", "delete one of them")
		}
	}
}
