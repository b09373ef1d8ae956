package why

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Placement is the decision of the scheduler, and how it was made.
type Placement struct {
	// Binding as "ResourceBinding shop/web-deployment".
	Binding string `json:"binding"`
	// Scheduled is the condition of the binding; nil until the scheduler sets it.
	Scheduled *metav1.Condition `json:"scheduled,omitempty"`
	// LastScheduled is the time of the last run that placed it.
	LastScheduled *metav1.Time    `json:"lastScheduled,omitempty"`
	Replicas      int32           `json:"replicas,omitempty"`
	Method        schedule.Method `json:"method,omitempty"`
	// Term is the term of clusterAffinities in use. Terms lists whether each term can be satisfied now.
	Term  string `json:"term,omitempty"`
	Terms []Term `json:"terms,omitempty"`
	// Steps are the steps of a run on the current fleet, one sentence each.
	Steps []string `json:"steps,omitempty"`
	// Placed are the clusters of the binding, Run those of a run now, sorted by cluster. Run is empty if both are equal.
	Placed []workv1alpha2.TargetCluster `json:"placed,omitempty"`
	Run    []workv1alpha2.TargetCluster `json:"run,omitempty"`
	// Failure is why a run fails now; empty if it does not.
	Failure string `json:"failure,omitempty"`
	// Due is why the scheduler is about to place it again; empty if it is not.
	Due schedule.Reason `json:"due,omitempty"`
	// Fresh is the placement of a run that may move replicas; empty if it moves nothing.
	Fresh []workv1alpha2.TargetCluster `json:"fresh,omitempty"`
}

// Term is a term of clusterAffinities.
type Term struct {
	Name  string `json:"name"`
	InUse bool   `json:"inUse,omitempty"`
	// Fails is why it cannot be satisfied now; empty if it can.
	Fails string `json:"fails,omitempty"`
}

// ownBinding returns the binding if it is the template's; nil if there is none or it is another's.
func (e *explanation) ownBinding() workv1alpha2.Binding {
	if e.Binding == nil || propagate.Belongs(e.Facts.Template, e.Binding) != nil {
		return nil
	}
	return e.Binding
}

// explainBinding reports why there is no binding, or what it waits for.
func (e *explanation) explainBinding() {
	if err := propagate.Belongs(e.Facts.Template, e.Binding); err != nil {
		severity, next := Waiting, ""
		if errors.Is(err, propagate.ErrTaken) {
			severity, next = Problem, "give one of the two objects another name"
		}
		e.find(severity, "", err.Error(), next)
		return
	}
	b := e.ownBinding()
	switch {
	case b == nil && hidden(e.Missing, "resourcebindings", "clusterresourcebindings"):
	case b == nil && e.claiming != nil && !e.found(Waiting) && len(e.decision.MissingOverrides) == 0:
		// Only events have the reason.
		if w := e.latest(workv1alpha2.EventApplyPolicyFailed, workv1alpha2.EventGetReplicasFailed,
			workv1alpha2.EventGetComponentsFailed); w != nil {
			e.find(Problem, "", "there is no binding yet: "+w.Message, "fix what the message names; the hub retries by itself")
			return
		}
		e.find(Waiting, "", describe(e.claiming)+" has claimed it; its binding is about to be created", "")
	case b == nil:
	case propagate.RefusedByQuota(e.Facts.Template, b) &&
		(len(e.Quotas) > 0 || hidden(e.Missing, "federatedresourcequotas")):
		what := "a FederatedResourceQuota does not permit the requests of its last change, and clusters keep their pods"
		if w := e.latest(workv1alpha2.EventApplyPolicyFailed); w != nil {
			what += ": " + w.Message
		}
		e.find(Problem, "", what, "lower the requests, or raise the quota: `kubectl get federatedresourcequotas -n "+
			b.GetNamespace()+"`; the hub retries by itself")
	case e.claiming != nil && e.decision.Action == propagate.MakeBinding &&
		b.GetAnnotations()[wellknown.TemplateDigestAnnotation] != "" &&
		b.GetAnnotations()[wellknown.TemplateDigestAnnotation] != propagate.Digest(e.Facts.Template):
		e.find(Waiting, "", "the last change of the template is not in its binding yet", "")
	}
	if b == nil {
		return
	}
	// Conditions of the whole template, except those that are explained below.
	for _, c := range b.BindingStatus().Conditions {
		bad := metav1.ConditionFalse
		if slices.Contains(fleet.ConditionTypes(), c.Type) {
			bad = metav1.ConditionTrue
		}
		if c.Status == bad && c.Type == workv1alpha2.ImagesPulled {
			for line := range strings.SplitSeq(c.Message, "\n") {
				e.find(Waiting, "", line, "`kubectl get works -A` shows the progress; to create new pods without waiting, remove the annotation "+wellknown.PrePullAnnotation)
			}
			continue
		}
		if c.Status == bad && c.Type == workv1alpha2.SidecarsInForce {
			for line := range strings.SplitSeq(c.Message, "\n") {
				e.find(Waiting, "", "its first Work waits: "+line,
					"check that SidecarSet: `argosy why sidecarset NAME`")
			}
			continue
		}
		if aggregate.IsUnwritten(c) {
			if !e.showsUnwritten(b, c) {
				e.find(Problem, "", fmt.Sprintf("nothing new is sent: %s: %s", c.Type, c.Message),
					"do what the message says; a value that it names is in the template or in an override")
			}
			continue
		}
		if c.Status == bad && !slices.Contains([]string{workv1alpha2.Scheduled, workv1alpha2.FullyApplied}, c.Type) {
			e.find(Attention, "", fmt.Sprintf("%s: %s", c.Type, c.Message), "")
		}
	}
}

// showsUnwritten reports whether findings about clusters have all that a condition says about unwritten Works.
func (e *explanation) showsUnwritten(b workv1alpha2.Binding, c metav1.Condition) bool {
	for line := range strings.Lines(c.Message) {
		if !slices.ContainsFunc(dispatch.Targets(b), func(t workv1alpha2.TargetCluster) bool {
			return strings.Contains(line, strconv.Quote(t.Name))
		}) {
			return false
		}
	}
	return aggregate.Refused([]metav1.Condition{c}) == ""
}

// latest returns the newest warning of these reasons; nil for none.
func (e *explanation) latest(reasons ...string) *Warning {
	var newest *Warning
	for i := range e.Warnings {
		if w := &e.Warnings[i]; slices.Contains(reasons, w.Reason) && (newest == nil || newest.Last.Before(&w.Last)) {
			newest = w
		}
	}
	return newest
}

// run returns the result of the scheduler for the current fleet.
func (e *explanation) run() (schedule.Result, error) {
	b := e.ownBinding().DeepCopyObject().(workv1alpha2.Binding)
	return schedule.Schedule(b, e.fleet, e.room(b))
}

func (e *explanation) room(b workv1alpha2.Binding) schedule.Capacity {
	if e.Room != nil {
		return e.Room
	}
	return e.fleet.Room(b)
}

// explainPlacement runs the scheduler again and reports how it decides.
func (e *explanation) explainPlacement() {
	b := e.ownBinding()
	if b == nil {
		return
	}
	spec, status := b.BindingSpec(), b.BindingStatus()
	out := &Placement{Binding: describeBinding(b), Replicas: spec.Replicas, LastScheduled: status.LastScheduledTime,
		Scheduled: meta.FindStatusCondition(status.Conditions, workv1alpha2.Scheduled), Placed: sorted(spec.Clusters)}
	e.answer.Placement = out
	if spec.Placement == nil {
		out.Steps = []string{"it has no placement of its own: it is propagated to the clusters of the objects that depend on it"}
		return
	}
	out.Method, out.Term = schedule.MethodOf(b), status.SchedulerObservedAffinityName
	if e.over != "" && len(status.AggregatedStatus) == 0 {
		out.Steps = []string{e.over.Message() + "; no cluster reports it"}
		if e.over == workv1alpha2.ReasonRunFailed {
			e.find(Problem, "", e.over.Message(), "to run it again, delete the template and create it again")
		}
		return
	}
	if hidden(e.Missing, "clusters") {
		if c := out.Scheduled; e.over == "" && c != nil && c.Status == metav1.ConditionFalse {
			e.find(Problem, "", "not scheduled: "+c.Message, "")
		}
		return
	}
	result, failure := e.run()
	if failure == nil {
		failure = e.overQuota(spec, result.Clusters)
	}
	if !sameTargets(out.Placed, result.Clusters) {
		out.Run = result.Clusters
	}
	if failure != nil {
		out.Failure = failure.Error()
	}
	out.Due, _ = schedule.Due(b, e.fleet)
	out.Terms = e.terms(b)
	out.Steps = e.steps(b, result, failure)
	out.Fresh = e.fresh(b)

	switch s := spec.Suspension; {
	case s != nil && s.Scheduling != nil && *s.Scheduling:
		e.find(Waiting, "", "scheduling is suspended: spec.suspension.scheduling of "+out.Binding,
			"set it to false to schedule it; existing placements stay")
		return
	case cmp.Or(spec.SchedulerName, policyv1alpha1.DefaultSchedulerName) != e.Scheduler.Scheduler():
		e.find(Waiting, "", fmt.Sprintf("spec.schedulerName of its policy selects the scheduler %q, which is not the hub's",
			cmp.Or(spec.SchedulerName, policyv1alpha1.DefaultSchedulerName)),
			fmt.Sprintf("check that this scheduler is running, or use the hub's: schedulerName: %s",
				e.Scheduler.Scheduler()))
		return
	}
	switch {
	case e.over != "": // it needs no further cluster
	case out.Scheduled != nil && out.Scheduled.Status == metav1.ConditionFalse && failure == nil:
		e.find(Waiting, "", "the last scheduling attempt failed and would succeed now: "+out.Scheduled.Reason+", "+
			out.Scheduled.Message, "")
	case failure != nil && len(out.Placed) > 0 && out.Due == "":
		// A placed workload stays, so a failing run does not concern it.
	case schedule.AwaitsCluster(failure):
		e.find(Waiting, "", "not scheduled: a new cluster has not reported its APIs yet", e.wouldFit(result, failure))
	case failure != nil:
		e.find(Problem, "", "not scheduled: "+failure.Error(), e.wouldFit(result, failure))
	case out.Scheduled == nil || status.SchedulerObservedGeneration < b.GetGeneration():
		e.find(Waiting, "", "the scheduler has not confirmed the placement yet", "")
	case out.Due != "":
		e.find(Waiting, "", "it is about to be rescheduled: "+string(out.Due), "")
	}
}

// overQuota returns why a quota refuses the clusters of a run; nil if none does.
func (e *explanation) overQuota(spec *workv1alpha2.ResourceBindingSpec, clusters []workv1alpha2.TargetCluster) error {
	run := *spec
	run.Clusters = clusters
	for i := range e.Quotas {
		others := e.Quotas[i].Status.OverallUsed.DeepCopy()
		for name, q := range propagate.Used(spec) {
			if sum, counted := others[name]; counted {
				sum.Sub(q)
				others[name] = sum
			}
		}
		if err := quota.Check(e.Quotas[i:i+1], others, spec, &run); err != nil {
			return &schedule.QuotaError{Err: err}
		}
	}
	return nil
}

// wouldFit returns what to change so that a binding that does not fit can be scheduled.
func (e *explanation) wouldFit(result schedule.Result, failure error) string {
	spec := e.ownBinding().BindingSpec()
	var noRoom *schedule.UnschedulableError
	if errors.As(failure, &noRoom) && len(spec.Components) == 0 {
		placed := int64(0)
		for _, c := range result.Candidates {
			placed += int64(c.Assigned)
		}
		fits := noRoom.Available
		if noRoom.Wanted < int64(spec.Replicas) {
			fits += placed
		}
		lower := ""
		if fits > 0 {
			lower = fmt.Sprintf("lower the replicas from %d to %d, ", spec.Replicas, fits)
		}
		if limits := e.limits(result.Candidates); limits != "" && noRoom.Apart == "" {
			if lower != "" {
				lower = "or " + lower
			}
			return limits + "; " + lower + "or select more clusters"
		}
		less := "request less per replica"
		if noRoom.Apart != "" {
			less = fmt.Sprintf("relax the spread (a cluster has capacity for %s)", noRoom.Apart)
		}
		return lower + less + ", add nodes, or select more clusters"
	}
	if limits := e.limits(result.Candidates); noRoom != nil && limits != "" {
		return limits + "; or select more clusters"
	}
	var unfit *schedule.FitError
	if errors.As(failure, &unfit) {
		if unfit.Clusters == 0 {
			return "join a cluster: `argosy join NAME --cluster-kubeconfig FILE`"
		}
		// Each cluster's reason is in its row; name only the cluster that is closest to being feasible.
		best := slices.MinFunc(unfit.Rejections, func(a, b schedule.Rejection) int {
			return cmp.Or(cmp.Compare(distance(a.Reason), distance(b.Reason)), strings.Compare(a.Cluster, b.Cluster))
		})
		if best.Reason == schedule.ReasonAffinity {
			return schedule.Help(failure) // all are equally far
		}
		why, next := e.rejected(best)
		return strings.TrimSuffix(fmt.Sprintf("the closest is %s, which %s: %s", best.Cluster, why, next), ": ")
	}
	if help := schedule.Help(failure); help != "" {
		if errors.As(failure, new(*schedule.QuotaError)) && spec.SchedulePriority != nil {
			help += "; its priority does not help: it orders what waits for capacity, and a quota counts workloads of every priority"
		}
		return help
	}
	return "change the placement of " + e.holderName()
}

// limits returns what limits the capacity of the first cluster where that is not the sum of its free resources, the
// clusters with the same limit, and how to see it; empty for nothing.
func (e *explanation) limits(candidates []schedule.Candidate) string {
	byName := slices.SortedFunc(slices.Values(candidates), func(a, b schedule.Candidate) int {
		return strings.Compare(a.Cluster.Name, b.Cluster.Name)
	})
	var names []string
	var limit, check string
	for _, c := range byName {
		what, next := e.limitIn(c)
		if limit == "" {
			limit, check = what, next
		}
		if what != "" && what == limit {
			names = append(names, c.Cluster.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return some(names) + ": " + limit + "; " + check
}

// distance ranks the reasons of rejections: the lowest is the easiest to fix.
func distance(reason schedule.FilterReason) int {
	switch reason {
	case schedule.ReasonAffinity:
		return 2
	case schedule.ReasonEviction:
		return 1
	}
	return 0
}

func (e *explanation) holderName() string {
	if e.claiming == nil {
		return "the policy"
	}
	return describe(e.claiming)
}

// terms reports whether each affinity term can be satisfied now.
func (e *explanation) terms(b workv1alpha2.Binding) []Term {
	var out []Term
	for _, t := range b.BindingSpec().Placement.ClusterAffinities {
		alone := b.DeepCopyObject().(workv1alpha2.Binding)
		alone.BindingSpec().Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{t}
		term := Term{Name: t.AffinityName, InUse: t.AffinityName == b.BindingStatus().SchedulerObservedAffinityName}
		if _, err := schedule.Schedule(alone, e.fleet, e.room(alone)); err != nil {
			term.Fails = err.Error()
		}
		out = append(out, term)
	}
	return out
}

// fresh returns the placement of a run that may move replicas; nil if it moves none or cannot place them.
func (e *explanation) fresh(b workv1alpha2.Binding) []workv1alpha2.TargetCluster {
	if m := schedule.MethodOf(b); m != schedule.ByRoom && m != schedule.Aggregated && m != schedule.StaticWeights {
		return nil
	}
	anew := b.DeepCopyObject().(workv1alpha2.Binding)
	last := anew.BindingStatus().LastScheduledTime
	if last == nil {
		return nil
	}
	asked := metav1.NewTime(last.Add(time.Second))
	anew.BindingSpec().RescheduleTriggeredAt = &asked
	result, err := schedule.Schedule(anew, e.fleet, e.room(anew))
	if err != nil || sameTargets(sorted(b.BindingSpec().Clusters), result.Clusters) {
		return nil
	}
	return result.Clusters
}

// steps lists the steps of a run: which clusters are eligible, which are used, and how the replicas are divided.
func (e *explanation) steps(b workv1alpha2.Binding, result schedule.Result, failure error) []string {
	spec := b.BindingSpec()
	steps := []string{fmt.Sprintf("filter: %d of %s eligible", len(result.Candidates),
		text.Count(e.fleet.Len(), "cluster"))}
	if len(result.Rejections) > 0 {
		steps[0] += "; rejected: " + result.Rejections.String()
	}
	if off := e.Scheduler.Plugins.Off(); len(off) > 0 {
		var names []string
		for _, p := range off {
			names = append(names, string(p))
		}
		steps[0] += "; disabled scheduler plugins: " + strings.Join(names, ", ")
	}
	for _, s := range spec.Placement.SpreadConstraints {
		over := cmp.Or(string(s.SpreadByField), "label "+s.SpreadByLabel)
		text := fmt.Sprintf("spread over %s: at least %d", over, s.MinGroups)
		if s.MaxGroups > 0 {
			text += fmt.Sprintf(", at most %d", s.MaxGroups)
		}
		steps = append(steps, text)
	}
	var short []string
	for _, c := range result.Candidates {
		if lacksRoom(b, c) {
			short = append(short, fmt.Sprintf("%s (%d of %d)", c.Cluster.Name, c.Available, spec.Replicas))
		}
	}
	if slices.Sort(short); len(short) > 0 {
		steps = append(steps, "spread: clusters without capacity for all replicas come last: "+strings.Join(short, ", "))
	}
	// Without room it was the division that failed, else it was not reached.
	if len(result.Candidates) > 0 && (failure == nil || errors.As(failure, new(*schedule.UnschedulableError))) {
		steps = append(steps, e.division(b, result)...)
	}
	if failure != nil {
		return append(steps, "result: "+failure.Error())
	}
	return append(steps, "result: "+targets(result.Clusters, schedule.MethodOf(b) != schedule.Everywhere))
}

// division returns how the replicas are divided.
func (e *explanation) division(b workv1alpha2.Binding, result schedule.Result) []string {
	spec := b.BindingSpec()
	if parts := schedule.PartsOf(b); parts != nil {
		return e.parts(parts, result)
	}
	switch schedule.MethodOf(b) {
	case schedule.Everywhere:
		if n := len(spec.Components); n > 0 {
			return []string{"divide: " + text.Count(n, "component") + " stay together; each selected cluster gets all of them"}
		}
		return []string{"divide: it has no replicas; each cluster gets the whole object"}
	case schedule.Duplicated:
		placed := b.DeepCopyObject().(workv1alpha2.Binding)
		placed.BindingSpec().Clusters = result.Clusters
		if copies := schedule.Copies(placed); copies != "" {
			return []string{"divide: " + strings.TrimSuffix(copies, ".")}
		}
		return []string{"divide: Duplicated, each cluster gets all " + text.Count(int(spec.Replicas), "replica")}
	case schedule.StaticWeights:
		// Clusters that are not chosen get no replicas, so leaving them out does not change the shares of the others.
		byName := slices.Clone(result.Candidates)
		if len(spec.Placement.SpreadConstraints) > 0 {
			byName = slices.DeleteFunc(byName, func(c schedule.Candidate) bool {
				return !workv1alpha2.HasTarget(result.Clusters, c.Cluster.Name)
			})
		}
		slices.SortFunc(byName, func(a, b schedule.Candidate) int { return strings.Compare(a.Cluster.Name, b.Cluster.Name) })
		shares := schedule.Weights(b, byName)
		if shares == nil {
			shares = make([]schedule.Share, len(byName))
			for i, c := range byName {
				shares[i] = schedule.Share{Name: c.Cluster.Name, Weight: 1}
			}
		}
		return []string{fmt.Sprintf("divide: %d replicas by static weights %s", spec.Replicas,
			weights(spec.Replicas, shares))}
	}
	return e.byRoom(b, result)
}

// parts describes the division of a template whose subsets have their own clusterAffinity.
func (e *explanation) parts(parts *schedule.Parts, result schedule.Result) []string {
	var steps []string
	rest := make([]workv1alpha2.TargetCluster, 0, len(result.Clusters))
	left := int64(0)
	for _, t := range result.Clusters {
		for _, c := range t.Components {
			t.Replicas -= c.Replicas
		}
		if left += int64(t.Replicas); t.Replicas > 0 {
			rest = append(rest, t)
		}
	}
	for _, s := range parts.Subsets {
		var in []workv1alpha2.TargetCluster
		for _, t := range result.Clusters {
			if n, here := schedule.Given(t)[s.Name]; here {
				in = append(in, workv1alpha2.TargetCluster{Name: t.Name, Replicas: n})
			}
		}
		steps = append(steps, fmt.Sprintf("divide: subset %s has its own clusterAffinity: %s", s.Name, targets(in, true)))
	}
	if parts.Rest {
		steps = append(steps, fmt.Sprintf("divide: the other subsets share %s, divided by the policy: %s",
			text.Count(int(left), "replica"), targets(rest, true)))
	}
	return steps
}

// byRoom returns the division of dynamic weights and of Aggregated.
func (e *explanation) byRoom(b workv1alpha2.Binding, result schedule.Result) []string {
	spec := b.BindingSpec()
	names, placed, wanted := []string(nil), int64(0), int64(spec.Replicas)
	for _, c := range result.Candidates {
		room := "capacity unknown, assumed " + fmt.Sprint(spec.Replicas)
		if c.Known {
			room = fmt.Sprintf("capacity %d", c.Available)
		}
		placed += int64(c.Assigned)
		if c.Tier > 0 {
			room += fmt.Sprintf(", overflow tier %d", c.Tier)
		}
		names = append(names, fmt.Sprintf("%s: %s, assigned %d", c.Cluster.Name, room, c.Assigned))
	}
	slices.Sort(names)
	how := "in proportion to the capacity"
	if schedule.MethodOf(b) == schedule.Aggregated {
		how = "to as few clusters as possible, those with the most capacity first"
	}
	steps := []string{"divide: " + strings.Join(names, "; ")}
	if apart := capacity.SpreadOfBinding(b); !apart.Empty() {
		steps = append(steps, "divide: the capacity of each is "+apart.String())
	}
	switch {
	case schedule.Fresh(b):
		return append(steps, fmt.Sprintf("divide: rescheduled as requested: all %d %s", wanted, how))
	case placed == 0:
		return append(steps, fmt.Sprintf("divide: %d replicas %s", wanted, how))
	case placed < wanted:
		return append(steps, fmt.Sprintf("divide: %d stay where they are; %d more %s", placed, wanted-placed, how))
	case placed > wanted:
		return append(steps, fmt.Sprintf(
			"divide: %d are placed, %d too many; each cluster loses replicas in proportion to those it has", placed,
			placed-wanted))
	}
	return append(steps, fmt.Sprintf("divide: all %d stay where they are", placed))
}

// weights formats static weights and, of several clusters, the exact shares of the replicas.
func weights(replicas int32, shares []schedule.Share) string {
	var total int64
	for _, s := range shares {
		total += s.Weight
	}
	var parts []string
	for _, s := range shares {
		parts = append(parts, fmt.Sprintf("%s %d (share %.2f)", s.Name, s.Weight,
			float64(replicas)*float64(s.Weight)/float64(total)))
	}
	return strings.Join(parts, ", ") + ", rounded by Webster's method"
}

// targets formats clusters: "m1:3 m2:2", or "m1 m2" for a workload without replicas.
func targets(all []workv1alpha2.TargetCluster, replicas bool) string {
	if len(all) == 0 {
		return "no cluster"
	}
	var parts []string
	for _, t := range all {
		if replicas {
			parts = append(parts, fmt.Sprintf("%s:%d", t.Name, t.Replicas))
		} else {
			parts = append(parts, t.Name)
		}
	}
	return strings.Join(parts, " ")
}

func sorted(all []workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func sameTargets(a, b []workv1alpha2.TargetCluster) bool {
	return slices.EqualFunc(a, b, func(x, y workv1alpha2.TargetCluster) bool {
		return x.Name == y.Name && x.Replicas == y.Replicas
	})
}

func requirers(all []workv1alpha2.BindingSnapshot) string {
	var parts []string
	for _, r := range all {
		parts = append(parts, "ResourceBinding "+strings.Trim(r.Namespace+"/"+r.Name, "/"))
	}
	return strings.Join(parts, ", ")
}

// rejected returns why the scheduler rejected a cluster, and what to change.
func (e *explanation) rejected(r schedule.Rejection) (why, next string) {
	c := e.fleet.Cluster(r.Cluster)
	if taint, ok := e.fleet.Repels(r); ok {
		why = "has the untolerated taint " + taint.ToString()
		if strings.HasPrefix(taint.Key, "cluster.karmada.io/") {
			if ready := membership.Readiness(c); ready != nil {
				return why + ": " + ready.Message, "bring the cluster back; the hub then removes the taint"
			}
			return why, "bring the cluster back; the hub then removes the taint"
		}
		return why, fmt.Sprintf("remove the taint from cluster %s, or add clusterTolerations: [{key: %s, operator: Exists}] to the placement of %s", r.Cluster, taint.Key, e.holderName())
	}
	switch r.Reason {
	case schedule.ReasonAffinity:
		return "is not selected by the policy's cluster affinity" + e.unmet(c),
			"to use it, include it in clusterAffinity of " + e.holderName()
	case schedule.ReasonEviction:
		for _, t := range e.ownBinding().BindingSpec().GracefulEvictionTasks {
			if t.FromCluster == r.Cluster {
				return fmt.Sprintf("is being evicted: requested by %s, reason %s", t.Producer, t.Reason),
					"wait until the replacements in other clusters are healthy"
			}
		}
	case schedule.ReasonAPI:
		gk := e.template.GroupKind()
		if r.Unreported {
			return "has not reported its APIs yet", "wait some seconds; if that lasts: `argosy why cluster " + r.Cluster + "`"
		}
		if r.Pending {
			why = fmt.Sprintf("may not serve %s: its APIs are not completely discovered", gk)
			if known := meta.FindStatusCondition(c.Status.Conditions,
				clusterv1alpha1.ClusterConditionCompleteAPIEnablements); known != nil {
				why += ", " + known.Message
			}
			return why, "check which of the member's APIs do not respond"
		}
		return fmt.Sprintf("does not serve the kind %s", gk),
			fmt.Sprintf("install the CustomResourceDefinition or API of %s in cluster %s", gk, r.Cluster)
	case schedule.ReasonVersion:
		gk := e.template.GroupKind()
		return fmt.Sprintf("serves %s only in %s, which lacks fields that the template uses; other clusters serve these fields", gk, strings.Join(e.fleet.Versions(r.Cluster, gk), ", ")), r.Remedy
	case schedule.ReasonProvider:
		return "has no provider, and the placement spreads over providers", "set spec.provider of cluster " + r.Cluster
	case schedule.ReasonRegion:
		return "has no region, and the placement spreads over regions", "set spec.region of cluster " + r.Cluster
	case schedule.ReasonZones:
		return "has no zones, and the placement spreads over zones", "set spec.zones of cluster " + r.Cluster
	}
	return r.Text(), r.Remedy
}

// unmet lists the parts of the affinity in use that do not match the cluster, after a colon; empty for none.
func (e *explanation) unmet(c *clusterv1alpha1.Cluster) string {
	p := e.ownBinding().BindingSpec().Placement
	affinity := p.ClusterAffinity
	for i, t := range p.ClusterAffinities {
		if i == 0 || t.AffinityName == e.ownBinding().BindingStatus().SchedulerObservedAffinityName {
			affinity = &p.ClusterAffinities[i].ClusterAffinity
		}
	}
	if affinity == nil || c == nil {
		return ""
	}
	var whys []string
	part := func(a policyv1alpha1.ClusterAffinity, why string) {
		if !match.Affinity(&a, c) {
			whys = append(whys, why)
		}
	}
	part(policyv1alpha1.ClusterAffinity{ExcludeClusters: affinity.ExcludeClusters}, "exclude lists it")
	part(policyv1alpha1.ClusterAffinity{ClusterNames: affinity.ClusterNames}, "clusterNames does not list it")
	if s := affinity.LabelSelector; s != nil {
		part(policyv1alpha1.ClusterAffinity{LabelSelector: s}, "its labels do not match "+metav1.FormatLabelSelector(s))
	}
	if s := affinity.FieldSelector; s != nil {
		for _, m := range s.MatchExpressions {
			part(policyv1alpha1.ClusterAffinity{FieldSelector: &policyv1alpha1.FieldSelector{
				MatchExpressions: []corev1.NodeSelectorRequirement{m}}},
				fmt.Sprintf("%s %s %v does not match", m.Key, m.Operator, m.Values))
		}
	}
	if len(whys) == 0 {
		return ""
	}
	return ": " + strings.Join(whys, ", ")
}
