// Package rollout decides which clusters of a Placement get a change next, by a RolloutStrategy of Open Cluster
// Management.
package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// namesShown is the greatest number of clusters in a message.
const namesShown = 10

// State of a cluster that has the change.
type State int

// The states.
const (
	// Sent: the cluster has not reported on the change.
	Sent State = iota
	// Progressing: the change has not succeeded yet.
	Progressing
	// Succeeded: the change has succeeded.
	Succeeded
	// Failed: the change is degraded while it progresses.
	Failed
)

// Cluster is the state of a cluster that has the change, and since when.
type Cluster struct {
	State State
	Since time.Time
}

// Group is a decision group of a Placement.
type Group struct {
	Index    int32
	Name     string
	Clusters []string
}

// Input is the input of Decide. It is read-only.
type Input struct {
	Strategy scorev1alpha1.RolloutStrategy
	// Groups are all decision groups of the Placement.
	Groups []Group
	// Sent are the states of the clusters that have the change, by name.
	Sent map[string]Cluster
	Now  time.Time
}

// Decision is the result of Decide.
type Decision struct {
	// Next are the clusters that get the change now.
	Next []string
	// Held is what a cluster without the change waits for; empty if none waits.
	Held string
	// Awaited are the clusters with the change that have not reported yet, have not succeeded, or have only just.
	Awaited []string
	// After is the delay until the decision may change by time alone; 0: never.
	After time.Duration
}

// Decide returns the clusters that get the change next. It fails if the strategy is not valid.
func Decide(in Input) (Decision, error) {
	s, err := Parse(in.Strategy)
	if err != nil {
		return Decision{}, err
	}
	groups := slices.Clone(in.Groups)
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(a.Index, b.Index) })
	r := &run{Input: in, strategy: s}
	if s.kind == scorev1alpha1.RolloutAll {
		for _, g := range groups {
			r.Next = append(r.Next, r.waiting(g.Clusters)...)
		}
		r.Awaited, _ = r.judge(Clusters(groups))
		return r.Decision, nil
	}
	var all, rest []string
	for _, g := range groups {
		all = append(all, g.Clusters...)
		if !s.isMandatory(g) {
			rest = append(rest, g.Clusters...)
		}
	}
	open := false
	for _, g := range groups {
		if !open && s.isMandatory(g) {
			open = r.group(g, 0, "mandatory group")
		}
	}
	switch {
	case open:
	case s.kind == scorev1alpha1.RolloutProgressive:
		r.progressive(rest, len(all))
	default:
		for _, g := range groups {
			if !open && !s.isMandatory(g) {
				open = r.group(g, size(s.failures, len(g.Clusters), 0), "group")
			}
		}
	}
	if len(r.waiting(all)) == len(r.Next) {
		r.Held = ""
	}
	r.Awaited, _ = r.judge(all)
	return r.Decision, nil
}

// run is one decision.
type run struct {
	Input
	Decision
	strategy Strategy
}

// group admits the clusters of a group, unless too many have failed. It reports whether the groups after it must wait.
func (r *run) group(g Group, failures int, what string) (open bool) {
	awaited, failed := r.judge(g.Clusters)
	name := fmt.Sprintf("%s %d", what, g.Index)
	if g.Name != "" {
		name = fmt.Sprintf("%s %q", what, g.Name)
	}
	if len(failed) > failures {
		r.Held = fmt.Sprintf("%s tolerates %d failures, and these clusters failed: %s", name, failures,
			text.Names(failed, namesShown))
		return true
	}
	next := r.waiting(g.Clusters)
	r.Next = append(r.Next, next...)
	awaited = slices.DeleteFunc(awaited, func(cluster string) bool { return slices.Contains(failed, cluster) })
	if awaited = append(next, awaited...); len(awaited) > 0 {
		r.Held = fmt.Sprintf("%s is not complete: awaiting %s", name, text.Names(awaited, namesShown))
	}
	return len(awaited) > 0
}

// progressive admits clusters until as many are awaited as may be. all is the number of clusters of all groups.
func (r *run) progressive(clusters []string, all int) {
	clusters = slices.Sorted(slices.Values(clusters))
	awaited, failed := r.judge(clusters)
	failures := size(r.strategy.failures, all, 0)
	if len(failed) > failures {
		r.Held = fmt.Sprintf("maxFailures tolerates %d failures, and these clusters failed: %s", failures,
			text.Names(failed, namesShown))
		return
	}
	room := size(r.strategy.concurrency, len(clusters), len(clusters)) - len(awaited)
	waiting := r.waiting(clusters)
	r.Next = waiting[:min(max(room, 0), len(waiting))]
	r.Held = fmt.Sprintf("maxConcurrency is reached: awaiting %s", text.Names(append(awaited, r.Next...), namesShown))
}

// waiting returns the clusters without the change.
func (r *run) waiting(clusters []string) (waiting []string) {
	for _, cluster := range clusters {
		if _, sent := r.Sent[cluster]; !sent {
			waiting = append(waiting, cluster)
		}
	}
	return waiting
}

// judge returns which clusters with the change are awaited, and which have failed. A failed cluster is awaited until
// its deadline.
func (r *run) judge(clusters []string) (awaited, failed []string) {
	until := func(cluster string, end time.Time) bool {
		left := end.Sub(r.Now)
		if left <= 0 {
			return false
		}
		awaited = append(awaited, cluster)
		if r.After == 0 || left < r.After {
			r.After = left
		}
		return true
	}
	for _, cluster := range clusters {
		c, sent := r.Sent[cluster]
		switch {
		case !sent:
		case c.State == Sent:
			awaited = append(awaited, cluster)
		case c.State == Succeeded:
			until(cluster, c.Since.Add(r.strategy.soak))
		default:
			waits := r.strategy.deadline == nil
			if waits {
				awaited = append(awaited, cluster)
			} else {
				waits = until(cluster, c.Since.Add(*r.strategy.deadline))
			}
			if c.State == Failed || !waits {
				failed = append(failed, cluster)
			}
		}
	}
	return awaited, failed
}

// Strategy is a valid RolloutStrategy.
type Strategy struct {
	kind      scorev1alpha1.RolloutType
	soak      time.Duration
	deadline  *time.Duration
	failures  intstr.IntOrString
	mandatory []scorev1alpha1.MandatoryDecisionGroup
	// concurrency limits the type Progressive.
	concurrency intstr.IntOrString
}

// Parse reads a RolloutStrategy. Settings of other types than its own are ignored.
func Parse(s scorev1alpha1.RolloutStrategy) (parsed Strategy, err error) {
	parsed.kind = cmp.Or(s.Type, scorev1alpha1.RolloutAll)
	var config scorev1alpha1.RolloutConfig
	concurrency, field := intstr.IntOrString{}, "all"
	switch parsed.kind {
	case scorev1alpha1.RolloutAll:
		if s.All != nil {
			config = s.All.RolloutConfig
		}
	case scorev1alpha1.RolloutProgressive:
		field = "progressive"
		if p := s.Progressive; p != nil {
			config, parsed.mandatory, concurrency = p.RolloutConfig, p.MandatoryDecisionGroups.MandatoryDecisionGroups,
				p.MaxConcurrency
		}
	case scorev1alpha1.RolloutProgressivePerGroup:
		field = "progressivePerGroup"
		if p := s.ProgressivePerGroup; p != nil {
			config, parsed.mandatory = p.RolloutConfig, p.MandatoryDecisionGroups.MandatoryDecisionGroups
		}
	default:
		return parsed, fmt.Errorf("type: unknown type %q: use All, Progressive or ProgressivePerGroup", s.Type)
	}
	duration := func(name, value string) (d time.Duration) {
		if err == nil {
			if d, err = time.ParseDuration(value); err != nil || d < 0 {
				err = fmt.Errorf("%s.%s: %q is not a duration such as 5m", field, name, value)
			}
		}
		return d
	}
	parsed.soak = duration("minSuccessTime", cmp.Or(config.MinSuccessTime, "0"))
	if deadline := config.ProgressDeadline; deadline != "" && deadline != "None" {
		parsed.deadline = new(duration("progressDeadline", deadline))
	}
	parsed.failures, parsed.concurrency = config.MaxFailures, concurrency
	share := func(name string, value intstr.IntOrString) {
		if _, bad := intstr.GetScaledValueFromIntOrPercent(&value, 1, true); bad != nil && err == nil {
			err = fmt.Errorf("%s.%s: %q is neither a number nor a percentage", field, name, value.StrVal)
		}
	}
	share("maxFailures", config.MaxFailures)
	share("maxConcurrency", concurrency)
	return parsed, err
}

func (s Strategy) isMandatory(g Group) bool {
	return slices.ContainsFunc(s.mandatory, func(m scorev1alpha1.MandatoryDecisionGroup) bool {
		if m.GroupName != "" {
			return m.GroupName == g.Name
		}
		return m.GroupIndex == g.Index
	})
}

// size returns the number of clusters of n, percentages rounded up; otherwise if it is not from 1 to n.
func size(share intstr.IntOrString, n, otherwise int) int {
	size, err := intstr.GetScaledValueFromIntOrPercent(&share, n, true)
	if err != nil || size <= 0 || size > n {
		return otherwise
	}
	return size
}
