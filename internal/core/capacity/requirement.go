package capacity

import (
	"cmp"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Requirement is what one replica asks of a node, and of the quotas of its namespace. It does not change.
type Requirement struct {
	requests    []request
	selector    map[string]string
	affinity    *nodeaffinity.NodeSelector
	hard        *corev1.NodeSelector // what affinity was made of
	impossible  bool                 // the affinity cannot be read: no node matches it
	tolerations []corev1.Toleration

	namespace, priorityClass string

	// of is the workload; empty where that does not matter. spread is how its pods keep away from each other, but for
	// ports; nil where they do not.
	of     Workload
	spread *Spread
}

// Part is a number of equal replicas.
type Part struct {
	Need     *Requirement
	Replicas int64
}

// podsIn is how many pods all parts have once.
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

// keepApart makes it a replica of a workload whose pods keep away from each other. What is of no workload cannot be
// told from others.
func (r *Requirement) keepApart(s Spread, of Workload) {
	if len(s.Apart)+len(s.Even) > 0 && of.Name != "" {
		r.of, r.spread = of, &s
	}
}

// Parts are what a binding asks of each of its clusters: one replica, or of several components all. sets says that it
// is components, of which there is room only for all together.
func Parts(b workv1alpha2.Binding) (parts []Part, sets bool) {
	spec := b.BindingSpec()
	if len(spec.Components) == 0 {
		need := newRequirement(nil, nil, spec.Resource.Namespace, "")
		if r := spec.ReplicaRequirements; r != nil {
			need = newRequirement(r.ResourceRequest, r.NodeClaim, cmp.Or(r.Namespace, spec.Resource.Namespace),
				r.PriorityClassName)
		}
		spread := SpreadNoted(b)
		need.requests = withPorts(need.requests, spread.Ports)
		need.of = WorkloadOf(b)
		need.keepApart(spread, need.of)
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

// PartsOf is Parts for who need not tell sets from replicas.
func PartsOf(b workv1alpha2.Binding) []Part {
	parts, _ := Parts(b)
	return parts
}

// WorkloadOf is what the pods of a binding are of.
func WorkloadOf(b workv1alpha2.Binding) Workload {
	of := b.BindingSpec().Resource
	return Workload{Namespace: of.Namespace, Kind: of.Kind, Name: of.Name}
}

// Tolerates says whether one of the tolerations is for the taint, by core/v1's rule without its numeric operators:
// clusters may have turned these off, and admission refuses them in policies.
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

// likeness is equal for pods that ask for the same.
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
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // it holds nothing that JSON cannot
	}
	return string(text)
}

func requiredAffinity(p *corev1.Pod) *corev1.NodeSelector {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}
