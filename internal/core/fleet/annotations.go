package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Annotations that users put on a template.
const (
	// ScopeAnnotation says what a workload's partition, maxUnavailable and the like count: the pods of all clusters
	// together (Fleet), or of each cluster (Cluster, as in Karmada). Default: Fleet for OpenKruise's workloads whose
	// replicas are divided, Cluster for all else; always Cluster where members own the replicas, by the label
	// retain-replicas.
	ScopeAnnotation = "argosy.io/rollout-scope"

	// OrderAnnotation says where new pods come first: everywhere alike (Proportional, the default), one cluster after the
	// other (Ordered), or as StagesAnnotation says (Stages).
	OrderAnnotation = "argosy.io/rollout-order"

	// ClustersAnnotation is the order of clusters, "a,b,c"; those that it does not name follow as the placement names
	// them, then by name.
	ClustersAnnotation = "argosy.io/rollout-clusters"

	// StagesAnnotation is a JSON list of stages; each has a percent of all replicas, up to 100, that are new at its end,
	// or clusters that are all new at its end, and may pause: the next stage then waits for StageAnnotation.
	//
	//	[{"percent": 10, "pause": true}, {"clusters": ["eu"]}, {"percent": 100}]
	StagesAnnotation = "argosy.io/rollout-stages"

	// StageAnnotation approves the pauses of the stages up to a number, counted from 1, for one revision:
	//
	//	{"stage": 2, "revision": "1b2c3d4e"}
	//
	// The revision is that of RevisionOf. A number alone counts for the revision that the template has when the hub first
	// sees the number.
	StageAnnotation = "argosy.io/rollout-stage"

	// UnreachableAnnotation says what the pods of a cluster that does not answer count as: unavailable (CountAsDown, the
	// default), so that a rollout waits for it, or as nothing (Ignore).
	UnreachableAnnotation = "argosy.io/unreachable-clusters"

	// AutoHaltAnnotation "false" lets a rollout go on where it made a member's copy unhealthy.
	AutoHaltAnnotation = "argosy.io/auto-halt"

	// FailedPodsAnnotation, a number or a percentage of all replicas, is how many new pods may fail before a rollout stops
	// everywhere; without it, the first copy that becomes unhealthy stops it. Failed are those that are not available in a
	// copy that is unhealthy and, when spec.progressDeadlineSeconds have passed without progress, those in any other.
	FailedPodsAnnotation = "argosy.io/failed-pods-threshold"

	// UniqueOrdinalsAnnotation "true" gives every pod of an Advanced StatefulSet an ordinal that no other cluster has.
	UniqueOrdinalsAnnotation = "argosy.io/unique-ordinals"

	// OrdinalMobilityAnnotation says whether the ordinals of a cluster that has left go to others: Never, WithoutPVC (the
	// default: if it has no volumeClaimTemplates, whose data would stay behind) or Always.
	OrdinalMobilityAnnotation = "argosy.io/ordinal-mobility"

	// ScaleDownAnnotation says which of unique ordinals go when there are fewer replicas: the highest of each cluster that
	// the scheduler gives fewer (ClusterHighest, the default), or the highest of all, wherever they run (GlobalHighest).
	ScaleDownAnnotation = "argosy.io/ordinal-scale-down"

	// PrePullAnnotation has a cluster pull the new images of a workload before its pods are made of them: the percentage
	// of nodes that have them when the new pods are let in, or "true" for 95%.
	PrePullAnnotation = "argosy.io/pre-pull"

	// PrePullTimeoutAnnotation is how long a cluster waits for that at most, such as 10m, which is the default.
	PrePullTimeoutAnnotation = "argosy.io/pre-pull-timeout"
)

// HubAnnotations are those of a template that say something to the hub alone.
func HubAnnotations() []string {
	return []string{ScopeAnnotation, OrderAnnotation, ClustersAnnotation, StagesAnnotation, StageAnnotation,
		UnreachableAnnotation,
		AutoHaltAnnotation, UniqueOrdinalsAnnotation, OrdinalMobilityAnnotation, ScaleDownAnnotation, FailedPodsAnnotation,
		PrePullAnnotation, PrePullTimeoutAnnotation}
}

// Annotations of our own.
const (
	// NoteAnnotation on a Work is what the share in its manifest does not tell: a Note.
	NoteAnnotation = "argosy.io/fleet"
	// RevisionsAnnotation on the Work of a SidecarSet is which revision its manifest injects and what its cluster calls
	// those that it had: Revisions.
	RevisionsAnnotation = "argosy.io/revisions"
	// OrdinalsAnnotation on a binding is which cluster has, or had, which ordinals: JSON, ranges by cluster.
	OrdinalsAnnotation = "argosy.io/ordinals"
	// ProgressAnnotation on a binding is when a rollout last went on, while one with a deadline is under way.
	ProgressAnnotation = "argosy.io/rollout-progress"
	// SentPodsAnnotation on a CloneSet in a member is the names "a,b" of spec.scaleStrategy.podsToDelete that the hub
	// sent. A name in it that is not in the list any more was removed by the member's controller.
	SentPodsAnnotation = "argosy.io/sent-pods-to-delete"
	// ApprovedAnnotation on a binding is a StageAnnotation without a revision, with the revision that it counts for.
	ApprovedAnnotation = "argosy.io/rollout-stage-approved"
	// RoutedAnnotation on a binding is the clusters, "a,b", that alone get a template that is about pods of theirs; it is
	// on none before that is known, nor on those of other templates.
	RoutedAnnotation = "argosy.io/routed-to"
)

// order is where new pods come first.
type order string

const (
	inProportion order = "Proportional"
	oneByOne     order = "Ordered"
	inStages     order = "Stages"
)

// stage is one of StagesAnnotation.
type stage struct {
	Percent  *int64   `json:"percent,omitempty"`
	Clusters []string `json:"clusters,omitempty"`
	Pause    bool     `json:"pause,omitempty"`
}

// options are what the annotations of a template say.
type options struct {
	scope          string // Fleet, Cluster, or empty for the default
	order          order
	clusters       []string
	stages         []stage
	approval       Approval
	approved       int64 // stages whose pauses are approved for the revision of the template
	ignoreLost     bool
	neverHalt      bool
	failedPods     any // nil, a number or a percentage
	uniqueOrdinals bool
	mobility       string
	highestFirst   bool
}

func optionsOf(annotations map[string]string) (options, error) {
	o := options{order: inProportion}
	var err error
	choose := func(key string, values ...string) string {
		v, set := annotations[key]
		if !set {
			return ""
		}
		if !slices.Contains(values, v) && err == nil {
			err = fmt.Errorf("annotation %s: %q is not one of %s", key, v, strings.Join(values, ", "))
		}
		return v
	}
	o.scope = choose(ScopeAnnotation, "Fleet", "Cluster")
	if v := choose(OrderAnnotation, string(inProportion), string(oneByOne), string(inStages)); v != "" {
		o.order = order(v)
	}
	o.ignoreLost = choose(UnreachableAnnotation, "CountAsDown", "Ignore") == "Ignore"
	o.neverHalt = choose(AutoHaltAnnotation, "true", "false") == "false"
	o.uniqueOrdinals = choose(UniqueOrdinalsAnnotation, "true", "false") == "true"
	o.mobility = choose(OrdinalMobilityAnnotation, "Never", "WithoutPVC", "Always")
	o.highestFirst = choose(ScaleDownAnnotation, "ClusterHighest", "GlobalHighest") == "GlobalHighest"
	if err != nil {
		return options{}, err
	}
	if v, set := annotations[FailedPodsAnnotation]; set {
		o.failedPods = unquote(v)
		if _, err := Resolve(o.failedPods, 1, Down); err != nil {
			return options{}, fmt.Errorf("annotation %s: %w", FailedPodsAnnotation, err)
		}
	}
	for _, name := range strings.Split(annotations[ClustersAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			o.clusters = append(o.clusters, name)
		}
	}
	if o.order != inStages {
		return o, nil
	}
	decoder := json.NewDecoder(strings.NewReader(annotations[StagesAnnotation]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o.stages); err != nil {
		return options{}, fmt.Errorf(`annotation %s: not a list of stages such as [{"percent": 10, "pause": true}, {"percent": 100}]: %w`, StagesAnnotation, err)
	}
	if len(o.stages) == 0 {
		return options{}, fmt.Errorf("annotation %s: the list of stages is empty", StagesAnnotation)
	}
	var last int64
	for i, s := range o.stages {
		switch {
		case (s.Percent == nil) == (len(s.Clusters) == 0):
			return options{}, fmt.Errorf("annotation %s: stage %d must have either a percent or clusters", StagesAnnotation, i+1)
		case s.Percent != nil && (*s.Percent < last || *s.Percent > 100):
			return options{}, fmt.Errorf("annotation %s: the percent of stage %d must be between %d and 100: it is the total since the start of the rollout", StagesAnnotation, i+1, last)
		case s.Percent != nil:
			last = *s.Percent
		}
	}
	if v, set := annotations[StageAnnotation]; set {
		if o.approval, err = approvalOf(v); err != nil {
			return options{}, fmt.Errorf("annotation %s: %w", StageAnnotation, err)
		}
	}
	return o, nil
}

// alone says whether a member may apply the partition and the budgets as the template has them, because it is the only
// one. Stages are the hub's also then.
func (o options) alone(members int) bool { return members == 0 || members == 1 && o.order != inStages }

// sorted are the clusters in the order in which ties are broken and clusters follow each other: as given by the
// template, then as they are.
func (o options) sorted(clusters []string) []string {
	out := make([]string, 0, len(clusters))
	for _, name := range o.clusters {
		if slices.Contains(clusters, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, name := range clusters {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// RoutedTo are the clusters that alone get the template of a binding with these annotations; ok is false where all of
// its clusters do.
func RoutedTo(annotations map[string]string) (clusters []string, ok bool) {
	v, ok := annotations[RoutedAnnotation]
	return split(v), ok
}
