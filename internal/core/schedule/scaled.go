package schedule

import (
	"encoding/json"
	"maps"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// ScaledAnnotation on a binding is how many replicas the autoscalers of the members have made there, {"a":3,"b":2}. It is about
// as many replicas as these are together, and says nothing of others.
const ScaledAnnotation = "argosy.io/scaled-by-members"

// SetScaled has the scheduler leave the replicas where the autoscalers of the members put them; nil has it divide them again.
func SetScaled(b workv1alpha2.Binding, clusters map[string]int32) {
	if clusters == nil {
		annotations := maps.Clone(b.GetAnnotations())
		delete(annotations, ScaledAnnotation)
		b.SetAnnotations(annotations)
		return
	}
	raw, err := json.Marshal(clusters)
	if err != nil {
		panic(err) // names and numbers
	}
	annotations := maps.Clone(b.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[ScaledAnnotation] = string(raw)
	b.SetAnnotations(annotations)
}

// scaled divides the replicas as the autoscalers of the members have. ok is false where they have made other replicas than there
// shall be, or some in a cluster that is not chosen, or everything may move.
func scaled(b workv1alpha2.Binding, chosen []Candidate) (targets []workv1alpha2.TargetCluster, ok bool) {
	text, there := b.GetAnnotations()[ScaledAnnotation]
	spec := b.BindingSpec()
	var has map[string]int32
	if !there || fresh(b) || !strategyOf(spec).divided() || json.Unmarshal([]byte(text), &has) != nil {
		return nil, false
	}
	var sum int64
	shares := make([]Share, len(chosen))
	for i := range chosen {
		name := chosen[i].Cluster.Name
		shares[i] = Share{Name: name, Seats: max(has[name], 0)}
		sum += int64(shares[i].Seats)
		delete(has, name)
	}
	if len(has) > 0 || sum != int64(spec.Replicas) {
		return nil, false
	}
	targets, err := seated(spec, shares, chosen, false)
	return targets, err == nil
}
