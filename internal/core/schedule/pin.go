package schedule

import (
	"encoding/json"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Pin records which clusters lose replicas in a scale-down, because pods there were named for deletion. It is applied
// before weights, and only to one change.
type Pin struct {
	// From and To are the replicas of all clusters before and after.
	From int32 `json:"from"`
	To   int32 `json:"to"`
	// Clusters are the replicas to remove, by cluster; together at most From-To.
	Clusters map[string]int32 `json:"clusters"`
}

func (p Pin) String() string { return text.JSON(p) }

// pinned divides a scale-down for which there is a Pin: after the pinned replicas, the others are removed in
// proportion. ok is false if no pin applies: there is none, it is for other replicas or clusters, or the run is fresh.
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

// SetPin records that a scale-down of b removes replicas in these clusters first; no clusters removes the Pin of an
// earlier change.
func SetPin(b workv1alpha2.Binding, clusters map[string]int32) {
	value := ""
	if len(clusters) > 0 {
		value = Pin{From: Placed(b.BindingSpec()), To: b.BindingSpec().Replicas, Clusters: clusters}.String()
	}
	fields.PutAnnotation(b, wellknown.PinnedScaleDownAnnotation, value)
}

// Placed returns the replicas that a binding's clusters have together.
func Placed(spec *workv1alpha2.ResourceBindingSpec) int32 {
	var n int32
	for i := range spec.Clusters {
		n += spec.Clusters[i].Replicas
	}
	return n
}
