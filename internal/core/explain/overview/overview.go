// Package overview condenses the fleet into rows: one per cluster, one per template, and one per thing that needs
// attention. `argosy status` and the console use it.
package overview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// ClusterState is the state of a member cluster.
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
	// What is the problem in one sentence, without its age; empty if there is none. Next is what to do.
	What, Next string
}

// OK reports whether nothing needs attention.
func (v Verdict) OK() bool { return v.State == Ready }

// Judge returns the verdict on a cluster.
func Judge(c *clusterv1alpha1.Cluster) Verdict {
	next := "argosy why cluster " + c.Name
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

// ClusterRow is a cluster in a table.
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
}

// Amount is how much of a resource is requested, of all that can be.
type Amount struct {
	Used int64 `json:"used"`
	All  int64 `json:"all"`
}

// RowOfCluster returns the row of a cluster.
func RowOfCluster(c *clusterv1alpha1.Cluster) ClusterRow {
	v := Judge(c)
	row := ClusterRow{Name: c.Name, State: v.State, What: v.What, Next: v.Next, Mode: string(c.Spec.SyncMode),
		Region: c.Spec.Region, Provider: c.Spec.Provider, Version: c.Status.KubernetesVersion, Taints: Repelling(c)}
	if v.Condition != nil && !v.Condition.LastTransitionTime.IsZero() {
		row.Since = v.Condition.LastTransitionTime.Unix()
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

// WorkloadState is the state of a template in the fleet.
type WorkloadState string

// The states of templates, the worst first.
const (
	Refused     WorkloadState = "Refused"     // a member refuses the object
	Unplaced    WorkloadState = "Unplaced"    // the scheduler found no place
	Unhealthy   WorkloadState = "Unhealthy"   // it is applied and not healthy in a cluster
	Progressing WorkloadState = "Progressing" // not applied everywhere yet
	Deleting    WorkloadState = "Deleting"
	Healthy     WorkloadState = "Healthy"
)

var workloadStates = []WorkloadState{Refused, Unplaced, Unhealthy, Progressing, Deleting, Healthy}

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

// Place is a template in a cluster.
type Place struct {
	Cluster  string        `json:"cluster"`
	State    WorkloadState `json:"state"`
	Replicas int32         `json:"replicas,omitempty"`
	What     string        `json:"what,omitempty"`
}

// WorkloadRow is a template in a table.
type WorkloadRow struct {
	Object
	State WorkloadState `json:"state"`
	// What explains the state; empty for healthy templates.
	What string `json:"what,omitempty"`
	// Since is when the scheduler last gave its verdict, in seconds since 1970.
	Since int64 `json:"since,omitempty"`
	// Ready of Wanted replicas are ready; both are 0 for kinds without replicas.
	Ready  int64 `json:"ready"`
	Wanted int64 `json:"wanted"`
	// Policy is the policy that has claimed it, NAMESPACE/NAME.
	Policy string `json:"policy,omitempty"`
	// Places are its clusters, the worst first, then by name.
	Places []Place `json:"places,omitempty"`
}

func sumReplicas(targets []workv1alpha2.TargetCluster) (sum int64) {
	for _, t := range targets {
		sum += int64(t.Replicas)
	}
	return sum
}

// RowOfWorkload returns the row of a binding's template.
func RowOfWorkload(b workv1alpha2.Binding) WorkloadRow {
	spec, status := b.BindingSpec(), b.BindingStatus()
	gk := match.GroupKind(spec.Resource.APIVersion, spec.Resource.Kind)
	row := WorkloadRow{Object: Object{Group: gk.Group, Kind: gk.Kind, Namespace: spec.Resource.Namespace,
		Name: spec.Resource.Name}, Wanted: int64(spec.Replicas)}
	if holder, claimed := propagate.Claimed(b); claimed {
		row.Policy = text.Path(holder.Namespace, holder.Name)
	}
	reports := map[string]workv1alpha2.AggregatedStatusItem{}
	for _, item := range status.AggregatedStatus {
		reports[item.ClusterName] = item
	}
	// With duplicated replicas, each cluster runs all of them. With divided ones, some may have no cluster yet.
	row.Wanted = max(row.Wanted, sumReplicas(spec.Clusters))
	for _, target := range spec.Clusters {
		p := placeOf(target, reports)
		if item, found := reports[target.Name]; found {
			row.Ready += readyIn(item)
		}
		row.Places = append(row.Places, p)
	}
	slices.SortFunc(row.Places, func(a, b Place) int {
		return cmp.Or(a.State.rank()-b.State.rank(), strings.Compare(a.Cluster, b.Cluster))
	})

	scheduled := meta.FindStatusCondition(status.Conditions, workv1alpha2.Scheduled)
	if scheduled != nil && !scheduled.LastTransitionTime.IsZero() {
		row.Since = scheduled.LastTransitionTime.Unix()
	}
	switch {
	case b.GetDeletionTimestamp() != nil:
		row.State = Deleting
	case scheduled != nil && scheduled.Status == metav1.ConditionFalse:
		row.State, row.What = Unplaced, scheduled.Message
	case len(row.Places) == 0 && scheduled == nil:
		row.State = Progressing
	case len(row.Places) == 0:
		row.State, row.What = Unplaced, "it is in no cluster"
	default:
		row.State, row.What = row.Places[0].State, row.Places[0].What
	}
	return row
}

// rank orders states, the worst first.
func (s WorkloadState) rank() int { return slices.Index(workloadStates, s) }

func placeOf(target workv1alpha2.TargetCluster, reports map[string]workv1alpha2.AggregatedStatusItem) Place {
	p := Place{Cluster: target.Name, Replicas: target.Replicas, State: Progressing}
	item, reported := reports[target.Name]
	switch {
	case !reported:
	case !item.Applied && item.AppliedMessage != "":
		p.State, p.What = Refused, item.AppliedMessage
	case !item.Applied:
	case item.Health == workv1alpha1.ResourceUnhealthy:
		p.State, p.What = Unhealthy, "the object is not healthy"
	default:
		p.State = Healthy
	}
	return p
}

// readyIn returns the number of ready replicas that a cluster reports, by the fields that workload kinds share.
func readyIn(item workv1alpha2.AggregatedStatusItem) int64 {
	if item.Status == nil {
		return 0
	}
	var s struct {
		ReadyReplicas int64 `json:"readyReplicas"`
		NumberReady   int64 `json:"numberReady"`
	}
	if json.Unmarshal(item.Status.Raw, &s) != nil {
		return 0
	}
	return max(s.ReadyReplicas, s.NumberReady)
}

// Sentence explains the state of a row for people who do not see the row.
func (r WorkloadRow) Sentence() string {
	where := ""
	bad := 0
	for _, p := range r.Places {
		if p.State == r.State {
			bad++
		}
	}
	if bad > 0 {
		where = " in " + r.Places[0].Cluster
		if bad > 1 {
			where += fmt.Sprintf(" and %d more", bad-1)
		}
	}
	switch r.State {
	case Refused:
		return "refused" + where + ": " + r.What
	case Unplaced:
		return "not placed: " + r.What
	case Unhealthy:
		return "not healthy" + where
	}
	return ""
}
