package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// replace finds the placement of b without a cluster. During a release, clusters that run the same revision come first.
// Others follow if the strategy allows that. Clusters that the release sends nothing to gain no replicas.
func replace(b workv1alpha2.Binding, c cause, s schedule.Snapshot, room schedule.Capacity) (replacement, error) {
	same, other, none := destinations(b, c.cluster, s.Names())
	if len(other) == 0 {
		return place(b, c, s, room, none)
	}
	others := slices.Concat(other, none)
	if fleet.PlanOf(b.GetAnnotations()).SameRevision {
		return place(b, c, s, room, others)
	}
	divided := schedule.Divided(b.BindingSpec())
	partly := c
	partly.lost = c.lost || divided // the rest follows
	first, err := place(b, partly, s, room, others)
	if err != nil {
		return place(b, c, s, room, none)
	}
	if !divided {
		if len(first.clusters) >= len(b.BindingSpec().Clusters) {
			return first, nil
		}
		if all, err := place(b, c, s, room, none); err == nil && len(all.clusters) > len(first.clusters) {
			return all, nil
		}
		return first, nil // other clusters keep it
	}
	leaving := workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, c.cluster)
	if first.moved >= leaving {
		return first, nil
	}
	moved := b.DeepCopyObject().(workv1alpha2.Binding)
	moved.BindingSpec().Clusters = first.clusters
	if rest, err := place(moved, c, s, room, slices.Concat(same, none)); err == nil {
		rest.moved += first.moved
		if first = rest; first.moved >= leaving {
			return first, nil
		}
	}
	all, err := place(b, c, s, room, none)
	if c.lost && (err != nil || all.moved <= first.moved) {
		return first, nil
	}
	return all, err
}

// destinations divides clusters by the pods that replicas of b from a cluster would get there: the same, others, and
// none before the release has ended. All are the same without a release.
func destinations(b workv1alpha2.Binding, from string, clusters []string) (same, other, none []string) {
	plan := fleet.PlanOf(b.GetAnnotations())
	if plan == nil {
		return clusters, nil, nil
	}
	want := plan.WantedPods(from)
	for _, name := range clusters {
		switch pods := plan.PodsIn(name, workv1alpha2.HasTarget(b.BindingSpec().Clusters, name)); {
		case name == from:
		case pods == want:
			same = append(same, name)
		case pods.Revisions == "":
			none = append(none, name)
		default:
			other = append(other, name)
		}
	}
	return same, other, none
}

// withClosed returns the query with some clusters closed, which may be targets. Where capacity decides, such targets
// remain in the question, so that spread constraints count them.
func (q *query) withClosed(shut []string) *query {
	spec := q.ask.BindingSpec()
	for _, name := range shut {
		at := slices.IndexFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
		switch {
		case q.closed[name]:
		case at >= 0 && (schedule.SharedByRoom(spec) || !schedule.Divided(spec)):
			q.full[name] = true
		default:
			if at >= 0 {
				q.fixed = append(q.fixed, spec.Clusters[at])
				spec.Clusters = slices.Delete(spec.Clusters, at, at+1)
			}
			q.closed[name] = true
			spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks,
				workv1alpha2.GracefulEvictionTask{FromCluster: name})
		}
	}
	return q
}

// heldBack says for people how a release limits where replicas of b from a cluster may go; empty if it does not.
func (p *planner) heldBack(b workv1alpha2.Binding, from string) string {
	_, other, none := destinations(b, from, p.Fleet.Names())
	if len(other)+len(none) == 0 {
		return ""
	}
	plan := fleet.PlanOf(b.GetAnnotations())
	candidates, _ := schedule.Feasible(b, p.snapshot(b))
	none = slices.DeleteFunc(none, func(name string) bool {
		return !slices.ContainsFunc(candidates, func(c schedule.Candidate) bool { return c.Cluster.Name == name })
	})
	switch {
	case len(other) > 0 && plan.SameRevision:
		return fmt.Sprintf("; failover: SameRevision keeps the replicas in clusters that run %s (%s): add room there, "+
			"or let the release go on", plan.WantedPods(from).Revisions, plan.Remaining())
	case len(none) > 0:
		return fmt.Sprintf("; release %s sends nothing to %s before it has ended", plan.Release, text.Names(none, 3))
	}
	return ""
}

// newCopies returns the clusters of to that have no copy of b during a rollback, with the revision that they get.
func newCopies(b workv1alpha2.Binding, to []workv1alpha2.TargetCluster) map[string]string {
	plan := fleet.PlanOf(b.GetAnnotations())
	if plan == nil || plan.RollsBack == "" {
		return nil
	}
	get := map[string]string{}
	for _, t := range to {
		if !workv1alpha2.HasTarget(b.BindingSpec().Clusters, t.Name) {
			get[t.Name] = plan.Revision
		}
	}
	return get
}

// revisionChange says for people which replicas have another revision in the clusters that gained them; empty for none.
// copies are clusters that had no copy, see Departure.NewCopies.
func revisionChange(b workv1alpha2.Binding, from []string, to []workv1alpha2.TargetCluster,
	copies map[string]string) string {
	plan := fleet.PlanOf(b.GetAnnotations())
	if plan == nil {
		return ""
	}
	want := plan.WantedPods(from[0])
	replicas, clusters := map[string]int32{}, map[string][]string{}
	for _, t := range to {
		hadWork := plan.RollsBack == "" || copies[t.Name] != plan.Revision
		if pods := plan.PodsIn(t.Name, hadWork); pods != want {
			replicas[pods.Revisions] += t.Replicas
			clusters[pods.Revisions] = append(clusters[pods.Revisions], t.Name)
		}
	}
	var all []string
	for _, revisions := range slices.Sorted(maps.Keys(clusters)) {
		what, run := text.Count(replicas[revisions], "replica"), "runs"
		if replicas[revisions] == 0 {
			what = "the copy"
		}
		if len(clusters[revisions]) > 1 {
			run = "run"
		}
		all = append(all, fmt.Sprintf("%s of cluster %s moved to %s, which %s %s", what, strings.Join(from, ", "),
			text.Names(clusters[revisions], 3), run, revisions))
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "; ") + " (" + plan.Remaining() + ")"
}

// RevisionChanges returns a line for each cluster whose replicas run another revision since failover moved them. It is
// about the present plan and placement: when the release has updated all of these clusters, no line is left.
func RevisionChanges(b workv1alpha2.Binding) (lines []string) {
	record := RecordOf(b)
	for _, from := range slices.Sorted(maps.Keys(record)) {
		if line := record.revisionChange(b, from); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// revisionChange is about a departure. Clusters count that are still targets.
func (r Record) revisionChange(b workv1alpha2.Binding, from string) string {
	to := slices.DeleteFunc(slices.Clone(r[from].To), func(t workv1alpha2.TargetCluster) bool {
		return !workv1alpha2.HasTarget(b.BindingSpec().Clusters, t.Name)
	})
	return revisionChange(b, []string{from}, to, r[from].NewCopies)
}
