// Package schedule decides which member clusters get a template, how many replicas each gets, and why. It reads a
// binding and a Snapshot of the fleet. Callers ask estimators, write the result and queue bindings.
//
// A run has these steps: Due (is there anything to decide?) → filter.go (which clusters are feasible) → score.go (which
// are preferred) → spread.go, selection.go (which are used) → divide.go, apart.go (how many replicas each).
package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
)

// PlacedBy reports whether the scheduler of that name places the binding: a policy or component made it, it has a
// placement, names this scheduler (an empty name is the default scheduler), and is neither suspended nor being deleted.
func PlacedBy(b workv1alpha2.Binding, schedulerName string) bool {
	spec, labels := b.BindingSpec(), b.GetLabels()
	name := spec.SchedulerName
	if name == "" {
		name = policyv1alpha1.DefaultSchedulerName
	}
	claimed := labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" ||
		labels[workv1alpha2.BindingManagedByLabel] != ""
	suspended := spec.Suspension != nil && spec.Suspension.Scheduling != nil && *spec.Suspension.Scheduling
	return spec.Placement != nil && name == schedulerName && claimed && !suspended && b.GetDeletionTimestamp() == nil
}

// Result is the decision of a run.
type Result struct {
	// Clusters are the clusters to write, sorted by name. Write them after a failed run too. With a FitError they are
	// empty; with any other error they are the current clusters without those that left the fleet.
	Clusters []workv1alpha2.TargetCluster
	// AffinityName is the term of clusterAffinities in use; empty without terms, or when none could be satisfied.
	AffinityName string
	// Scaled is the new content of wellknown.ScaledByMembersAnnotation if clusters have joined; empty leaves it unchanged.
	Scaled string
	// Candidates passed all filters, best first where ranking mattered, with the score and room that decided.
	Candidates []Candidate
	// Rejections are the clusters that did not, with the reason, sorted by cluster.
	Rejections Rejections
}

// Apply writes the result into b and, unless the run failed, the placement that it is for. The annotations of b change
// in place.
func (r Result) Apply(b workv1alpha2.Binding, failure error) {
	b.BindingSpec().Clusters = r.Clusters
	if failure != nil {
		return
	}
	annotations := b.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[policyv1alpha1.AppliedPlacementAnnotation] = AppliedPlacement(b.BindingSpec().Placement)
	if r.Scaled != "" {
		annotations[wellknown.ScaledByMembersAnnotation] = r.Scaled
	}
	b.SetAnnotations(annotations)
}

// Schedule decides a whole run. It tries affinity terms in order until one can be satisfied, starting at the one in use
// (a fresh run starts at the first). The error is that of the first term; Condition turns it into a condition.
func Schedule(b workv1alpha2.Binding, s Snapshot, room Capacity) (Result, error) {
	spec := b.BindingSpec()
	if spec.Placement == nil {
		return Result{Clusters: s.present(spec.Clusters)}, errNoPlacement
	}
	var failed Result
	var failure error
	var help []string
	for i := currentTerm(b); i < terms(spec.Placement); i++ {
		r, err := attempt(b, s, room, i)
		if err == nil {
			r.AffinityName = termOf(spec.Placement, i).name
			return r, nil
		}
		if failure == nil {
			failed, failure = r, err
		}
		help = append(help, fmt.Sprintf("%s: %s", termOf(spec.Placement, i).name, Help(err)))
	}
	if len(help) > 1 {
		failure = &termsError{failure, help}
	}
	var unfit *FitError
	if !errors.As(failure, &unfit) {
		failed.Clusters = s.present(spec.Clusters)
	}
	return failed, failure
}

// attempt returns a run with affinity term t.
func attempt(b workv1alpha2.Binding, s Snapshot, room Capacity, t int) (Result, error) {
	candidates, rejections := feasible(b, s, t)
	r := Result{Candidates: candidates, Rejections: rejections}
	if len(candidates) == 0 {
		e := &FitError{Clusters: s.Len(), Rejections: rejections}
		if !slices.ContainsFunc(rejections, func(r Rejection) bool { return r.Reason != ReasonAffinity }) {
			e.mismatch = mismatch(termOf(b.BindingSpec().Placement, t).affinity, s)
		}
		return r, e
	}
	if err := weightless(b.BindingSpec(), s); err != nil {
		return r, err
	}
	var err error
	// The candidates are a copy, so they can be ranked in place.
	var chosen []Candidate
	if parts := PartsOf(b); parts != nil {
		r.Clusters, chosen, err = parts.place(b, candidates, rejections, s, room)
	} else {
		r.Clusters, chosen, err = decide(b, candidates, room)
	}
	var short *UnschedulableError
	if errors.As(err, &short) {
		short.Apart = capacity.SpreadOfBinding(b).String()
	}
	if err == nil {
		r.Scaled = joined(b, chosen, r.Clusters)
	}
	if err == nil && s.settings.KeepEmpty && strategyOf(b.BindingSpec()).divided() {
		r.Clusters = withEmpty(r.Clusters, chosen)
	}
	return r, err
}

// Feasible returns the clusters that may take the binding by its current affinity term, sorted by name, and those that
// may not.
func Feasible(b workv1alpha2.Binding, s Snapshot) ([]Candidate, Rejections) {
	placement := b.BindingSpec().Placement
	if placement == nil {
		return nil, nil
	}
	return feasible(b, s, currentTerm(b))
}

// decide chooses among candidates, in any order, and assigns replicas. It may change candidates, and also returns the
// clusters that it divided among. It calls room only if NeedsRoom.
func decide(b workv1alpha2.Binding, candidates []Candidate,
	room Capacity) ([]workv1alpha2.TargetCluster, []Candidate, error) {
	if len(candidates) == 0 {
		return nil, nil, errNoClusters
	}
	spec := b.BindingSpec()
	if NeedsRoom(b) {
		estimate(spec, candidates, room)
		if fresh(b) {
			stay(candidates)
		}
	}
	if len(spec.Components) > 0 && NeedsRoom(b) {
		if candidates = withRoomForSet(candidates); len(candidates) == 0 {
			return nil, nil, &UnschedulableError{Wanted: 1}
		}
	}
	anew := fresh(b)
	if undivided(spec) && strategyFor(spec.Placement) == static {
		applied := b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
		anew = anew || !samePlacement(applied, spec.Placement)
	}
	chosen, err := spread(spec, candidates, anew)
	if err != nil {
		return nil, nil, err
	}
	targets, err := divide(b, chosen)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(targets, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
	return targets, chosen, nil
}

// withEmpty returns the targets and, without replicas, the chosen that are none.
func withEmpty(targets []workv1alpha2.TargetCluster, chosen []Candidate) []workv1alpha2.TargetCluster {
	all := uniformTargets(chosen, 0)
	byName := func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(all, byName)
	for _, t := range targets {
		if i, ok := slices.BinarySearchFunc(all, t, byName); ok {
			all[i] = t
		}
	}
	return all
}

// terms returns the number of affinity terms of a placement; without a list there is one, unnamed.
func terms(p *policyv1alpha1.Placement) int { return max(1, len(p.ClusterAffinities)) }

// term is an affinity term; a nil affinity allows every cluster.
type term struct {
	name     string
	affinity *policyv1alpha1.ClusterAffinity
	overflow []policyv1alpha1.OverflowAffinity
}

// termOf returns the i-th affinity term. Only replicas shared out by room can flow over.
func termOf(p *policyv1alpha1.Placement, i int) term {
	if len(p.ClusterAffinities) == 0 {
		return term{affinity: p.ClusterAffinity}
	}
	t := &p.ClusterAffinities[i]
	return term{t.AffinityName, &t.ClusterAffinity, t.OverflowAffinities}
}

// currentTerm returns the first term of a run: the one in use, or the first if there is none or the run is fresh.
func currentTerm(b workv1alpha2.Binding) int {
	if fresh(b) {
		return 0
	}
	return max(0, observedTerm(b))
}

// observedTerm returns the position of the term in use; -1 if the placement has no term of that name.
func observedTerm(b workv1alpha2.Binding) int {
	observed := b.BindingStatus().SchedulerObservedAffinityName
	return slices.IndexFunc(b.BindingSpec().Placement.ClusterAffinities,
		func(t policyv1alpha1.ClusterAffinityTerm) bool { return t.AffinityName == observed })
}

// fresh reports whether a run may move placed replicas: it was requested after the last run, or no placement is
// recorded since the request, see KeepRequest. A binding that was created with clusters counts as placed at its
// creation, even before the confirmation.
func fresh(b workv1alpha2.Binding) bool {
	asked, last := b.BindingSpec().RescheduleTriggeredAt, b.BindingStatus().LastScheduledTime
	if last == nil {
		created := b.GetCreationTimestamp()
		last = &created
	}
	_, recorded := b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	return asked != nil && (asked.After(last.Time) || !recorded)
}

// KeepRequest removes the record of the placement of b if its request for a fresh run is not later than its last run,
// which was not for that request: times of the API have whole seconds, and a request may be seen late. The fresh run
// records its placement again.
func KeepRequest(b workv1alpha2.Binding) {
	if !fresh(b) {
		annotations := b.GetAnnotations()
		delete(annotations, policyv1alpha1.AppliedPlacementAnnotation)
		b.SetAnnotations(annotations)
	}
}

// strategy is how replicas are divided.
type strategy int

const (
	// everywhere: a template without replicas goes to each chosen cluster.
	everywhere strategy = iota
	// duplicated: each cluster gets all replicas.
	duplicated
	// static: shares by weights of the policy.
	static
	// dynamic: shares by capacity.
	dynamic
	// aggregated: as few clusters as have enough capacity.
	aggregated
)

// strategyOf returns the strategy of a placement that is not nil. A template with several components has no single
// number of replicas to divide.
func strategyOf(spec *workv1alpha2.ResourceBindingSpec) strategy {
	if len(spec.Components) > 0 || spec.Replicas == 0 && spec.ReplicaRequirements == nil {
		return everywhere
	}
	return strategyFor(spec.Placement)
}

// strategyFor returns the strategy of a placement for workloads.
func strategyFor(p *policyv1alpha1.Placement) strategy {
	scheduling := p.ReplicaScheduling
	switch {
	case !p.DividesReplicas():
		return duplicated
	case scheduling.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return aggregated
	case scheduling.WeightPreference != nil && scheduling.WeightPreference.DynamicWeight != "":
		return dynamic
	}
	return static
}

// besideReplicas reports whether a template without replicas has a policy that divides those of workloads. It goes
// wherever such replicas may be, as far as spread constraints allow.
func besideReplicas(spec *workv1alpha2.ResourceBindingSpec) bool {
	return strategyOf(spec) == everywhere && len(spec.Components) == 0 && spec.Placement.DividesReplicas()
}

// undivided reports whether a policy that divides replicas, without spread constraints, selects the clusters for the
// components of a workload. Clusters that have them keep them, and clusters that join get none. If none has them, one
// with capacity gets them or, with static weights and after a change of these, each cluster.
func undivided(spec *workv1alpha2.ResourceBindingSpec) bool {
	return len(spec.Components) > 0 && !spreads(spec) && spec.Placement.DividesReplicas()
}

// byRoom reports whether shares depend on what clusters have room for.
func (s strategy) byRoom() bool { return s == dynamic || s == aggregated }

// divided reports whether the clusters share the replicas.
func (s strategy) divided() bool { return s == static || s.byRoom() }

// SharedByRoom reports whether replicas are divided by the capacity of clusters: dynamic weights, or Aggregated.
func SharedByRoom(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Placement != nil && strategyOf(spec).byRoom()
}

// Divided reports whether clusters share the replicas of a placement that is not nil.
func Divided(spec *workv1alpha2.ResourceBindingSpec) bool {
	return spec.Placement != nil && strategyOf(spec).divided()
}
