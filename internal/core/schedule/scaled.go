package schedule

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// SetScaled makes the scheduler keep the distribution of replicas by the members' autoscalers. by is the content of
// wellknown.ScaledByAnnotation. No clusters make it divide the replicas again. The entries of clusters without replicas
// stay.
func SetScaled(b workv1alpha2.Binding, by string, clusters map[string]int32) {
	if clusters == nil {
		fields.PutAnnotation(b, wellknown.ScaledByMembersAnnotation, "")
		fields.PutAnnotation(b, wellknown.ScaledByAnnotation, "")
		return
	}
	all := maps.Clone(clusters)
	has, _ := scaledOf(b)
	for name, n := range has {
		if _, there := all[name]; !there && n == 0 {
			all[name] = 0
		}
	}
	fields.SetAnnotation(b, wellknown.ScaledByMembersAnnotation, text.JSON(all))
	fields.SetAnnotation(b, wellknown.ScaledByAnnotation, by)
}

// ScaledByAutoscalers reports whether autoscalers that policies propagate scale in the members: they are named by kind
// and name, and FederatedHPAs by their name alone.
func ScaledByAutoscalers(b workv1alpha2.Binding) bool {
	return strings.Contains(b.GetAnnotations()[wellknown.ScaledByAnnotation], " ")
}

// SetScaler records whose autoscalers scale in the members, before they have changed any replicas.
func SetScaler(b workv1alpha2.Binding, by string) {
	fields.SetAnnotation(b, wellknown.ScaledByAnnotation, by)
}

// scaledOf returns the content of the annotation; ok is false if it is missing or invalid.
func scaledOf(b workv1alpha2.Binding) (has map[string]int32, ok bool) {
	text, there := b.GetAnnotations()[wellknown.ScaledByMembersAnnotation]
	if !there || json.Unmarshal([]byte(text), &has) != nil || has == nil {
		return nil, false
	}
	return has, true
}

// scaled divides the replicas as the members' autoscalers have. ok is false if their total differs from the wanted
// replicas, if a cluster with replicas is not chosen, if a new cluster must get replicas, or if the run is fresh.
func scaled(b workv1alpha2.Binding, chosen []Candidate) (targets []workv1alpha2.TargetCluster, ok bool) {
	spec := b.BindingSpec()
	has, there := scaledOf(b)
	if !there || fresh(b) || !strategyOf(spec).divided() {
		return nil, false
	}
	weights := make([]Share, len(chosen))
	if strategyOf(spec) == static {
		weights = weigh(spec.Placement.ReplicaScheduling.WeightPreference, chosen)
	}
	var sum int64
	shares := make([]Share, len(chosen))
	for i := range chosen {
		name := chosen[i].Cluster.Name
		n, known := has[name]
		if !known && (strategyOf(spec) != static || weights[i].Weight > 0) {
			return nil, false
		}
		shares[i] = Share{Name: name, Seats: max(n, 0)}
		sum += int64(shares[i].Seats)
		delete(has, name)
	}
	for _, n := range has {
		if n > 0 {
			return nil, false
		}
	}
	if sum != int64(spec.Replicas) {
		return nil, false
	}
	targets, err := seated(spec, shares, chosen, false)
	return targets, err == nil
}

// joined returns the new content of the annotation after a run, with the clusters that were not in it: the next run
// assumes the replicas that they got in this one. Empty leaves it unchanged.
func joined(b workv1alpha2.Binding, chosen []Candidate, targets []workv1alpha2.TargetCluster) string {
	has, ok := scaledOf(b)
	if !ok || !strategyOf(b.BindingSpec()).divided() {
		return ""
	}
	known := len(has)
	got := map[string]int32{}
	for _, t := range targets {
		got[t.Name] = t.Replicas
	}
	for i := range chosen {
		if name := chosen[i].Cluster.Name; !contains(has, name) {
			has[name] = got[name]
		}
	}
	if len(has) == known {
		return ""
	}
	return text.JSON(has)
}

func contains(has map[string]int32, name string) bool { _, there := has[name]; return there }

// moved reports whether the autoscalers of the members have moved replicas between the clusters with replicas: the
// total is unchanged, the distribution is not.
func moved(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	has, ok := scaledOf(b)
	if !ok || !strategyOf(spec).divided() || PartsOf(b) != nil {
		return false
	}
	maps.DeleteFunc(has, func(_ string, n int32) bool { return n <= 0 })
	var sum int64
	for _, n := range has {
		sum += int64(n)
	}
	differs, placed := false, 0
	for _, t := range spec.Clusters {
		if t.Replicas == 0 {
			continue
		}
		placed++
		if !contains(has, t.Name) {
			return false
		}
		differs = differs || has[t.Name] != t.Replicas
	}
	return differs && placed == len(has) && sum == int64(spec.Replicas)
}
