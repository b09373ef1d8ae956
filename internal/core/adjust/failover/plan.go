// Package failover plans which workloads leave a cluster that is lost, drained or unhealthy for them, and where they go
// instead.
//
// Plan is a pure function of the fleet, the bindings and the time. The controller executes it; other callers only read
// it. One decision, in order: causes.go (which cluster should be left, and when) → losslimit.go, volumes.go (what
// forbids it) → replace.go (where the replicas go, found by core/schedule) → finish.go (when the old copy may go).
package failover

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Options are the settings of the hub.
type Options struct {
	// SchedulerName is the scheduler whose bindings are moved.
	SchedulerName string `json:"-"`
	// Off disables evictions. Earlier evictions still end.
	Off bool `json:"off,omitempty"`
	// AllBindings, the default, moves bindings out of lost clusters also if their policy has no spec.failover.cluster.
	AllBindings bool `json:"allBindings"`
	// Tolerations apply to the taints not-ready and unreachable where a placement does not mention them.
	Tolerations membership.TolerationDefaults `json:"tolerations"`
	// BrakeShare is the share of the fleet above which clusters lost at about the same time are not evicted.
	BrakeShare float64 `json:"brakeShare"`
	// EvictionsPerMinute bounds the evictions of the fleet.
	EvictionsPerMinute int `json:"evictionsPerMinute"`
}

// Defaults are the settings of a hub without configuration.
var Defaults = Options{AllBindings: true, Tolerations: membership.DefaultTolerations, BrakeShare: 0.5,
	EvictionsPerMinute: 3000}

// UnmarshalJSON reads settings. One that is missing has its default.
func (o *Options) UnmarshalJSON(raw []byte) error {
	type plain Options
	read := plain(Defaults)
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	*o = Options(read)
	return nil
}

// MovesOutOfLost reports whether the hub moves a binding out of lost clusters.
func (o Options) MovesOutOfLost(b *workv1alpha2.ResourceBindingSpec) bool {
	return !o.Off && (o.AllBindings || b.Failover != nil && b.Failover.Cluster != nil)
}

// Input determines a plan. It is read-only.
type Input struct {
	Options
	// Fleet has the clusters that are not being deleted.
	Fleet schedule.Snapshot
	// Room is their free room, of which the plan takes what it needs. Default: the room by their summaries.
	Room schedule.Room
	// Registered are the names of all Clusters, also of those that are being deleted.
	Registered map[string]bool
	// Bindings are all bindings of the hub.
	Bindings []workv1alpha2.Binding
	// Recent are the times of the evictions that were executed within the last minute.
	Recent []time.Time
	// Facts reads the template and the policy of a binding; nil knows nothing of them.
	Facts func(workv1alpha2.Binding) (Facts, error)
	// HasWork reports whether a Work of the binding exists in the cluster; nil means no.
	HasWork func(b workv1alpha2.Binding, cluster string) bool
}

// Plan has the actions for now, the waiting bindings, and the time of the next plan.
type Plan struct {
	// Evictions has at most one eviction per binding.
	Evictions []Eviction
	// Finishes has at most one entry per binding, and none for a binding that has an eviction.
	Finishes []Finish
	// Waiting is sorted by workload, then by cluster.
	Waiting []Waiting
	// Paused are the clusters that workloads would leave if not too many were lost, by name, with the reason for people.
	Paused map[string]string
	// Next is when to plan again though nothing happens; zero is never.
	Next time.Time
}

// Eviction moves a binding away from a cluster. It is one write of the binding.
type Eviction struct {
	Binding workv1alpha2.Binding
	// From is the cluster that is left.
	From string
	// Since is when its taint was added, or when the workload became Unhealthy there.
	Since time.Time
	// Lost is true if the cluster did not respond when it was left.
	Lost bool
	// Placement is the whole new spec.clusters, sorted by name. Affinity is the affinity term that it uses; empty for the
	// one in use.
	Placement []workv1alpha2.TargetCluster
	Affinity  string
	// To are the clusters that take over, with the replicas that each gains.
	To []workv1alpha2.TargetCluster
	// Tasks are the graceful eviction tasks to add; one, except when a binding fails back, or leaves an affinity term of
	// which several clusters are lost.
	Tasks []workv1alpha2.GracefulEvictionTask
	// Reschedule, if not nil, is the time of a request to the scheduler to start again at the first affinity term.
	Reschedule *metav1.Time
	// Warnings are for the owner of the workload.
	Warnings []string
}

// Reason returns the reason of the eviction, such as TaintUntolerated.
func (e *Eviction) Reason() string { return e.Tasks[0].Reason }

// Finish ends graceful eviction tasks of a binding.
type Finish struct {
	Binding workv1alpha2.Binding
	// At is the time of the plan.
	At time.Time
	// Tasks are the tasks that end.
	Tasks []Ended
	// Forget are the clusters whose departure has ended: no return is expected.
	Forget []string
}

// Ended is a task that ends, and why.
type Ended struct {
	Task   workv1alpha2.GracefulEvictionTask
	Result Result
	// Since is when the cause of the eviction began; zero if that is not known.
	Since time.Time
}

// Result is why a task ended.
type Result string

// The results.
const (
	// ReplacementHealthy: the replacement is healthy.
	ReplacementHealthy Result = "ReplacementHealthy"
	// EndedByUser: a user set suppressDeletion to false.
	EndedByUser Result = "EndedByUser"
	// ClusterRemoved: the cluster is no longer a member.
	ClusterRemoved Result = "ClusterRemoved"
)

// Code is why something waits.
type Code string

// The codes.
const (
	// Tolerated waits until the toleration ends.
	Tolerated Code = "Tolerated"
	// Paused waits because too many clusters were lost at the same time.
	Paused Code = "FailoverPaused"
	// NothingFits waits because no other cluster takes the workload.
	NothingFits Code = "NothingFits"
	// Everywhere waits until the lost cluster is back. Every other cluster that may have a copy has one.
	Everywhere Code = "CopiesEverywhere"
	// Budget waits because the limit of evictions per minute is reached.
	Budget Code = "EvictionBudget"
	// OneAtATime waits until an earlier eviction of the same workload has ended.
	OneAtATime Code = "OneClusterAtATime"
	// Volumes waits because the workload has persistent volumes.
	Volumes Code = "PersistentVolumes"
	// Suspended waits because dispatching is suspended.
	Suspended Code = "DispatchingSuspended"
	// TemplatePaused waits because the template is paused.
	TemplatePaused Code = "TemplatePaused"
	// WorkloadFirst waits until workloads of the same policy have left the cluster.
	WorkloadFirst Code = "WorkloadFirst"
	// ReplacementNotHealthy keeps the old copy until the replacement is healthy.
	ReplacementNotHealthy Code = "ReplacementNotHealthy"
	// GracePeriod keeps the old copy for the grace period, so that members which scale the others can do so.
	GracePeriod Code = "GracePeriod"
	// GracePeriodExceeded is ReplacementNotHealthy after the grace period. The old copy stays.
	GracePeriodExceeded Code = "GracePeriodExceeded"
	// KeptByPolicy keeps the old copy until a user lets it go: purgeMode is Never.
	KeptByPolicy Code = "KeptByPolicy"
	// StillRunning waits until the old copy is deleted, or its cluster responds so that it can be: purgeMode is Directly.
	StillRunning Code = "OldCopyNotDeleted"
	// Unread waits because the template or its policy could not be read.
	Unread Code = "TemplateUnread"
)

// Codes returns all codes, such as for metrics by code.
func Codes() []Code {
	return []Code{Tolerated, Paused, NothingFits, Everywhere, Budget, OneAtATime, Volumes, Suspended, TemplatePaused,
		WorkloadFirst, ReplacementNotHealthy, GracePeriod, GracePeriodExceeded, KeptByPolicy, StillRunning, Unread}
}

// NeedsUser reports whether the wait may not end without a user.
func (c Code) NeedsUser() bool {
	return slices.Contains([]Code{NothingFits, Volumes, Suspended, TemplatePaused, GracePeriodExceeded, Unread}, c)
}

// Waiting is a binding that should leave a cluster, or has left it, and what it waits for.
type Waiting struct {
	Binding types.NamespacedName
	// UID of the binding.
	UID types.UID
	// Resource is the template.
	Resource workv1alpha2.ObjectReference
	From     string
	// Evicted is true if the replacement is placed and the old copy is kept.
	Evicted bool
	// Reason of the eviction, such as TaintUntolerated.
	Reason string
	Code   Code
	// Message is for people.
	Message string
	// Since is when the cause began, Until when the wait ends by itself; zero if that is not known.
	Since, Until time.Time
}

// Reasons and producers of tasks in spec.gracefulEvictionTasks. Karmada's clients know them.
//
//reference:none
const (
	ReasonTaintUntolerated   = "TaintUntolerated"
	ReasonApplicationFailure = "ApplicationFailure"
	// ReasonFailback is the return to a preferred cluster.
	ReasonFailback = "Failback"

	producerTaints             = "TaintManager"
	producerApplication        = "resource-binding-application-failover-controller"
	producerClusterApplication = "cluster-resource-binding-application-failover-controller"
	producerFailback           = "failover-controller"
)

// defaultGracePeriod is the time until a warning about a replacement that is not healthy, if its task sets none.
const defaultGracePeriod = 10 * time.Minute

// Make plans. The same input gives the same plan.
func Make(in Input, now time.Time) Plan {
	p := &planner{Input: in, now: now, plan: Plan{Paused: map[string]string{}}}
	if p.Room == nil {
		p.Room = p.Fleet.Summaries()
	}
	var resume time.Time
	p.pausedClusters, resume = pausedClusters(in.Fleet, in.BrakeShare, now)
	p.wake(resume)
	p.bindings = slices.Clone(in.Bindings)
	slices.SortFunc(p.bindings, func(a, b workv1alpha2.Binding) int {
		if x, y := isWorkload(a), isWorkload(b); x != y { // what has no replicas follows the workloads of its policy
			if x {
				return -1
			}
			return 1
		}
		return schedule.Urgency(a, b)
	})
	p.index()
	p.limit()
	for i := range p.bindings {
		p.look(i)
	}
	slices.SortStableFunc(p.plan.Waiting, func(a, b Waiting) int {
		return cmp.Or(strings.Compare(a.Binding.Namespace, b.Binding.Namespace),
			strings.Compare(a.Binding.Name, b.Binding.Name), strings.Compare(a.From, b.From))
	})
	return p.plan
}

// planner has the state of one plan.
type planner struct {
	Input
	now  time.Time
	plan Plan
	// pausedClusters are the lost clusters from which nothing is evicted, with the reason for people.
	pausedClusters map[string]string
	// bindings of the input in planning order, with the moves planned so far.
	bindings []workv1alpha2.Binding
	// placed counts the workloads of a policy that are placed in a cluster and have not finished there.
	// occupied also counts those that are leaving it.
	placed, occupied map[policyCluster]int
	// left is the number of evictions that may still be made, and again when there may be more.
	left  int
	again time.Time
}

// policyCluster is a policy, by its permanent ID, and a cluster.
type policyCluster struct{ policy, cluster string }

// isWorkload reports whether a binding has replicas.
func isWorkload(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	return spec.Replicas > 0 || len(spec.Components) > 0
}

// policyOf returns the permanent ID of the policy that claims b; empty without one.
func policyOf(b workv1alpha2.Binding) string {
	if id := b.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel]; id != "" {
		return id
	}
	return b.GetLabels()[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel]
}

// index counts where the workloads of each policy are.
func (p *planner) index() {
	p.placed, p.occupied = map[policyCluster]int{}, map[policyCluster]int{}
	for _, b := range p.bindings {
		p.count(b, 1)
	}
}

func (p *planner) count(b workv1alpha2.Binding, n int) {
	policy := policyOf(b)
	if policy == "" || !isWorkload(b) || b.GetDeletionTimestamp() != nil ||
		aggregate.RunEnd(b.BindingStatus().Conditions) != nil {
		return
	}
	for _, cluster := range holds(b) {
		if HasFinished(b, cluster) {
			continue // it needs the other objects no more
		}
		p.occupied[policyCluster{policy, cluster}] += n
		if workv1alpha2.HasTarget(b.BindingSpec().Clusters, cluster) {
			p.placed[policyCluster{policy, cluster}] += n
		}
	}
}

// holds returns the clusters that run or may run b: its targets and the clusters that it leaves.
func holds(b workv1alpha2.Binding) []string {
	clusters := names(b.BindingSpec().Clusters)
	for _, t := range b.BindingSpec().GracefulEvictionTasks {
		clusters = append(clusters, t.FromCluster)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// limit works out how many evictions may be made now. Tasks count too, so that a restart does not start a new minute.
func (p *planner) limit() {
	var times []time.Time
	for _, b := range p.bindings {
		for _, t := range b.BindingSpec().GracefulEvictionTasks {
			if t.CreationTimestamp != nil {
				times = append(times, t.CreationTimestamp.Time)
			}
		}
	}
	within := func(times []time.Time) []time.Time {
		times = slices.DeleteFunc(slices.Clone(times), func(t time.Time) bool { return p.now.Sub(t) >= time.Minute })
		slices.SortFunc(times, time.Time.Compare)
		return times
	}
	recent := within(p.Recent)
	if made := within(times); len(made) > len(recent) {
		recent = made
	}
	p.left = max(0, p.EvictionsPerMinute-len(recent))
	p.again = p.now.Add(time.Minute)
	if len(recent) > 0 {
		p.again = recent[0].Add(time.Minute)
	}
}

// look plans one binding.
func (p *planner) look(i int) {
	b := p.bindings[i]
	spec := b.BindingSpec()
	if b.GetDeletionTimestamp() != nil || len(spec.Clusters)+len(spec.GracefulEvictionTasks) == 0 {
		return
	}
	var causes []cause
	ours := !p.Off && schedule.PlacedBy(b, p.SchedulerName)
	if ours {
		causes = p.causes(b) // before tasks end, so that a cluster is reported as paused in each plan
	}
	if f := p.finish(b); len(f.Tasks)+len(f.Forget) > 0 {
		p.plan.Finishes = append(p.plan.Finishes, f)
		return
	}
	if !ours {
		return
	}
	if len(causes) == 0 {
		p.failBack(i)
		return
	}
	cause, ok := p.choose(b, causes)
	if !ok {
		return
	}
	s := p.snapshot(b)
	if !settled(b, s) {
		return // the scheduler acts on it first, which is an event
	}
	if w := p.forbidden(b, cause); w != nil {
		p.wait(*w)
		return
	}
	e, err := p.evict(b, cause, s)
	if err != nil {
		held := p.heldBack(b, cause.cluster)
		// Components stay where they are also if another cluster could have them.
		if cause.lost && errors.Is(err, errEverywhere) && held == "" && len(b.BindingSpec().Components) == 0 {
			p.wait(p.waiting(b, cause, Everywhere, err.Error()))
			return
		}
		p.wait(p.waiting(b, cause, NothingFits, fmt.Sprintf("no other cluster takes it: %v%s", err, held)))
		return
	}
	p.take(i, e)
}

// take adds an eviction to the plan, and counts it from then on.
func (p *planner) take(i int, e Eviction) {
	p.left--
	p.Room.Take(e.Binding, e.Placement)
	p.plan.Evictions = append(p.plan.Evictions, e)
	p.count(p.bindings[i], -1)
	moved := p.bindings[i].DeepCopyObject().(workv1alpha2.Binding)
	e.Apply(moved)
	p.bindings[i] = moved
	p.count(moved, 1)
	if remains := stays(e); remains > 0 {
		cause := cause{cluster: e.From, reason: e.Reason(), since: e.Since}
		p.wait(p.waiting(e.Binding, cause, NothingFits,
			fmt.Sprintf("%d replicas stay in cluster %q, because no other cluster has room for them%s", remains, e.From,
				p.heldBack(e.Binding, e.From))))
	}
}

// stays returns the replicas that remain in the cluster that is left.
func stays(e Eviction) int32 {
	for _, t := range e.Placement {
		if t.Name == e.From && e.Reason() != ReasonFailback {
			return t.Replicas
		}
	}
	return 0
}

// snapshot returns the fleet with the peers of b in it.
func (p *planner) snapshot(b workv1alpha2.Binding) schedule.Snapshot {
	if !schedule.Grouped(b) {
		return p.Fleet
	}
	return p.Fleet.Among(schedule.PeersOf(b, p.bindings))
}

// settled reports whether the scheduler has nothing to do about b, or has tried what it could.
func settled(b workv1alpha2.Binding, s schedule.Snapshot) bool {
	_, due := schedule.Due(b, s)
	return !due || failed(b) && b.BindingStatus().SchedulerObservedGeneration == b.GetGeneration()
}

// wait reports that something waits, and plans again when the wait ends.
func (p *planner) wait(w Waiting) {
	p.plan.Waiting = append(p.plan.Waiting, w)
	p.wake(w.Until)
}

// wake has the plan made again at a time; zero is no time.
func (p *planner) wake(at time.Time) {
	if !at.IsZero() && (p.plan.Next.IsZero() || at.Before(p.plan.Next)) {
		p.plan.Next = at
	}
}

func (p *planner) waiting(b workv1alpha2.Binding, c cause, code Code, message string) Waiting {
	return Waiting{Binding: keyOf(b), UID: b.GetUID(), Resource: b.BindingSpec().Resource, From: c.cluster,
		Reason: c.reason, Code: code, Message: message, Since: c.since}
}

// forbidden returns what prevents b from leaving a cluster; nil if nothing does.
func (p *planner) forbidden(b workv1alpha2.Binding, c cause) *Waiting {
	because := func(code Code, message string) *Waiting {
		w := p.waiting(b, c, code, message)
		return &w
	}
	spec := b.BindingSpec()
	if s := spec.Suspension; s != nil && (s.Dispatching != nil && *s.Dispatching || s.DispatchingOnClusters != nil) {
		return because(Suspended, "dispatching is suspended, so a replacement would not start; resume it to let the workload move")
	}
	if p.followsWorkloads(b, c.cluster) {
		return because(WorkloadFirst, "workloads of the same policy are still in the cluster")
	}
	if p.left <= 0 {
		w := because(Budget, fmt.Sprintf("the limit of %d evictions per minute is reached", p.EvictionsPerMinute))
		w.Until = p.again
		return w
	}
	facts, err := p.facts(b)
	switch {
	case err != nil:
		return because(Unread, err.Error())
	case facts.Volumes && !facts.MoveVolumes:
		return because(Volumes, fmt.Sprintf(
			"it has persistent volumes, which stay in the cluster; to move it without its data, set the annotation %s: \"true\" on its policy", wellknown.MoveVolumesAnnotation))
	case facts.Paused:
		return because(TemplatePaused,
			"the template is paused, so a replacement would not start; set spec.paused to false to let the workload move")
	}
	return nil
}

// followsWorkloads reports whether b stays in a cluster because workloads of its policy are placed there. Once they are
// placed elsewhere, their new pods may need b there. The old copy of b stays until they have left.
func (p *planner) followsWorkloads(b workv1alpha2.Binding, cluster string) bool {
	return !isWorkload(b) && p.placed[policyCluster{policyOf(b), cluster}] > 0
}

func (p *planner) facts(b workv1alpha2.Binding) (Facts, error) {
	if p.Facts == nil {
		return Facts{}, nil
	}
	return p.Facts(b)
}

// membersScale reports whether each member decides how many replicas of b it runs.
func (p *planner) membersScale(b workv1alpha2.Binding) bool {
	facts, err := p.facts(b)
	return err == nil && facts.OwnScale && isWorkload(b)
}

// takesOver returns the clusters that take over in a new placement of b, with the replicas that each gains. If members
// decide how many replicas they run, only those with a new copy gain some.
func (p *planner) takesOver(b workv1alpha2.Binding,
	placement []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	has := b.BindingSpec().Clusters
	to := gains(has, placement)
	if p.membersScale(b) {
		to = slices.DeleteFunc(to, func(t workv1alpha2.TargetCluster) bool { return workv1alpha2.HasTarget(has, t.Name) })
	}
	return to
}

// evict finds a replacement and makes the eviction.
func (p *planner) evict(b workv1alpha2.Binding, c cause, s schedule.Snapshot) (Eviction, error) {
	to, err := replace(b, c, s, p.Room.Free(b))
	if err != nil {
		return Eviction{}, err
	}
	e := Eviction{Binding: b, From: c.cluster, Since: c.since, Lost: c.lost, Placement: to.clusters,
		Affinity: to.affinity, To: p.takesOver(b, to.clusters)}
	for _, left := range c.dueCauses() {
		if !slices.Contains(to.from, left.cluster) {
			continue
		}
		replicas := to.moved
		if len(to.from) > 1 {
			replicas = workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, left.cluster)
		}
		task := p.task(b, left, replicas)
		var warnings []string
		task.PreservedLabelState, warnings = preserved(left.preserve, b, left.cluster)
		e.Warnings = append(e.Warnings, warnings...)
		e.Tasks = append(e.Tasks, task)
	}
	if change := revisionChange(b, to.from, e.To, newCopies(b, e.To)); change != "" {
		e.Tasks[0].Message = text.Cut(e.Tasks[0].Message+"; "+change, 1024) // as the API allows
	}
	p.plan.Waiting = slices.DeleteFunc(p.plan.Waiting, func(w Waiting) bool {
		return w.Binding == keyOf(b) && w.Code == OneAtATime && slices.Contains(to.from, w.From)
	})
	return e, nil
}

// task returns the graceful eviction task of a binding that leaves a cluster.
func (p *planner) task(b workv1alpha2.Binding, c cause, replicas int32) workv1alpha2.GracefulEvictionTask {
	at := metav1.NewTime(p.now)
	t := workv1alpha2.GracefulEvictionTask{
		FromCluster: c.cluster, PurgeMode: c.purge, Reason: c.reason, Message: c.message, Producer: c.producer,
		GracePeriodSeconds: c.grace, CreationTimestamp: &at, ClustersBeforeFailover: names(b.BindingSpec().Clusters),
	}
	if replicas > 0 {
		t.Replicas = &replicas
	}
	if c.purge == policyv1alpha1.PurgeModeNever {
		t.SuppressDeletion = new(true)
	}
	return t
}

func keyOf(b workv1alpha2.Binding) types.NamespacedName {
	return types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}
}

func names(targets []workv1alpha2.TargetCluster) []string {
	out := make([]string, len(targets))
	for i := range targets {
		out[i] = targets[i].Name
	}
	return out
}
