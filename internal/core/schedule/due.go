package schedule

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Reason is why a binding is due, for people.
type Reason string

// The reasons, in the order of the checks.
const (
	NeverScheduled    Reason = "the binding has not been scheduled yet"
	PlacementChanged  Reason = "the placement changed"
	RescheduleAsked   Reason = "a rescheduling was requested"
	ReplicasChanged   Reason = "the replicas changed"
	ScaledElsewhere   Reason = "the autoscalers of the members moved replicas"
	SubsetsChanged    Reason = "subsets with a clusterAffinity changed, or their clusters changed"
	TargetLeft        Reason = "a target cluster was removed"
	NotYetSuccessful  Reason = "the last scheduling attempt failed or was not recorded"
	AffinityRemoved   Reason = "the affinity term in use was removed"
	TargetUnwanted    Reason = "a target cluster no longer matches the cluster affinity"
	SpreadBroken      Reason = "the target clusters no longer satisfy the spread constraints"
	CandidatesChanged Reason = "different clusters fit now"
	notDue            Reason = ""
)

// Due reports whether a run could change anything, and why. After a successful run whose result, applied placement and
// condition were written, it returns false until the binding or the fleet changes in a way that matters. After a failed
// run it keeps returning true: another run gives the same answer, which is not written again, or a better one. New
// clusters do not make divided replicas due: placed replicas do not move without need.
func Due(b workv1alpha2.Binding, s Snapshot) (Reason, bool) {
	reason := due(b, s)
	return reason, reason != notDue
}

// NeverPlaced reports whether b has no clusters because no run has placed it yet. A binding that was recreated after a
// deletion may be in this state for a moment, or as long as nothing fits. It does not mean that anything should be
// removed.
func NeverPlaced(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	return spec.Placement != nil && len(spec.Clusters) == 0 && b.BindingStatus().LastScheduledTime == nil
}

func due(b workv1alpha2.Binding, s Snapshot) Reason {
	spec, status := b.BindingSpec(), b.BindingStatus()
	if spec.Placement == nil {
		return notDue
	}
	applied, ok := b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation]
	switch {
	case !ok && fresh(b):
		return RescheduleAsked
	case !ok:
		return NeverScheduled
	case !samePlacement(applied, spec.Placement):
		return PlacementChanged
	case fresh(b):
		return RescheduleAsked
	case !replicasFit(spec):
		return ReplicasChanged
	case moved(b):
		return ScaledElsewhere
	case strategyOf(spec).divided() && (!PartsOf(b).fit(spec.Clusters) || !PartsOf(b).allowed(spec.Clusters, s)):
		return SubsetsChanged
	case slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return s.member(t.Name) == nil }):
		return TargetLeft
	case !meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.Scheduled):
		return NotYetSuccessful
	case len(spec.Placement.ClusterAffinities) > 0 && observedTerm(b) < 0:
		return AffinityRemoved
	}
	if strategyOf(spec).divided() {
		q := newQuestion(spec, currentTerm(b), s.settings.Plugins)
		for i := range spec.Clusters {
			if q.rejectByAffinity(s.member(spec.Clusters[i].Name), true).refuses() {
				return TargetUnwanted
			}
		}
		if !satisfiesSpread(PartsOf(b).rest(spec), s) {
			return SpreadBroken
		}
		return notDue
	}
	candidates, _ := feasible(b, s, currentTerm(b))
	for i := range candidates {
		// What is placed may stay, whatever a run for another reason would prefer.
		candidates[i].Score = clusterLocality(candidates[i].placed)
	}
	if !settled(spec, candidates) {
		return CandidatesChanged
	}
	return notDue
}

// settled reports whether a run would choose the current targets again: the number matches, and all are candidates.
// Clusters with the template rank before others, so without groups a run chooses them.
func settled(spec *workv1alpha2.ResourceBindingSpec, candidates []Candidate) bool {
	var here int
	for i := range candidates {
		if candidates[i].Score == maxScore {
			here++
		}
	}
	if here != len(spec.Clusters) {
		return false
	}
	if !spreads(spec) {
		return here == len(candidates) || undivided(spec) && here > 0
	}
	b := boundsOf(spec.Placement)
	if len(b.groupings) == 0 && !besideReplicas(spec) {
		return here == groups(b.clusters, len(candidates))
	}
	// The capacity of groups in use does not matter here.
	chosen, err := spread(spec, candidates, false)
	return err == nil && len(chosen) == here &&
		!slices.ContainsFunc(chosen, func(c Candidate) bool { return c.Score != maxScore })
}

// replicasFit reports whether the targets have the wanted replicas: together if divided, else each of them, and each
// with all components.
func replicasFit(spec *workv1alpha2.ResourceBindingSpec) bool {
	s := strategyOf(spec)
	if s.divided() {
		var sum int64
		for i := range spec.Clusters {
			sum += int64(spec.Clusters[i].Replicas)
		}
		return sum == int64(spec.Replicas)
	}
	want := spec.Replicas
	if s == everywhere {
		want = 0
	}
	components := sharesOf(spec.Components)
	return !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool {
		return t.Replicas != want || !slices.Equal(t.Components, components)
	})
}

// fits reports whether the targets of b have the wanted replicas, in total and per part.
func fits(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	return replicasFit(spec) && (!strategyOf(spec).divided() || PartsOf(b).fit(spec.Clusters))
}

// AppliedPlacement returns the value of the annotation applied-placement: the placement that was last scheduled.
func AppliedPlacement(p *policyv1alpha1.Placement) string { return text.JSON(p) }

// samePlacement compares the texts, which usually suffices, and then the meanings, because other writers may order or
// default fields differently. It ignores tolerations that only delay a failover, so admission can add them without a
// run. An unreadable text is a different placement.
func samePlacement(applied string, p *policyv1alpha1.Placement) bool {
	want := AppliedPlacement(p)
	if applied == want {
		return true
	}
	var was policyv1alpha1.Placement
	if json.Unmarshal([]byte(applied), &was) != nil {
		return false
	}
	return AppliedPlacement(&was) == want || AppliedPlacement(withoutDelays(&was)) == AppliedPlacement(withoutDelays(p))
}

// withoutDelays returns the placement without tolerations that only delay a failover.
func withoutDelays(p *policyv1alpha1.Placement) *policyv1alpha1.Placement {
	if !slices.ContainsFunc(p.ClusterTolerations, membership.OnlyDelaysFailover) {
		return p
	}
	rest := *p
	rest.ClusterTolerations = slices.DeleteFunc(slices.Clone(p.ClusterTolerations), membership.OnlyDelaysFailover)
	return &rest
}

// Confirmation is what the scheduler reports for a binding after a run.
type Confirmation struct {
	// Generation of the binding in the run.
	Generation int64
	// Affinity is the name of the affinity term in use.
	Affinity string
	// Ran: a run placed the binding, or failed with Failure. Without a run, the placement stays.
	Ran     bool
	Failure error
}

// Confirm writes a confirmation into the status of b. It reports whether the condition Scheduled changed. All
// controllers use it to record what the scheduler has processed.
func Confirm(b workv1alpha2.Binding, c Confirmation, now metav1.Time) (changed bool) {
	status := b.BindingStatus()
	if c.Ran || !meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.Scheduled) { // else its reason stays
		condition := Condition(c.Failure)
		condition.LastTransitionTime = now
		changed = meta.SetStatusCondition(&status.Conditions, condition)
	}
	if c.Failure == nil && (c.Ran || status.LastScheduledTime == nil) {
		status.LastScheduledTime = &now
		if asked := b.BindingSpec().RescheduleTriggeredAt; asked != nil && now.Before(asked) {
			status.LastScheduledTime = asked // a rebalancer wrote it within the same second
		}
	}
	status.SchedulerObservedGeneration, status.SchedulerObservedAffinityName = c.Generation, c.Affinity
	return changed
}

// Keep confirms a placement that another controller wrote, with the affinity term of that name, if the scheduler would
// keep it. It returns false for a binding that is due or was not scheduled before: the scheduler confirms it. The
// caller sets the generation.
func Keep(b workv1alpha2.Binding, affinity, scheduler string, s Snapshot, now metav1.Time) bool {
	status := b.BindingStatus()
	if !PlacedBy(b, scheduler) || Grouped(b) || !meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.Scheduled) {
		return false
	}
	kept := b.DeepCopyObject().(workv1alpha2.Binding)
	kept.BindingStatus().SchedulerObservedAffinityName = affinity
	if _, due := Due(kept, s); due {
		return false
	}
	Confirm(b, Confirmation{Affinity: affinity, Ran: affinity != status.SchedulerObservedAffinityName}, now)
	return true
}
