// Package replicaset decides the ManifestWorks of a ManifestWorkReplicaSet of Open Cluster Management, and its status.
// core/source/ocm/rollout decides their order.
package replicaset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
)

// Input is the input of Decide and Status. It is read-only.
type Input struct {
	Set *workv1alpha1.ManifestWorkReplicaSet
	// Placements are the existing ones of those to which the set refers, by name.
	Placements map[string]rollout.Placement
	// Accepted reports whether a cluster is accepted, see Receives. A cluster that is not gets no ManifestWork.
	Accepted func(cluster string) bool
	// Works are the ManifestWorks of the set.
	Works []ocmv1.ManifestWork
	Now   time.Time
}

// Decision is the result of Decide.
type Decision struct {
	// Writes are the ManifestWorks to create or update.
	Writes []Write
	// Deletions are the ManifestWorks to delete.
	Deletions []*ocmv1.ManifestWork
	// After is the delay until the decision may change by time alone; 0: never.
	After time.Duration
	// held are what clusters without the current template wait for, and invalid what is wrong with a Placement or a
	// strategy. missing is a Placement that does not exist.
	held, invalid []string
	missing       string
}

// Write is a ManifestWork to create, if Was is nil, or to update.
type Write struct {
	Was, Want *ocmv1.ManifestWork
}

// OwnerLabel returns the value of the label of the set's ManifestWorks. It fails if that is no label value.
func OwnerLabel(set *workv1alpha1.ManifestWorkReplicaSet) (string, error) {
	value := set.Namespace + "." + set.Name
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return "", fmt.Errorf("ManifestWork owner reference %q (namespace.name) is not a valid label value: %s; recreate "+
			"the ManifestWorkReplicaSet with a shorter namespace and/or name so the combined length is at most %d characters",
			value, strings.Join(problems, "; "), validation.LabelValueMaxLength)
	}
	return value, nil
}

// Owner returns the namespace and the name of the set of a ManifestWork; false for none. A namespace has no dots.
func Owner(mw metav1.Object) (namespace, name string, owned bool) {
	return strings.Cut(mw.GetLabels()[workv1alpha1.ReplicaSetLabel], ".")
}

// Decide returns the ManifestWorks to write and to delete. Those of a Placement that does not exist stay as they are.
func Decide(in Input) (d Decision) {
	owner, err := OwnerLabel(in.Set)
	if err != nil {
		return Decision{}
	}
	refs := map[string]bool{}
	for _, ref := range in.Set.Spec.PlacementRefs {
		refs[ref.Name] = true
	}
	for i := range in.Works {
		if mw := &in.Works[i]; !refs[mw.Labels[workv1alpha1.PlacementLabel]] && !Rendered(mw) {
			d.remove(mw)
		}
	}
	for _, ref := range in.Set.Spec.PlacementRefs {
		p := in.Placements[ref.Name]
		if !p.Exists() {
			d.missing = ref.Name
			continue
		}
		groups := p.Groups(in.Accepted)
		works, sent := in.worksOf(ref.Name), map[string]rollout.Cluster{}
		for cluster, mw := range works {
			if in.current(mw) {
				sent[cluster] = stateOf(mw)
			}
		}
		next, err := rollout.Decide(rollout.Input{Strategy: ref.RolloutStrategy, Groups: groups, Sent: sent, Now: in.Now})
		if err != nil {
			d.invalid = append(d.invalid, fmt.Sprintf("the rolloutStrategy of Placement %s: %v", ref.Name, err))
			continue
		}
		if next.After > 0 && (d.After == 0 || next.After < d.After) {
			d.After = next.After
		}
		if next.Held != "" {
			d.held = append(d.held, fmt.Sprintf("Placement %s: %s", ref.Name, next.Held))
		}
		for _, cluster := range slices.Sorted(maps.Keys(sent)) { // labels need no order
			if was := works[cluster]; !labels.SelectorFromSet(in.labels(ref.Name, owner)).Matches(labels.Set(was.Labels)) {
				d.Writes = append(d.Writes, Write{was, in.work(was, cluster, ref.Name, owner)})
			}
		}
		for _, cluster := range next.Next {
			if was := works[cluster]; was == nil || was.DeletionTimestamp == nil { // that it is gone is an event
				d.Writes = append(d.Writes, Write{was, in.work(was, cluster, ref.Name, owner)})
			}
		}
		chosen, whole := p.Clusters()
		if !whole {
			continue // nothing is decided yet, or a decision is missing: it will be written
		}
		for _, cluster := range slices.Sorted(maps.Keys(works)) {
			if !slices.Contains(chosen, cluster) {
				d.remove(works[cluster])
			}
		}
	}
	return d
}

func (d *Decision) remove(mw *ocmv1.ManifestWork) {
	if mw.DeletionTimestamp == nil {
		d.Deletions = append(d.Deletions, mw)
	}
}

// Receives reports whether a cluster gets ManifestWorks: it is accepted, or waits for that with the label of a set,
// which needs a right. Any holder of a bootstrap token can register a cluster with the name of a namespace that others
// read.
func Receives(mc *clusterv1.ManagedCluster) bool {
	return mc.Spec.HubAcceptsClient || mc.Labels[clusterv1.ClusterSetLabel] != "" &&
		mc.Labels[clusterv1.ClusterSetLabel] != clusterv1.DefaultSet &&
		meta.FindStatusCondition(mc.Status.Conditions, clusterv1.HubAccepted) == nil
}

// Rendered reports whether the hub writes a ManifestWork from a Work, whatever its labels are.
func Rendered(mw *ocmv1.ManifestWork) bool {
	_, is := mw.Annotations[wellknown.WorkAnnotation]
	return is
}

// worksOf returns the ManifestWorks of a Placement by cluster.
func (in Input) worksOf(placement string) map[string]*ocmv1.ManifestWork {
	works := map[string]*ocmv1.ManifestWork{}
	for i := range in.Works {
		mw := &in.Works[i]
		if mw.Labels[workv1alpha1.PlacementLabel] != placement || Rendered(mw) {
			continue
		}
		if was := works[mw.Namespace]; was == nil || was.DeletionTimestamp != nil {
			works[mw.Namespace] = mw
		}
	}
	return works
}

// current reports whether a ManifestWork has the current template.
func (in Input) current(mw *ocmv1.ManifestWork) bool {
	return mw != nil && mw.DeletionTimestamp == nil &&
		equality.Semantic.DeepEqual(mw.Spec, in.Set.Spec.ManifestWorkTemplate)
}

// labels returns the labels of the ManifestWorks of a Placement.
func (in Input) labels(placement, owner string) map[string]string {
	return labels.Merge(in.Set.Labels, labels.Set{workv1alpha1.ReplicaSetLabel: owner,
		workv1alpha1.PlacementLabel: placement})
}

// work returns the ManifestWork of a Placement for a cluster.
func (in Input) work(was *ocmv1.ManifestWork, cluster, placement, owner string) *ocmv1.ManifestWork {
	mw := &ocmv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster,
		Name: names.WorkOfReplicaSet(in.Set.Name, in.Set.Namespace, placement)}}
	if was != nil {
		mw = was.DeepCopy()
	}
	mw.Spec = *in.Set.Spec.ManifestWorkTemplate.DeepCopy()
	mw.Labels = labels.Merge(mw.Labels, in.labels(placement, owner))
	return mw
}

// stateOf returns the state of the cluster of a ManifestWork, by conditions of its current generation.
func stateOf(mw *ocmv1.ManifestWork) rollout.Cluster {
	applied, progressing, degraded := condition(mw, ocmv1.Applied), condition(mw, ocmv1.Progressing),
		meta.FindStatusCondition(mw.Status.Conditions, ocmv1.Degraded)
	switch {
	case applied == nil, applied.Status != metav1.ConditionTrue, progressing == nil,
		degraded != nil && degraded.ObservedGeneration != mw.Generation:
		return rollout.Cluster{State: rollout.Sent}
	case progressing.Status == metav1.ConditionTrue && degraded != nil && degraded.Status == metav1.ConditionTrue:
		return rollout.Cluster{State: rollout.Failed, Since: degraded.LastTransitionTime.Time}
	case progressing.Status == metav1.ConditionFalse:
		return rollout.Cluster{State: rollout.Succeeded, Since: progressing.LastTransitionTime.Time}
	default:
		return rollout.Cluster{State: rollout.Progressing, Since: progressing.LastTransitionTime.Time}
	}
}

// condition returns a condition of the current generation of a ManifestWork; nil for none.
func condition(mw *ocmv1.ManifestWork, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(mw.Status.Conditions, kind)
	if c != nil && c.ObservedGeneration != mw.Generation {
		return nil
	}
	return c
}

// Status returns the status of the set after a decision was carried out: Works has what was written. failed is what
// could not be written or deleted.
func (d Decision) Status(in Input, failed error) workv1alpha1.ManifestWorkReplicaSetStatus {
	status := *in.Set.Status.DeepCopy()
	set := func(kind string, isTrue bool, reason, message string) {
		is := metav1.ConditionFalse
		if isTrue {
			is = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message,
			ObservedGeneration: in.Set.Generation, LastTransitionTime: metav1.NewTime(in.Now)})
	}
	if _, err := OwnerLabel(in.Set); err != nil {
		set(workv1alpha1.ManifestworkApplied, false, workv1alpha1.ReasonInvalidName, err.Error())
		return status
	}
	status.Summary, status.PlacementsSummary = workv1alpha1.ManifestWorkReplicaSetSummary{}, nil
	chosen, accepted, succeeded, silent, undecided, unavailable := 0, 0, 0, 0, false, []string{}
	for _, ref := range in.Set.Spec.PlacementRefs {
		p := in.Placements[ref.Name]
		if !p.Exists() {
			continue
		}
		_, whole := p.Clusters()
		undecided = undecided || !whole
		works, n := in.worksOf(ref.Name), workv1alpha1.ManifestWorkReplicaSetSummary{}
		for _, cluster := range rollout.Clusters(p.Groups(in.Accepted)) {
			accepted++
			mw := works[cluster]
			if !in.current(mw) {
				continue
			}
			n.Total++
			for kind, count := range map[string]*int{ocmv1.Applied: &n.Applied, ocmv1.Available: &n.Available,
				ocmv1.Progressing: &n.Progressing, ocmv1.Degraded: &n.Degraded} {
				if c := condition(mw, kind); c != nil && c.Status == metav1.ConditionTrue {
					*count++
				}
			}
			if c := condition(mw, ocmv1.Available); c == nil || c.Status != metav1.ConditionTrue {
				unavailable = append(unavailable, mw.Namespace+"/"+mw.Name)
			}
			if stateOf(mw).State == rollout.Succeeded {
				succeeded++
			} else if c := condition(mw, ocmv1.Applied); c != nil && c.Status == metav1.ConditionTrue &&
				condition(mw, ocmv1.Progressing) == nil {
				silent++
			}
		}
		chosen += int(p.Status.NumberOfSelectedClusters)
		status.PlacementsSummary = append(status.PlacementsSummary, workv1alpha1.PlacementSummary{Name: ref.Name, Summary: n,
			AvailableDecisionGroups: fmt.Sprintf("%d (%d / %d clusters applied)", len(p.Status.DecisionGroups), n.Total,
				p.Status.NumberOfSelectedClusters)})
		for _, sum := range []struct {
			to *int
			of int
		}{{&status.Summary.Total, n.Total}, {&status.Summary.Applied, n.Applied},
			{&status.Summary.Available, n.Available}, {&status.Summary.Progressing, n.Progressing},
			{&status.Summary.Degraded, n.Degraded}} {
			*sum.to += sum.of
		}
	}
	all, empty := status.Summary, fmt.Sprintf("no ManifestWork has the current template; %d clusters are chosen", chosen)
	switch {
	case d.missing != "":
		set(workv1alpha1.PlacementVerified, false, workv1alpha1.ReasonDecisionNotFound, fmt.Sprintf(
			"there is no Placement %s/%s: create it, or remove it from spec.placementRefs", in.Set.Namespace, d.missing))
	case len(d.invalid) > 0:
		set(workv1alpha1.PlacementVerified, false, workv1alpha1.ReasonNotAsExpected, strings.Join(d.invalid, "; "))
	case all.Total == 0:
		set(workv1alpha1.PlacementVerified, false, workv1alpha1.ReasonDecisionEmpty, empty)
	default:
		set(workv1alpha1.PlacementVerified, true, workv1alpha1.ReasonAsExpected, "")
	}
	if chosen == succeeded && d.missing == "" && len(d.invalid) == 0 && !undecided {
		set(workv1alpha1.PlacementRolledOut, true, workv1alpha1.ReasonComplete, "")
	} else {
		texts := append([]string{fmt.Sprintf("%d of %d clusters succeeded", succeeded, chosen)}, d.held...)
		if n := chosen - accepted; n > 0 {
			texts = append(texts, fmt.Sprintf("%d clusters are not accepted", n))
		}
		if silent > 0 {
			texts = append(texts, fmt.Sprintf("%d do not report the condition Progressing: without a condition rule for it in "+
				"spec.manifestWorkTemplate.manifestConfigs, no rollout completes", silent))
		}
		set(workv1alpha1.PlacementRolledOut, false, workv1alpha1.ReasonProgressing, strings.Join(texts, "; "))
	}
	switch message := problem(unavailable, failed); {
	case failed != nil:
		set(workv1alpha1.ManifestworkApplied, false, workv1alpha1.ReasonNotAsExpected, message)
	case all.Total == 0 && d.missing == "" && len(d.invalid) == 0:
		set(workv1alpha1.ManifestworkApplied, false, workv1alpha1.ReasonDecisionEmpty, empty)
	case all.Total > 0 && all.Available == all.Total && all.Progressing == 0 && all.Degraded == 0:
		set(workv1alpha1.ManifestworkApplied, true, workv1alpha1.ReasonAsExpected, "")
	case all.Progressing > 0 && all.Degraded == 0:
		set(workv1alpha1.ManifestworkApplied, false, workv1alpha1.ReasonProcessing, message)
	default:
		set(workv1alpha1.ManifestworkApplied, false, workv1alpha1.ReasonNotAsExpected, message)
	}
	return status
}

// problem returns the message about ManifestWorks that are not available, or could not be written.
func problem(unavailable []string, failed error) string {
	var texts []string
	if failed != nil {
		texts = append(texts, failed.Error())
	}
	if n := len(unavailable); n > 0 {
		texts = append(texts, fmt.Sprintf("%d ManifestWorks are not available, such as %s", n, unavailable[0]))
	}
	return strings.Join(texts, "; ")
}
