package overview

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/explain/why"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release"
)

type ReleaseSummary struct {
	Object
	Phase  releasev1alpha1.ReleasePhase `json:"phase"`
	Ended  bool                         `json:"ended,omitempty"`
	Reason string                       `json:"reason,omitempty"`
	// Severity is set if the release waits for a person.
	Severity why.Severity `json:"severity,omitempty"`
	What     string       `json:"what,omitempty"`
	Next     string       `json:"next,omitempty"`
	// Since is when the release began to wait, or ended, or was created, in seconds since 1970.
	Since int64 `json:"since,omitempty"`
	// Workloads are the targets, such as "CloneSet web".
	Workloads []string `json:"workloads"`
	// Refs are the targets with their groups, such as "CloneSet.apps.kruise.io web".
	Refs     []string `json:"refs"`
	Author   string   `json:"author,omitempty"`
	Progress string   `json:"progress,omitempty"`
	// Track has the phase of each stage.
	Track []StageMark `json:"track,omitempty"`
	// Version changes with each change of the release.
	Version string `json:"version,omitempty"`
}

type StageMark struct {
	Name  string                            `json:"name"`
	Phase releasev1alpha1.ReleaseStagePhase `json:"phase"`
}

func SummaryOfRelease(r *releasev1alpha1.Release) ReleaseSummary {
	item, waits := ItemOfRelease(r)
	s := ReleaseSummary{Object: *item.Object, Phase: release.PhaseOf(r), Ended: r.Status.Phase.Ended(),
		Reason: r.Status.Reason, What: item.What, Next: item.Next, Progress: r.Status.Progress, Version: r.ResourceVersion,
		Since: r.CreationTimestamp.Unix()}
	if r.Status.EndedAt != nil {
		s.Since = r.Status.EndedAt.Unix()
	}
	if waits {
		s.Severity, s.Since = item.Severity, item.Since
	}
	for _, t := range r.Spec.Targets {
		s.Workloads = append(s.Workloads, t.Ref.Kind+" "+t.Ref.Name)
		s.Refs = append(s.Refs, match.GroupKind(t.Ref.APIVersion, t.Ref.Kind).String()+" "+t.Ref.Name)
	}
	if r.Spec.CreatedBy != nil {
		s.Author = r.Spec.CreatedBy.User
	}
	for _, stage := range r.Status.Stages {
		s.Track = append(s.Track, StageMark{stage.Name, stage.Phase})
	}
	return s
}

// ReleaseDetail is all that a page about a release shows.
type ReleaseDetail struct {
	ReleaseSummary
	Strategy string                         `json:"strategy,omitempty"`
	Change   *releasev1alpha1.ReleaseChange `json:"change,omitempty"`
	Targets  []TargetRow                    `json:"targets"`
	Stages   []StageRow                     `json:"stages"`
	// Guard is the ReleaseGuard that the release waits for.
	Guard *releasev1alpha1.ReleaseGuardWait `json:"guard,omitempty"`
	// SoakUntil is when the stage under way has soaked, if it stays healthy.
	SoakUntil *metav1.Time `json:"soakUntil,omitempty"`
	// Journal is the newest entry first.
	Journal []releasev1alpha1.ReleaseJournalEntry `json:"journal,omitempty"`
}

// TargetRow is a workload that is released, with its revisions.
type TargetRow struct {
	Object
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

type StageRow struct {
	Name        string                             `json:"name"`
	Environment string                             `json:"environment,omitempty"`
	Phase       releasev1alpha1.ReleaseStagePhase  `json:"phase"`
	Reason      string                             `json:"reason,omitempty"`
	Attempt     int32                              `json:"attempt"`
	Share       string                             `json:"share,omitempty"`
	Counts      releasev1alpha1.ReleaseStageCounts `json:"counts"`
	Clusters    []StageCluster                     `json:"clusters,omitempty"`
	Gates       []GateRow                          `json:"gates,omitempty"`
}

// StageCluster is how far a target is in a cluster of a stage.
type StageCluster struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	// Phase is Pending, Reached, or as in the status of the release. It is empty if the status does not have it.
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`
	// Want is the number of pods that must be new. All three are 0 for a cluster that is not under way.
	New       int64 `json:"new,omitempty"`
	Available int64 `json:"available,omitempty"`
	Want      int64 `json:"want,omitempty"`
}

// The phases of clusters beside those of releasev1alpha1.ReleaseClusterPhase.
const (
	ClusterPending = "Pending"
	ClusterReached = "Reached"
)

// GateRow is a gate with its evidence.
type GateRow struct {
	Name     string                       `json:"name"`
	Position releasev1alpha1.GatePosition `json:"position"`
	// Phase is empty for a gate that the release has not come to.
	Phase releasev1alpha1.GatePhase           `json:"phase,omitempty"`
	Check *releasev1alpha1.ReleaseCheckStatus `json:"check,omitempty"`
	// CheckName is the ReleaseCheck of the gate. A gate without it needs approvals: Need of those in From, or of all who
	// may approve releases. By are those who have approved, or the one who rejected.
	CheckName string       `json:"checkName,omitempty"`
	Need      int32        `json:"need,omitempty"`
	From      []string     `json:"from,omitempty"`
	NotAuthor bool         `json:"notAuthor,omitempty"`
	By        []string     `json:"by,omitempty"`
	Comments  []string     `json:"comments,omitempty"`
	Since     *metav1.Time `json:"since,omitempty"`
	Until     *metav1.Time `json:"until,omitempty"`
}

// maxListed is how many clusters the status of a stage lists.
const maxListed = 200

func DetailOfRelease(r *releasev1alpha1.Release) ReleaseDetail {
	d := ReleaseDetail{ReleaseSummary: SummaryOfRelease(r), Change: r.Spec.Change, Guard: r.Status.Guard,
		SoakUntil: r.Status.SoakUntil, Journal: slices.Clone(r.Status.Journal)}
	slices.Reverse(d.Journal)
	if r.Spec.StrategyRef != nil {
		d.Strategy = r.Spec.StrategyRef.Name
	}
	for i, t := range r.Spec.Targets {
		row := TargetRow{Object: Object{Group: match.GroupKind(t.Ref.APIVersion, t.Ref.Kind).Group, Kind: t.Ref.Kind,
			Namespace: r.Namespace, Name: t.Ref.Name}}
		if i < len(r.Status.Targets) {
			row.From, row.To = r.Status.Targets[i].From, r.Status.Targets[i].To
		}
		d.Targets = append(d.Targets, row)
	}
	var clusters []string
	for k, stage := range r.Status.Stages {
		if !stage.SameClusters {
			clusters = stage.ClusterNames
		}
		row := StageRow{Name: stage.Name, Phase: stage.Phase, Reason: release.StageReason(r, stage), Attempt: stage.Attempt,
			Counts: stage.Counts, Clusters: clustersOf(r, stage, clusters)}
		var spec releasev1alpha1.ReleaseStage
		if r.Status.Strategy != nil && k < len(r.Status.Strategy.Stages) {
			spec = r.Status.Strategy.Stages[k]
		}
		row.Environment, row.Share, row.Gates = spec.Environment, shareOf(spec.To), gatesOf(spec, stage)
		d.Stages = append(d.Stages, row)
	}
	return d
}

// clustersOf returns each target in each cluster of a stage.
func clustersOf(r *releasev1alpha1.Release, stage releasev1alpha1.ReleaseStageStatus, names []string) []StageCluster {
	listed := map[[2]string]releasev1alpha1.ReleaseClusterStatus{}
	for _, c := range stage.Clusters {
		listed[[2]string{c.Name, c.Workload}] = c
	}
	other := ClusterReached
	switch {
	case stage.StartedAt == nil:
		other = ClusterPending
	case stage.Phase == releasev1alpha1.StageSkipped, len(stage.Clusters) >= maxListed:
		other = ""
	}
	var all []StageCluster
	for _, name := range names {
		for _, t := range r.Spec.Targets {
			row := StageCluster{Name: name, Target: t.Name, Phase: other}
			if c, found := listed[[2]string{name, t.Name}]; found {
				row.Phase, row.Message = string(c.Phase), c.Message
				row.New, row.Available, row.Want = c.New, c.Available, c.Target
			} else if len(stage.BegunTargets) > 0 && !slices.Contains(stage.BegunTargets, t.Name) && other != "" {
				row.Phase = ClusterPending
			}
			all = append(all, row)
		}
	}
	return all
}

// shareOf describes how many pods a stage updates; empty for all.
func shareOf(to *releasev1alpha1.ReleaseAmount) string {
	switch {
	case to == nil:
		return ""
	case to.Percent != nil:
		return fmt.Sprintf("%d%%", *to.Percent)
	case to.Pods != nil:
		return fmt.Sprintf("%d pods", *to.Pods)
	case to.Weight != nil:
		return fmt.Sprintf("weight %d", *to.Weight)
	}
	return ""
}

// gatesOf returns the gates of a stage, also those that it has not come to.
func gatesOf(spec releasev1alpha1.ReleaseStage, stage releasev1alpha1.ReleaseStageStatus) []GateRow {
	var rows []GateRow
	add := func(gates []releasev1alpha1.ReleaseGate, position releasev1alpha1.GatePosition) {
		for _, gate := range gates {
			row := GateRow{Name: gate.Name, Position: position}
			if gate.CheckRef != nil {
				row.CheckName = gate.CheckRef.Name
			} else {
				row.Need = 1
			}
			if rule := gate.Approval; rule != nil && gate.CheckRef == nil {
				row.Need, row.NotAuthor = max(rule.Count, 1), rule.NotAuthor
				for _, subject := range rule.From {
					row.From = append(row.From, subject.Kind+" "+subject.Name)
				}
			}
			for _, g := range stage.Gates {
				if g.Name == gate.Name && g.Position == position {
					row.Phase, row.Check, row.By, row.Since, row.Until = g.Phase, g.Check, g.By, g.Since, g.Until
					row.Comments = g.Comments
				}
			}
			rows = append(rows, row)
		}
	}
	add(spec.Before, releasev1alpha1.GateBefore)
	add(spec.After, releasev1alpha1.GateAfter)
	return rows
}
