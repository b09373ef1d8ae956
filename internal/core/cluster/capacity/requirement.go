package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Requirement has the demands of one replica on nodes and on the quotas of its namespace. It is immutable.
type Requirement struct {
	requests    []request
	selector    map[string]string
	affinity    *nodeaffinity.NodeSelector
	hard        *corev1.NodeSelector // the source of affinity
	impossible  bool                 // the affinity is invalid: no node matches
	tolerations []corev1.Toleration

	namespace, priorityClass string
	// limits count only in quotas, as limits.cpu. terminating is true for pods with a deadline.
	limits      []request
	terminating bool

	// of is the workload, or empty if it does not matter. spread has the spread rules other than host ports; nil without
	// any.
	of     Workload
	spread *Spread
}

// Part is a number of equal replicas.
type Part struct {
	Need     *Requirement
	Replicas int64
}

// podsIn returns the number of pods in one set of all parts.
func podsIn(parts []Part) (pods int64) {
	for _, p := range parts {
		pods += p.Replicas
	}
	return pods
}

func newRequirement(requests corev1.ResourceList, claim *workv1alpha2.NodeClaim, namespace,
	priorityClass string) *Requirement {
	r := &Requirement{requests: requestsOf(requests), namespace: namespace, priorityClass: priorityClass}
	if claim == nil {
		return r
	}
	r.selector, r.tolerations = claim.NodeSelector, claim.Tolerations
	if claim.HardNodeAffinity != nil {
		var err error
		r.hard = claim.HardNodeAffinity
		r.affinity, err = nodeaffinity.NewNodeSelector(claim.HardNodeAffinity)
		r.impossible = err != nil
	}
	return r
}

// setSpread sets the spread rules. Without a workload the rules have no pods to refer to and are ignored.
func (r *Requirement) setSpread(s Spread, of Workload) {
	if len(s.Apart)+len(s.Even) > 0 && of.Name != "" {
		r.of, r.spread = of, &s
	}
}

// Parts returns what a binding requires in each cluster: one replica, or all its components. sets is true for
// components, which must fit together.
func Parts(b workv1alpha2.Binding) (parts []Part, sets bool) {
	spec := b.BindingSpec()
	if len(spec.Components) == 0 {
		need := newRequirement(nil, nil, spec.Resource.Namespace, "")
		if r := spec.ReplicaRequirements; r != nil {
			need = newRequirement(r.ResourceRequest, r.NodeClaim, cmp.Or(r.Namespace, spec.Resource.Namespace),
				r.PriorityClassName)
		}
		spread := SpreadOfBinding(b)
		need.requests = withPorts(need.requests, spread.Ports)
		need.setQuotaUse(QuotaUseOfBinding(b))
		need.of = WorkloadOf(b)
		need.setSpread(spread, need.of)
		return []Part{{need, 1}}, false
	}
	for i := range spec.Components {
		c := &spec.Components[i]
		part := Part{Replicas: int64(max(0, c.Replicas))}
		if r := c.ReplicaRequirements; r != nil {
			part.Need = newRequirement(r.ResourceRequest, r.NodeClaim, spec.Resource.Namespace, r.PriorityClassName)
		} else {
			part.Need = newRequirement(nil, nil, spec.Resource.Namespace, "")
		}
		parts = append(parts, part)
	}
	return parts, true
}

// PartsOf returns only the parts of Parts.
func PartsOf(b workv1alpha2.Binding) []Part {
	parts, _ := Parts(b)
	return parts
}

func WorkloadOf(b workv1alpha2.Binding) Workload {
	of := b.BindingSpec().Resource
	return Workload{Namespace: of.Namespace, Kind: of.Kind, Name: of.Name}
}

// Tolerates reports whether a toleration matches the taint. It ignores the numeric operators, which clusters may
// disable and admission refuses in policies.
func Tolerates(tolerations []corev1.Toleration, taint corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			return false
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			return t.Value == taint.Value
		case corev1.TolerationOpExists:
			return true
		}
		return false
	})
}

// likeness is equal for pods with equal requirements.
func likeness(p *corev1.Pod, requests []request) string {
	type asked struct {
		Requests    []string             `json:"r"`
		Amounts     []int64              `json:"a"`
		Selector    map[string]string    `json:"s,omitempty"`
		Affinity    *corev1.NodeSelector `json:"n,omitempty"`
		Tolerations []corev1.Toleration  `json:"t,omitempty"`
		Priority    string               `json:"p,omitempty"`
	}
	a := asked{Selector: p.Spec.NodeSelector, Affinity: requiredAffinity(p), Tolerations: p.Spec.Tolerations,
		Priority: p.Spec.PriorityClassName}
	for _, r := range requests {
		a.Requests, a.Amounts = append(a.Requests, string(r.name)), append(a.Amounts, r.amount)
	}
	return text.JSON(a)
}

func requiredAffinity(p *corev1.Pod) *corev1.NodeSelector {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}
