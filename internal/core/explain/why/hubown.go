package why

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// hubOwn are kinds that the hub itself acts on. They are not propagated to members.
var hubOwn = map[schema.GroupKind]bool{
	{Group: "apps.karmada.io", Kind: "WorkloadRebalancer"}:        true,
	{Group: "autoscaling.karmada.io", Kind: "FederatedHPA"}:       true,
	{Group: "autoscaling.karmada.io", Kind: "CronFederatedHPA"}:   true,
	{Group: "networking.karmada.io", Kind: "MultiClusterIngress"}: true,
	{Group: "networking.karmada.io", Kind: "MultiClusterService"}: true,
}

func (e *explanation) actsOnHub() bool { return hubOwn[e.template.GroupKind()] }

// explainOwn explains an object that the hub itself acts on by its conditions, and returns a summary.
func (e *explanation) explainOwn() string {
	var states []string
	for _, c := range fields.Objects(e.Facts.Template.Object, "status", "conditions") {
		kind, status := fields.Text(c, "type"), fields.Text(c, "status")
		states = append(states, kind+"="+status)
		if status == "True" && kind == networkingv1alpha1.TrafficKept {
			e.find(Attention, "", fields.Text(c, "message"), "")
		}
		if status == "False" && kind != "ScalingLimited" { // which is normal
			why := fields.Text(c, "message")
			if why == "" {
				why = fields.Text(c, "reason")
			}
			e.find(Attention, "", fmt.Sprintf("%s is False: %s", kind, why), "")
		}
	}
	if len(states) == 0 {
		return "acts on the hub"
	}
	return "acts on the hub, " + strings.Join(states, ", ")
}
