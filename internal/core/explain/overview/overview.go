// Package overview condenses the fleet into rows: one per cluster, one per template, and one per thing that needs
// attention. `argosy status` and the console use it.
package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

type ClusterState string

// The states of clusters, the worst first.
const (
	NotReady   ClusterState = "NotReady"
	WorksKept  ClusterState = "WorksKept" // ready, but somebody deleted many of its Works
	Leaving    ClusterState = "Leaving"
	NotSeenYet ClusterState = "NotSeenYet"
	Ready      ClusterState = "Ready"
)

// Verdict is the state of a cluster, and what to do about it.
type Verdict struct {
	State ClusterState
	// Condition explains the state; nil if there is none.
	Condition *metav1.Condition
	// What is the problem in one sentence, without its age; empty if there is none. Next is what to do,
	// with commands in backquotes.
	What, Next string
}

// OK reports whether nothing needs attention.
func (v Verdict) OK() bool { return v.State == Ready }

// Judge returns the verdict on a cluster.
func Judge(c *clusterv1alpha1.Cluster) Verdict {
	next := "`argosy why cluster " + c.Name + "`"
	ready := membership.Readiness(c)
	kept := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionWorksKept)
	switch {
	case c.DeletionTimestamp != nil:
		return Verdict{Leaving, ready, "it is being removed", next}
	case ready == nil:
		return Verdict{NotSeenYet, nil, "its status has not been collected yet", next}
	case ready.Status != metav1.ConditionTrue:
		return Verdict{NotReady, ready, ready.Reason + ": " + ready.Message, next}
	case kept != nil && kept.Status == metav1.ConditionTrue:
		return Verdict{WorksKept, kept, kept.Reason + ": " + kept.Message,
			"find out who deleted them, for example in the hub's audit log; their objects are not deleted, and this warning clears after a minute without further deletions"}
	}
	return Verdict{State: Ready, Condition: ready}
}

// Repelling returns the taints that keep new workloads out of a cluster.
func Repelling(c *clusterv1alpha1.Cluster) (taints []string) {
	for _, t := range c.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, t.ToString())
		}
	}
	return taints
}

type ClusterRow struct {
	Name  string       `json:"name"`
	State ClusterState `json:"state"`
	// Since is when the state began, in seconds since 1970; 0 if unknown.
	Since    int64  `json:"since,omitempty"`
	What     string `json:"what,omitempty"`
	Next     string `json:"next,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Region   string `json:"region,omitempty"`
	Provider string `json:"provider,omitempty"`
	Version  string `json:"version,omitempty"`
	// ReadyNodes of Nodes are ready.
	Nodes      int32 `json:"nodes"`
	ReadyNodes int32 `json:"readyNodes"`
	// CPU is in millicores, Memory in bytes.
	CPU    *Amount  `json:"cpu,omitempty"`
	Memory *Amount  `json:"memory,omitempty"`
	Pods   *Amount  `json:"pods,omitempty"`
	Taints []string `json:"taints,omitempty"`
	// Brakes are the namespaces in which the hub is stopped; kube-system is the whole cluster.
	Brakes []string `json:"brakes,omitempty"`
	// FailoverPaused is why no workload leaves the lost cluster; empty if failover is not paused for it.
	FailoverPaused string `json:"failoverPaused,omitempty"`
}

// Amount is how much of a resource is requested, of all that can be.
type Amount struct {
	Used int64 `json:"used"`
	All  int64 `json:"all"`
}

func RowOfCluster(c *clusterv1alpha1.Cluster) ClusterRow {
	v := Judge(c)
	row := ClusterRow{Name: c.Name, State: v.State, What: v.What, Next: v.Next, Mode: string(c.Spec.SyncMode),
		Region: c.Spec.Region, Provider: c.Spec.Provider, Version: c.Status.KubernetesVersion, Taints: Repelling(c),
		Brakes: c.Status.Brakes}
	if v.Condition != nil {
		row.Since = seconds(v.Condition.LastTransitionTime)
	}
	if paused := meta.FindStatusCondition(c.Status.Conditions,
		clusterv1alpha1.ClusterConditionFailoverPaused); paused != nil && paused.Status == metav1.ConditionTrue {
		row.FailoverPaused = paused.Message
	}
	if n := c.Status.NodeSummary; n != nil {
		row.Nodes, row.ReadyNodes = n.TotalNum, n.ReadyNum
	}
	if s := c.Status.ResourceSummary; s != nil {
		amount := func(name corev1.ResourceName, value func(corev1.ResourceList) int64) *Amount {
			if _, known := s.Allocatable[name]; !known {
				return nil
			}
			return &Amount{Used: value(s.Allocated) + value(s.Allocating), All: value(s.Allocatable)}
		}
		row.CPU = amount(corev1.ResourceCPU, func(l corev1.ResourceList) int64 { return l.Cpu().MilliValue() })
		row.Memory = amount(corev1.ResourceMemory, func(l corev1.ResourceList) int64 { return l.Memory().Value() })
		row.Pods = amount(corev1.ResourcePods, func(l corev1.ResourceList) int64 { return l.Pods().Value() })
	}
	return row
}

// The states of templates in the fleet, beside those in a cluster.
const (
	Unplaced state.State = "Unplaced" // the scheduler found no place
	Deleting state.State = "Deleting"
)

// Object names a template.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is "Deployment.apps shop/web".
func (o Object) String() string {
	return text.Object(schema.GroupKind{Group: o.Group, Kind: o.Kind}.String(), o.Namespace, o.Name)
}

// WorkloadRow is a template in a table.
type WorkloadRow struct {
	Object
	State state.State `json:"state"`
	// Bad is true for a state that is a problem.
	Bad bool `json:"bad,omitempty"`
	// What explains the state; empty for healthy templates.
	What string `json:"what,omitempty"`
	// Since is when the state began, in seconds since 1970; 0 if unknown.
	Since int64 `json:"since,omitempty"`
	// Ready of Wanted replicas are ready; both are 0 for kinds without replicas, and for those that run once.
	Ready  int64 `json:"ready"`
	Wanted int64 `json:"wanted"`
	// Policy is the policy that has claimed it, NAMESPACE/NAME.
	Policy string `json:"policy,omitempty"`
	// Places are its clusters, the worst first, then by name.
	Places []state.Place `json:"places,omitempty"`
}

// RowOfWorkload returns the row of a binding's template.
func RowOfWorkload(b workv1alpha2.Binding, f state.Facts) WorkloadRow {
	spec, status := b.BindingSpec(), b.BindingStatus()
	gk := match.GroupKind(spec.Resource.APIVersion, spec.Resource.Kind)
	row := WorkloadRow{Object: Object{Group: gk.Group, Kind: gk.Kind, Namespace: spec.Resource.Namespace,
		Name: spec.Resource.Name}, Places: state.Places(b, f)}
	if claim, claimed := propagate.Claimed(b); claimed {
		row.Policy = text.Path(claim.Namespace, claim.Name)
	}
	// With duplicated replicas, each cluster runs all of them. With divided ones, some may have no cluster yet.
	placed := int64(0)
	for _, p := range row.Places {
		row.Ready, row.Wanted, placed = row.Ready+p.Ready, row.Wanted+p.Wanted, placed+int64(p.Replicas)
	}
	if !interpret.RunsOnce(gk) {
		row.Wanted += max(0, int64(spec.Replicas)-placed)
	}
	slices.SortFunc(row.Places, func(a, b state.Place) int {
		return cmp.Or(a.State.Rank()-b.State.Rank(), strings.Compare(a.Cluster, b.Cluster))
	})

	scheduled := meta.FindStatusCondition(status.Conditions, workv1alpha2.Scheduled)
	unwritten := aggregate.Unwritten(status.Conditions)
	switch {
	case b.GetDeletionTimestamp() != nil:
		row.State = Deleting
	case len(unwritten) > 0:
		row.State, row.What = state.Failed, text.Cut(strings.Join(unwritten, "; "), 1<<10)
	case aggregate.RunEnd(status.Conditions) != nil && len(status.AggregatedStatus) == 0:
		row.State, row.What = state.AfterRun(dispatch.RunEnd(aggregate.RunEnd(status.Conditions).Reason))
	case scheduled != nil && scheduled.Status == metav1.ConditionFalse:
		row.State, row.What = Unplaced, scheduled.Message
		row.Since = seconds(scheduled.LastTransitionTime)
	case len(row.Places) == 0 && scheduled == nil:
		row.State = state.Progressing
	case len(row.Places) == 0 && spec.Replicas == 0 && spec.ReplicaRequirements != nil:
		row.State = state.Healthy // it is scaled to zero
	case len(row.Places) == 0:
		row.State, row.What = Unplaced, "it is in no cluster"
	default:
		row.State, row.What, row.Since = row.Places[0].State, row.Places[0].What, row.Places[0].Since
	}
	row.Bad = row.State.Bad() || row.State == Unplaced
	return row
}

// Sentence explains the state of a row in one of its places, or as a whole for -1, for people who do not see the row.
func (r WorkloadRow) Sentence(place int) string {
	of, what, where := r.State, r.What, ""
	if place >= 0 {
		p, others := r.Places[place], -1
		for _, other := range r.Places {
			if other.State == p.State {
				others++
			}
		}
		of, what, where = p.State, p.What, " in "+p.Cluster
		if others > 0 {
			where += fmt.Sprintf(" and %d more", others)
		}
	}
	switch of {
	case state.Failed:
		return "not applied" + where + ": " + what
	case Unplaced:
		return "not placed: " + what
	case state.Unhealthy:
		return strings.TrimSuffix("not healthy"+where+": "+what, ": ")
	}
	return ""
}
