package why

import (
	"fmt"
	"strings"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
)

// explainService reports clusters where the pods of a StatefulSet have no DNS names because its Service is not there.
func (e *explanation) explainService() {
	b := e.ownBinding()
	if e.Service == nil || b == nil || b.GetDeletionTimestamp() != nil {
		return
	}
	const members = "or create it in the members"
	if !e.Service.There {
		if len(dispatch.Targets(b)) > 0 {
			e.find(Attention, "", fmt.Sprintf(
				"the hub has no Service %s, which spec.serviceName names: the pods have no DNS names", e.Service.Name),
				"create it as a headless Service and propagate it with propagateDeps or a policy, "+members)
		}
		return
	}
	var sent []workv1alpha2.TargetCluster
	if e.Service.Binding != nil {
		sent = dispatch.Targets(e.Service.Binding)
	}
	var without []string
	for _, t := range dispatch.Targets(b) {
		if !workv1alpha2.HasTarget(sent, t.Name) {
			without = append(without, t.Name)
		}
	}
	if len(without) > 0 {
		e.find(Attention, "", fmt.Sprintf("its Service %s is not propagated to %s: the pods there have no DNS names",
			e.Service.Name, strings.Join(without, ", ")),
			"set propagateDeps: true in "+e.holderName()+", or propagate it with a policy, "+members)
	}
}
