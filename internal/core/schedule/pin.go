package schedule

import (
	"encoding/json"
	"maps"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Pin says in which clusters replicas go when there shall be fewer, because pods there were named to go: before any
// weight counts. It is about one change, and says nothing of later ones.
type Pin struct {
	// From and To are the replicas of all clusters before and after.
	From int32 `json:"from"`
	To   int32 `json:"to"`
	// Clusters are the replicas that go, by cluster; together no more than From-To.
	Clusters map[string]int32 `json:"clusters"`
}

func (p Pin) String() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and names
	}
	return string(raw)
}

// pinned divides fewer replicas than are placed where a Pin says which go first: the rest goes in proportion to what is
// left. ok is false where no pin is about this run: none is there, or it is about other replicas or clusters, or
// everything may move.
func pinned(b workv1alpha2.Binding, chosen []Candidate) (targets []workv1alpha2.TargetCluster, ok bool) {
	text, there := b.GetAnnotations()[wellknown.PinnedScaleDownAnnotation]
	spec := b.BindingSpec()
	var p Pin
	if !there || fresh(b) || !strategyOf(spec).divided() || json.Unmarshal([]byte(text), &p) != nil ||
		p.To != spec.Replicas {
		return nil, false
	}
	shares := make([]Share, len(chosen))
	var placed, left int64
	used := 0
	for i := range chosen {
		name, has := chosen[i].Cluster.Name, int64(chosen[i].Assigned)
		leave, named := p.Clusters[name]
		if named {
			used++
		}
		if leave < 0 || int64(leave) > has {
			return nil, false
		}
		placed += has
		shares[i] = Share{Name: name, Weight: has - int64(leave)}
		left += shares[i].Weight
	}
	if placed != int64(p.From) || used != len(p.Clusters) || left < int64(p.To) {
		return nil, false
	}
	// As many seats as weights leave all where they are, fewer none with more than it had (see divideByRoom).
	Apportion(p.To, shares, spec.Resource.UID)
	targets, err := seated(spec, shares, chosen, false)
	return targets, err == nil
}

// SetPin has the replicas that leave b leave these clusters first; none of them takes away the Pin of an earlier
// change.
func SetPin(b workv1alpha2.Binding, clusters map[string]int32) {
	annotations := maps.Clone(b.GetAnnotations())
	delete(annotations, wellknown.PinnedScaleDownAnnotation)
	if len(clusters) > 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[wellknown.PinnedScaleDownAnnotation] = Pin{From: Placed(b.BindingSpec()), To: b.BindingSpec().Replicas,
			Clusters: clusters}.String()
	}
	b.SetAnnotations(annotations)
}

// Placed are the replicas that a binding's clusters have together.
func Placed(spec *workv1alpha2.ResourceBindingSpec) int32 {
	var n int32
	for i := range spec.Clusters {
		n += spec.Clusters[i].Replicas
	}
	return n
}
