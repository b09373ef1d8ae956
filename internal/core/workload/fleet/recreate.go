package fleet

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// podRecheck is the time until the hub looks again for a pod that it did not find.
const podRecheck = time.Minute

// PodOwner returns the controller that the pods of PodsAskedFor must have. It is empty if any will do.
func PodOwner(template *unstructured.Unstructured) (owner, name string) {
	if kind.Facts(template).Divides == kind.DividesNothingButPods {
		return "", ""
	}
	return template.GetKind(), template.GetName()
}

// recreateRequest sends a ContainerRecreateRequest only to clusters that have its pod, because the others reject it. It
// stays in the clusters that got it, because its spec is immutable.
func (f *fleet) recreateRequest() error {
	pod := text(f.Template.Object, "spec", "podName")
	before := split(f.Routed)
	var routed []string
	for _, m := range f.members {
		switch {
		case m.before != nil, slices.Contains(before, m.Cluster), len(before) == 0 && slices.Contains(f.Pods[pod], m.Cluster):
			routed = append(routed, m.Cluster)
		default:
			f.result.Waiting = append(f.result.Waiting, m.Cluster)
		}
	}
	f.result.Routed = strings.Join(unique(routed), ",")
	if len(routed) > 0 {
		return nil
	}
	f.result.RecheckAfter = podRecheck
	where := "not found in any responding cluster"
	if _, allResponded := f.Pods[pod]; allResponded {
		where = "not found in " + strings.Join(unique(f.clusters()), ", ")
	}
	f.addCondition(PodNotFound, "pod %q of spec.podName was %s, so there is nothing to recreate; name a pod that runs in a cluster of the policy", pod, where)
	return nil
}
