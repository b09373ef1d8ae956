package release

import (
	"cmp"
	"fmt"
	"slices"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// ReleasePlan has the stages and targets of a release if nothing fails.
type ReleasePlan struct {
	// Release is empty for one that is not created.
	Release   string          `json:"release,omitempty"`
	Namespace string          `json:"namespace"`
	Targets   []PlannedTarget `json:"targets"`
	Stages    []PlannedStage  `json:"stages"`
	// Steps are in the order in which pods are released, and Hash is of them.
	Steps []Planned `json:"steps"`
	Hash  string    `json:"hash"`
	// Notes name what the plan leaves out.
	Notes []string `json:"notes,omitempty"`
}

// PlannedTarget is a workload with its revisions before and after a release.
type PlannedTarget struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Workload string `json:"workload"`
	From     string `json:"from,omitempty"`
	To       string `json:"to"`
}

// PlannedStage has the pods that a stage will update, and its gates.
type PlannedStage struct {
	Name        string   `json:"name"`
	Environment string   `json:"environment,omitempty"`
	Before      []string `json:"before,omitempty"`
	Soak        string   `json:"soak,omitempty"`
	After       []string `json:"after,omitempty"`
	// Waits is why ReleaseGuards would not let the stage start now; empty if they would.
	Waits string `json:"waits,omitempty"`
	// Skipped is why the stage replaces no pod, and does not wait for its gates; empty if it is not skipped.
	Skipped string `json:"skipped,omitempty"`
	// Clusters get new pods in the stage. A stage without them waits for its gates, unless it is skipped.
	Clusters []PlannedCluster `json:"clusters"`
}

// PlannedCluster has the pods of a target in a cluster before and after a stage.
type PlannedCluster struct {
	Target  string `json:"target"`
	Cluster string `json:"cluster"`
	// Replicas of the target in the cluster. New of them may be new after the stage; Former were before it.
	Replicas int64 `json:"replicas"`
	Former   int64 `json:"former"`
	New      int64 `json:"new"`
}

// PlanOf returns the plan of a release, one that is not created yet or one that runs. An error is the reason why the
// hub would refuse it.
func PlanOf(in Input) (*ReleasePlan, error) {
	rel := in.Release
	plan := &ReleasePlan{Release: rel.Name, Namespace: rel.Namespace}
	stepper, steps, hash, err := preview(in)
	if err != nil {
		return nil, fmt.Errorf("the hub would refuse this release: %w", err)
	}
	plan.Steps, plan.Hash = steps, hash
	if kept := KeptClusters(&rel.Status); len(kept) > 0 {
		plan.Notes = append(plan.Notes, "a user has skipped a stage: the former revision stays in "+text.Names(kept, 3))
	}
	var guarded []GuardedStage
	if len(rel.Status.Targets) == 0 {
		guarded = PreviewGuards(in)
	}
	for _, t := range rel.Spec.Targets {
		is := stepper.target(t.Name)
		plan.Targets = append(plan.Targets, PlannedTarget{t.Name, t.Ref.Kind, t.Ref.Name, is.From, is.To})
	}
	strategy := cmp.Or(rel.Status.Strategy, in.Strategy)
	if strategy.Failover == releasev1alpha1.FailoverSameRevision {
		plan.Notes = append(plan.Notes, "failover: SameRevision: replicas stay in a lost cluster if no cluster with the same "+
			"revision has room")
	}
	type place struct{ target, cluster string }
	reached := map[place]int64{}
	for k, s := range strategy.Stages {
		stage := PlannedStage{Name: s.Name, Environment: s.Environment, Before: gateNames(s.Before),
			After: gateNames(s.After), Clusters: []PlannedCluster{}}
		switch status := stepper.status.Stages[k]; status.Phase {
		case "", releasev1alpha1.StagePending:
			stage.Skipped = running{stepper}.nothingToDo(k)
		case releasev1alpha1.StageSkipped:
			stage.Skipped = StageReason(rel, status)
		}
		if k < len(guarded) {
			if stage.Waits = guarded[k].Waits; guarded[k].Gate != nil {
				stage.Before = append(stage.Before, gateNames([]releasev1alpha1.ReleaseGate{*guarded[k].Gate})...)
			}
		}
		if s.Soak.Duration > 0 {
			stage.Soak = s.Soak.Duration.String()
		}
		for _, step := range plan.Steps {
			if step.Stage != s.Name {
				continue
			}
			at := place{step.Target, step.Cluster}
			i := slices.IndexFunc(stage.Clusters, func(c PlannedCluster) bool {
				return c.Target == at.target && c.Cluster == at.cluster
			})
			if i < 0 {
				stage.Clusters = append(stage.Clusters, PlannedCluster{Target: step.Target, Cluster: step.Cluster,
					Replicas: in.Targets[step.Target].replicasIn(step.Cluster), Former: reached[at]})
				i = len(stage.Clusters) - 1
			}
			stage.Clusters[i].New, reached[at] = step.Released.Released, step.Released.Released
		}
		plan.Stages = append(plan.Stages, stage)
	}
	return plan, nil
}

func (t Target) replicasIn(cluster string) int64 {
	for _, p := range t.Progress {
		if p.Cluster == cluster {
			return p.Replicas // also in a cluster that the workload leaves
		}
	}
	clusters, replicas := t.replicas(false)
	if i := slices.Index(clusters, cluster); i >= 0 {
		return replicas[i]
	}
	return 0
}

// gateNames returns the gates of a stage for people, such as "sign (2 approvals)".
func gateNames(gates []releasev1alpha1.ReleaseGate) []string {
	var all []string
	for _, g := range gates {
		name := g.Name
		switch {
		case g.CheckRef != nil:
			name += fmt.Sprintf(" (check %s)", g.CheckRef.Name)
		case g.Approval != nil && g.Approval.Count > 1:
			name += fmt.Sprintf(" (%d approvals)", g.Approval.Count)
		}
		if g.Approval != nil && g.Approval.NotAuthor {
			name += " (not by the author, nor by users who may act as the author)"
		}
		all = append(all, name)
	}
	return all
}
