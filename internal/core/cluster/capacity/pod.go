package capacity

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Pod has the properties of a running or pending pod that affect scheduling.
type Pod struct {
	Namespace, Name string
	node            string // empty for a pod without a node
	requests        []request
	workload        Workload
	waits           *waits // nil for a pod with a node
}

// waits is stored only for a pod without a node.
type waits struct {
	need          *Requirement
	likeness      string
	unschedulable *UnschedulablePod // nil unless the scheduler marked the pod Unschedulable
}

// Workload identifies the controller of a pod. A ReplicaSet of a Deployment or Rollout has the name of that Deployment
// or Rollout.
type Workload struct {
	Namespace, Kind, Name string
}

// templateHashes are the labels whose value is the suffix of the ReplicaSet's name.
var templateHashes = []string{"pod-template-hash", "rollouts-pod-template-hash"}

const replicaSet = "ReplicaSet"

// WorkloadOfPod returns the workload of a pod. The name is empty for a pod without a controller.
func WorkloadOfPod(p *corev1.Pod) Workload {
	of := Workload{Namespace: p.Namespace}
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return of
	}
	of.Kind, of.Name = owner.Kind, owner.Name
	for _, label := range templateHashes {
		if maker, made := strings.CutSuffix(owner.Name, "-"+p.Labels[label]); made && owner.Kind == replicaSet &&
			p.Labels[label] != "" {
			of.Name = maker
		}
	}
	return of
}

// PodOf converts a pod. live is false for a pod that has ended. Init containers, sidecars and overhead count as in the
// scheduler.
func PodOf(p *corev1.Pod) (kept Pod, live bool) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return Pod{}, false
	}
	kept = Pod{Namespace: p.Namespace, Name: p.Name, node: p.Spec.NodeName, workload: WorkloadOfPod(p),
		requests: requestsOf(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true}))}
	spread := SpreadOf(p.Namespace, p.Labels, &p.Spec)
	kept.requests = withPorts(kept.requests, spread.Ports)
	if kept.node != "" {
		return kept, true
	}
	claim := &workv1alpha2.NodeClaim{HardNodeAffinity: requiredAffinity(p), NodeSelector: p.Spec.NodeSelector,
		Tolerations: p.Spec.Tolerations}
	need := newRequirement(nil, claim, p.Namespace, p.Spec.PriorityClassName)
	need.requests = kept.requests
	of := ""
	if need.setSpread(spread, kept.workload); need.spread != nil {
		of = fmt.Sprint(kept.workload, spread.Text())
	}
	kept.waits = &waits{need: need, likeness: likeness(p, kept.requests) + of}
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
			continue
		}
		kept.waits.unschedulable = &UnschedulablePod{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels,
			Since: c.LastTransitionTime.Time}
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
			kept.waits.unschedulable.OwnerKind, kept.waits.unschedulable.OwnerName = owner.Kind, owner.Name
		}
	}
	return kept, true
}
