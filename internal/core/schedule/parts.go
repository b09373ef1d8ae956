package schedule

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Parts are the subsets of a template that name their clusters themselves. The policy still decides which clusters are
// allowed, but capacity and spread constraints do not apply to parts. Their placement is in the components of the
// binding's clusters.
type Parts struct {
	// Subsets in the order of the template; their names are unique.
	Subsets []Part `json:"subsets"`
	// Rest: the template also has subsets that name no clusters. The policy divides the replicas that the parts leave for
	// them.
	Rest bool `json:"rest,omitempty"`
	// Fault is why they cannot be placed; empty if they can be.
	Fault string `json:"fault,omitempty"`
}

// Part is one of these subsets.
type Part struct {
	Name string `json:"name"`
	// Replicas over all of its clusters.
	Replicas int32 `json:"replicas"`
	// ClusterAffinity selects its clusters.
	ClusterAffinity policyv1alpha1.ClusterAffinity `json:"clusterAffinity"`
}

func (p Parts) String() string { return text.JSON(p) }

// text returns the value of the annotation; empty for nil.
func (p *Parts) text() string {
	if p == nil {
		return ""
	}
	return p.String()
}

// SetParts records the parts of the template on b; nil removes them.
func SetParts(b workv1alpha2.Binding, p *Parts) {
	fields.PutAnnotation(b, wellknown.SubsetClustersAnnotation, p.text())
}

// PartsOf returns the parts recorded on b; nil if it has none.
func PartsOf(b workv1alpha2.Binding) *Parts {
	text := b.GetAnnotations()[wellknown.SubsetClustersAnnotation]
	if text == "" {
		return nil
	}
	p := &Parts{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		p = &Parts{Fault: fmt.Sprintf("the annotation %s of the binding cannot be read: %v",
			wellknown.SubsetClustersAnnotation, err)}
	}
	return p
}

// Given returns the replicas of the parts of b in a cluster, by name, including parts with 0 replicas.
func Given(t workv1alpha2.TargetCluster) map[string]int32 {
	given := make(map[string]int32, len(t.Components))
	for _, c := range t.Components {
		given[c.Name] = c.Replicas
	}
	return given
}

func sumOf(components []workv1alpha2.TargetComponent) (n int32) {
	for _, c := range components {
		n += c.Replicas
	}
	return n
}

// fit reports whether the targets have the components of the parts, and no others; nil parts need none.
func (p *Parts) fit(targets []workv1alpha2.TargetCluster) bool {
	if p == nil {
		return !slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return len(t.Components) > 0 })
	}
	wanted := make(map[string]int64, len(p.Subsets))
	for _, s := range p.Subsets {
		wanted[s.Name] = int64(s.Replicas)
	}
	for i := range targets {
		for _, c := range targets[i].Components {
			if _, known := wanted[c.Name]; !known {
				return false
			}
			wanted[c.Name] -= int64(c.Replicas)
		}
		if !p.Rest && targets[i].Replicas != sumOf(targets[i].Components) {
			return false
		}
	}
	for _, left := range wanted {
		if left != 0 {
			return false
		}
	}
	return p.Fault == ""
}

// Noted reports whether b has the parts p.
func Noted(b workv1alpha2.Binding, p *Parts) bool {
	return b.GetAnnotations()[wellknown.SubsetClustersAnnotation] == p.text()
}

// Settled reports whether b has the parts p, and its clusters have the replicas of the parts. If not, b is about to be
// placed, or cannot be.
func Settled(b workv1alpha2.Binding, p *Parts) bool {
	return Noted(b, p) && (p == nil || p.fit(b.BindingSpec().Clusters))
}

// allowed reports whether each part is only in clusters that it names.
func (p *Parts) allowed(targets []workv1alpha2.TargetCluster, s Snapshot) bool {
	if p == nil {
		return true
	}
	for i := range targets {
		m := s.member(targets[i].Name)
		given := Given(targets[i])
		for k := range p.Subsets {
			if _, here := given[p.Subsets[k].Name]; here && (m == nil || !match.Affinity(&p.Subsets[k].ClusterAffinity,
				m.cluster)) {
				return false
			}
		}
	}
	return true
}

// affected reports whether a part selects a cluster now that it did not select, or the other way round. Nil is no
// cluster.
func (p *Parts) affected(was, is *member) bool {
	if p == nil {
		return false
	}
	means := func(a *policyv1alpha1.ClusterAffinity, m *member) bool {
		return m != nil && match.Affinity(a, m.cluster)
	}
	return slices.ContainsFunc(p.Subsets, func(s Part) bool {
		return means(&s.ClusterAffinity, was) != means(&s.ClusterAffinity, is)
	})
}

// PartError means that the parts of a template cannot be placed in the clusters that it names. Nothing is moved; only a
// change of the template, the policy or the fleet helps.
type PartError struct{ Text, Hint string }

// Error returns the message of the condition.
func (e *PartError) Error() string { return e.Text }

// Help returns what to change.
func (e *PartError) Help() string { return e.Hint }

// place assigns each part to the feasible clusters that it names, by the static weights of the policy or evenly, and
// divides the rest by the policy. Clusters without replicas are left out. It also returns the clusters that were chosen
// for the rest.
func (p *Parts) place(b workv1alpha2.Binding, candidates []Candidate, rejections Rejections, s Snapshot,
	room Capacity) (targets []workv1alpha2.TargetCluster, chosen []Candidate, err error) {
	spec := b.BindingSpec()
	if p.Fault != "" {
		return nil, nil, &PartError{Text: p.Fault, Hint: "correct the subsets of the template"}
	}
	// 1. Place the parts.
	of := map[string][]workv1alpha2.TargetComponent{}
	rest := spec.Replicas
	for k := range p.Subsets {
		part := &p.Subsets[k]
		var named []Candidate
		for _, c := range candidates {
			if match.Affinity(&part.ClusterAffinity, c.Cluster) {
				named = append(named, c)
			}
		}
		if len(named) == 0 && part.Replicas > 0 {
			return nil, nil, part.homeless(rejections, s)
		}
		shares := weigh(spec.Placement.ReplicaScheduling.WeightPreference, named)
		Apportion(part.Replicas, shares, spec.Resource.UID)
		for _, share := range shares {
			of[share.Name] = append(of[share.Name], workv1alpha2.TargetComponent{Name: part.Name, Replicas: share.Seats})
		}
		rest -= part.Replicas
	}
	// 2. Place the rest, on a binding without the parts.
	if p.Rest && rest >= 0 && (rest > 0 || s.settings.KeepEmpty) {
		if targets, chosen, err = p.placeRest(b, rest, candidates, of, room); err != nil {
			return nil, nil, err
		}
	}
	// 3. Combine both.
	replicas := map[string]int32{}
	for _, t := range targets {
		replicas[t.Name] = t.Replicas
	}
	for name, components := range of {
		replicas[name] += sumOf(components)
	}
	targets = nil
	for _, name := range slices.Sorted(maps.Keys(replicas)) {
		if replicas[name] > 0 {
			targets = append(targets, workv1alpha2.TargetCluster{Name: name, Replicas: replicas[name], Components: of[name]})
		}
	}
	return targets, chosen, nil
}

// rest returns spec without the parts; spec itself where there are none.
func (p *Parts) rest(spec *workv1alpha2.ResourceBindingSpec) *workv1alpha2.ResourceBindingSpec {
	if p == nil {
		return spec
	}
	out := *spec
	for _, s := range p.Subsets {
		out.Replicas -= s.Replicas
	}
	out.Clusters = slices.Clone(spec.Clusters)
	for i := range out.Clusters {
		t := &out.Clusters[i]
		t.Replicas, t.Components = t.Replicas-sumOf(t.Components), nil
	}
	return &out
}

// placeRest divides what the parts leave. The parts use capacity too.
func (p *Parts) placeRest(b workv1alpha2.Binding, rest int32, candidates []Candidate,
	of map[string][]workv1alpha2.TargetComponent, room Capacity) ([]workv1alpha2.TargetCluster, []Candidate, error) {
	alone, had := b.DeepCopyObject().(workv1alpha2.Binding), map[string]int32{}
	for _, t := range b.BindingSpec().Clusters {
		had[t.Name] = sumOf(t.Components)
	}
	*alone.BindingSpec() = *p.rest(alone.BindingSpec())
	alone.BindingSpec().Replicas = rest
	candidates = slices.Clone(candidates)
	for i := range candidates {
		candidates[i].Assigned = max(0, candidates[i].Assigned-had[candidates[i].Cluster.Name])
	}
	left := room
	if room != nil {
		left = func(cluster string) (int32, bool) {
			n, known := room(cluster)
			if more := sumOf(of[cluster]) - had[cluster]; more > 0 && n != math.MaxInt32 {
				n = max(0, n-more)
			}
			return n, known
		}
	}
	return decide(alone, candidates, left)
}

// homeless returns why no cluster of a part is feasible.
func (part *Part) homeless(rejections Rejections, s Snapshot) error {
	var refused, hints []string
	for _, r := range rejections {
		m := s.member(r.Cluster)
		if m == nil || !match.Affinity(&part.ClusterAffinity, m.cluster) {
			continue
		}
		refused = append(refused, fmt.Sprintf("%s: %s", r.Cluster, r.Text()))
		if hint := r.Remedy; hint != "" {
			hints = append(hints, fmt.Sprintf("for %s: %s", r.Cluster, hint))
		} else if r.Reason == ReasonAffinity {
			hints = append(hints, fmt.Sprintf("let the policy match %s", r.Cluster))
		}
	}
	if len(refused) == 0 {
		e := &PartError{Text: fmt.Sprintf("subset %q is not scheduled to any cluster: its clusterAffinity matches none",
			part.Name)}
		e.Hint = mismatch(&part.ClusterAffinity, s)
		if e.Hint == "" {
			e.Hint = "correct the clusterAffinity of the subset, or join a matching cluster"
		}
		return e
	}
	const shown = 3
	hints = append(hints[:min(len(hints), shown)], "or name other clusters in the subset's clusterAffinity")
	return &PartError{
		Text: fmt.Sprintf("subset %q is not scheduled to any cluster: none that its clusterAffinity selects fits (%s)",
			part.Name, text.Lines(refused, shown)),
		Hint: strings.Join(hints, "; "),
	}
}
