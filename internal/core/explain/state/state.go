// Package state decides how a template is doing in each of its clusters. The console, `argosy why` and `argosy status`
// show its answer.
package state

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
)

// State is the state of a template in a cluster.
type State string

// The states.
const (
	Failed      State = "Failed"      // it is missing or outdated there, and waiting does not help
	Unhealthy   State = "Unhealthy"   // it is there, but not healthy, or its pods do not run
	Lost        State = "Lost"        // the cluster is not ready, so that its last report is outdated
	Progressing State = "Progressing" // it is being applied, or not known to be healthy yet
	Suspended   State = "Suspended"   // dispatching is suspended
	Leaving     State = "Leaving"     // it is being removed
	Healthy     State = "Healthy"
	Ended       State = "Ended" // its run has ended, so that nothing is sent there
)

// All are the states, the worst first.
var All = []State{Failed, Unhealthy, Lost, Progressing, Suspended, Leaving, Healthy, Ended}

// Bad reports whether a state is a problem.
func (s State) Bad() bool { return s == Failed || s == Unhealthy || s == Lost }

// Place is how a template is doing in a cluster.
type Place struct {
	Cluster  string `json:"cluster"`
	State    State  `json:"state"`
	Replicas int32  `json:"replicas,omitempty"`
	// Ready of Wanted pods are ready. Both are 0 for kinds without replicas, and for those that run once.
	Ready  int64 `json:"ready,omitempty"`
	Wanted int64 `json:"wanted,omitempty"`
	// What has the reason of the hub or of the cluster if the state is Failed, a summary of the status if it is
	// Unhealthy, the number of pods that do not exist if it is Progressing, and why it is missing there if it is Ended.
	What string `json:"what,omitempty"`
	// Since is when it became unhealthy, in seconds since 1970; 0 if unknown.
	Since int64 `json:"since,omitempty"`
}

// Seen is what the hub knows about a template in a cluster.
type Seen struct {
	Kind   schema.GroupKind
	Target workv1alpha2.TargetCluster
	// Report is the cluster's part of the status of the binding; nil if there is none.
	Report *workv1alpha2.AggregatedStatusItem
	// Unsent is why the hub cannot write the Work; empty if it can.
	Unsent string
	// Missing is true if the cluster is not in the fleet, Leaving if it leaves it, Lost if it is not ready.
	Missing, Leaving, Lost bool
	Suspended              bool
	// Troubled is true if pods of the template do not run there.
	Troubled bool
	// OwnScale is true if autoscalers in the members set the replicas.
	OwnScale bool
	// Outdated is true if what the cluster has applied is older than the Work.
	Outdated bool
	// RunEnd is how the run of the template ended; empty if it did not. After the end, a cluster without a report gets no
	// Work.
	RunEnd dispatch.RunEnd
}

// Facts are what a binding does not have.
type Facts struct {
	// Cluster returns a cluster, or nil if it is not in the fleet. Cluster itself is nil if the clusters are unknown.
	Cluster func(name string) *clusterv1alpha1.Cluster
	// Troubled are the workloads with pods that do not run, as far as they are known.
	Troubled Troubled
}

// See returns what is known about the template of a binding in one of its targets. report is as in Seen.
func See(b workv1alpha2.Binding, target workv1alpha2.TargetCluster, report *workv1alpha2.AggregatedStatusItem,
	f Facts) Seen {
	of := b.BindingSpec().Resource
	s := Seen{Kind: match.GroupKind(of.APIVersion, of.Kind), Target: target, Report: report,
		Suspended: dispatch.Suspended(b, target.Name), Troubled: f.Troubled.ailing(b, target.Name),
		OwnScale: b.GetAnnotations()[wellknown.ScaledByAnnotation] != "",
		Unsent:   aggregate.UnwrittenIn(b.BindingStatus().Conditions, target.Name)}
	conditions, quoted := b.BindingStatus().Conditions, strconv.Quote(target.Name)
	if end := aggregate.RunEnd(conditions); end != nil {
		s.RunEnd = dispatch.RunEnd(end.Reason)
	}
	if f.Cluster != nil {
		return s.AtCluster(f.Cluster(target.Name))
	}
	stale := meta.FindStatusCondition(conditions, workv1alpha2.StatusCurrent)
	s.Lost = stale != nil && stale.Status == metav1.ConditionFalse && strings.Contains(stale.Message, quoted)
	return s
}

// AtCluster returns s with what is known about its cluster; nil if it is not in the fleet.
func (s Seen) AtCluster(c *clusterv1alpha1.Cluster) Seen {
	s.Missing, s.Leaving, s.Lost = c == nil, c != nil && c.DeletionTimestamp != nil, membership.OutageOf(c) != nil
	return s
}

// Places returns how the template of a binding is doing in its clusters, sorted by name.
func Places(b workv1alpha2.Binding, f Facts) []Place {
	targets, items := dispatch.Targets(b), b.BindingStatus().AggregatedStatus
	reports := make(map[string]*workv1alpha2.AggregatedStatusItem, len(items))
	for i := range items {
		reports[items[i].ClusterName] = &items[i]
	}
	places := make([]Place, len(targets))
	for i, target := range targets {
		places[i] = See(b, target, reports[target.Name], f).Place()
	}
	return places
}

// PlaceIn returns the state of the template of a binding in a cluster; false if the cluster is no target of it.
func PlaceIn(b workv1alpha2.Binding, c *clusterv1alpha1.Cluster, t Troubled) (p Place, placed bool) {
	for _, target := range dispatch.Targets(b) {
		if target.Name != c.Name {
			continue
		}
		var report *workv1alpha2.AggregatedStatusItem
		for i := range b.BindingStatus().AggregatedStatus {
			if item := &b.BindingStatus().AggregatedStatus[i]; item.ClusterName == c.Name {
				report = item
			}
		}
		return See(b, target, report, Facts{Troubled: t}).AtCluster(c).Place(), true
	}
	return p, false
}

// Troubled are workloads with pods that do not run.
type Troubled map[At]bool

// At is a template in a cluster.
type At struct {
	Kind                     schema.GroupKind
	Namespace, Name, Cluster string
}

// TroubledOf returns the given workloads.
func TroubledOf(all []pods.Workload) Troubled {
	t := make(Troubled, len(all))
	for _, w := range all {
		t[At{match.GroupKind(w.APIVersion, w.Kind), w.Namespace, w.Name, w.Cluster}] = len(w.Troubles) > 0
	}
	return t
}

// ailing reports whether pods of the template of b do not run in a cluster.
func (t Troubled) ailing(b workv1alpha2.Binding, cluster string) bool {
	of := b.BindingSpec().Resource
	return t[At{match.GroupKind(of.APIVersion, of.Kind), of.Namespace, of.Name, cluster}]
}

// Place decides the state.
func (s Seen) Place() Place {
	p := Place{Cluster: s.Target.Name, Replicas: s.Target.Replicas}
	r := workv1alpha2.AggregatedStatusItem{}
	if s.Report != nil {
		r = *s.Report
	}
	ended := r.Applied && aggregate.Final(s.Kind, r.Status)
	status := StatusOf(r)
	p.Ready, p.Wanted = podsOf(s.Kind, status, int64(s.Target.Replicas))
	if s.Lost {
		p.Ready = 0
	}
	switch {
	case s.RunEnd != "" && s.Report == nil:
		p.State, p.What = Ended, s.RunEnd.Message()
	case s.Missing && !ended:
		p.State, p.What = Failed, "the cluster is not in the fleet"
	case s.Unsent != "":
		p.State, p.What = Failed, s.Unsent
	case s.Leaving && s.Report == nil:
		p.State = Leaving
	case s.Lost && !ended:
		p.State = Lost
	case !r.Applied && r.AppliedMessage != "":
		p.State, p.What = Failed, r.AppliedMessage
	case !r.Applied, s.Outdated:
		p.State = Progressing
	case r.Health == workv1alpha1.ResourceUnhealthy, !ended && s.ails(r, status, p):
		p.State = Unhealthy
		if r.UnhealthySince != nil {
			p.Since = r.UnhealthySince.Unix()
		}
		if r.Status != nil {
			p.What = strings.TrimPrefix(Brief(r.Status.Raw)+"; "+Refusal(s.Kind, status, s.Target.Replicas), "; ")
			p.What = strings.TrimSuffix(p.What, "; ")
		}
	case r.Health == workv1alpha1.ResourceHealthy:
		p.State = Healthy
	default:
		p.State = Progressing
		if n := s.uncreated(status); n > 0 && !s.Suspended {
			p.What = "not created yet: " + text.Count(n, "pod")
		}
	}
	if s.Suspended && (p.State == Healthy || p.State == Progressing) {
		p.State = Suspended
	}
	return p
}

// ails reports whether a template that is not known to be unhealthy lacks pods: some do not run, or the controller
// cannot create them.
func (s Seen) ails(r workv1alpha2.AggregatedStatusItem, status map[string]any, p Place) bool {
	if r.Health == workv1alpha1.ResourceHealthy {
		return s.Troubled && p.Ready < p.Wanted
	}
	return s.Troubled || Refusal(s.Kind, status, s.Target.Replicas) != ""
}

// uncreated returns how many pods a status lacks; 0 if it does not count pods, or the member wants another number. The
// pods of a run end, so a run lacks pods only while it has none.
func (s Seen) uncreated(status map[string]any) int64 {
	counters := kind.Lookup(s.Kind).Counters
	if status == nil || s.OwnScale || counters.All == "" && counters.Existing == nil || interpret.RunsOnce(s.Kind) &&
		fields.Number(status, "active")+fields.Number(status, "succeeded")+fields.Number(status, "failed") > 0 {
		return 0
	}
	return pods.Missing(s.Kind, status, int64(s.Target.Replicas))
}

// Refusal returns why the controller of a template cannot create pods in a cluster, by its status; empty if it can.
func Refusal(kind schema.GroupKind, status map[string]any, replicas int32) string {
	return text.Plain(interpret.Refusal(kind, status, pods.Missing(kind, status, int64(replicas)) > 0), messageMost)
}

// StatusOf returns the status in a report; nil if there is none.
func StatusOf(r workv1alpha2.AggregatedStatusItem) (status map[string]any) {
	if r.Status != nil {
		_ = json.Unmarshal(r.Status.Raw, &status) // an invalid one has no fields
	}
	return status
}

// podsOf returns the ready pods in a status, and how many there should be: the given replicas, or for daemons as many
// as the cluster reports. Both are 0 for kinds that run once: their pods end.
func podsOf(kind schema.GroupKind, status map[string]any, replicas int64) (ready, wanted int64) {
	if interpret.RunsOnce(kind) {
		return 0, 0
	}
	n, counts := interpret.PodsOf(kind, status)
	switch {
	case counts && replicas == 0:
		return n.Ready, n.All
	case !counts && status != nil && status["replicas"] == nil && status["readyReplicas"] == nil:
		return 0, 0 // it does not count pods
	}
	return n.Ready, replicas
}

// Rank orders states, the worst first.
func (s State) Rank() int { return slices.Index(All, s) }

// AfterRun returns the state of a template whose run has ended and that no cluster reports any more, and why.
func AfterRun(end dispatch.RunEnd) (State, string) {
	if end == workv1alpha2.ReasonRunFailed {
		return Unhealthy, end.Message()
	}
	return Ended, end.Message()
}
