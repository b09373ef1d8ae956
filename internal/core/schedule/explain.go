package schedule

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Repels returns the taint of the cluster that a Rejection is for; false if it is for something else.
func (s Snapshot) Repels(r Rejection) (corev1.Taint, bool) {
	if m := s.member(r.Cluster); m != nil && r.Reason == ReasonTaint {
		if i := slices.IndexFunc(m.repels, func(x repulsion) bool { return x.text == r.Detail }); i >= 0 {
			return m.repels[i].taint, true
		}
	}
	return corev1.Taint{}, false
}

// Method is how the replicas of a binding are divided.
type Method string

// The methods.
const (
	Everywhere    Method = "Everywhere"    // a template without replicas goes to each chosen cluster
	Duplicated    Method = "Duplicated"    // each cluster gets all replicas
	StaticWeights Method = "StaticWeights" // shares by the weights of the policy
	ByRoom        Method = "ByRoom"        // shares by capacity
	Aggregated    Method = "Aggregated"    // as few clusters as have enough capacity
)

// MethodOf returns how b is divided; empty without a placement.
func MethodOf(b workv1alpha2.Binding) Method {
	if b.BindingSpec().Placement == nil {
		return ""
	}
	switch strategyOf(b.BindingSpec()) {
	case everywhere:
		return Everywhere
	case duplicated:
		return Duplicated
	case dynamic:
		return ByRoom
	case aggregated:
		return Aggregated
	}
	return StaticWeights
}

// Copies returns the warning that each of several clusters runs all replicas, or all components, because users may
// expect that the template's are the total; empty if that is not the case.
func Copies(b workv1alpha2.Binding) string {
	spec := b.BindingSpec()
	n := int64(len(spec.Clusters))
	if n >= 2 && len(spec.Components) > 0 && spec.Placement.DividesReplicas() {
		return fmt.Sprintf("Components are not divided: each of the %d clusters runs all %d; a spread constraint by cluster with maxGroups 1 selects one cluster.",
			n, len(spec.Components))
	}
	if n < 2 || spec.Replicas == 0 || MethodOf(b) != Duplicated {
		return ""
	}
	return fmt.Sprintf("Duplicated: %d×%d, each of the %d clusters runs all %s, %d in all; replicaSchedulingType Divided shares them out.",
		spec.Replicas, n, n, text.Count(int(spec.Replicas), "replica"), int64(spec.Replicas)*n)
}

// Weights returns the weights of the static shares of chosen, in the same order, without seats; nil for another method.
func Weights(b workv1alpha2.Binding, chosen []Candidate) []Share {
	if MethodOf(b) != StaticWeights || b.BindingSpec().Placement.ReplicaScheduling == nil {
		return nil
	}
	return weigh(b.BindingSpec().Placement.ReplicaScheduling.WeightPreference, chosen)
}

// Fresh reports whether a run may move placed replicas.
func Fresh(b workv1alpha2.Binding) bool { return fresh(b) }
