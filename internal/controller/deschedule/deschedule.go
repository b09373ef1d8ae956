// Package deschedule moves replicas that are unschedulable for long and, for ReplicaSchedulingPolicies, replicas of
// overutilized clusters. core/adjust/deschedule decides what moves where. The controller asks it periodically and
// writes each move into the binding at once.
package deschedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

type Options struct {
	Fleet     *capacity.Fleet
	Templates *template.Store
	// SchedulerName selects the bindings of this scheduler.
	SchedulerName string
	// Interval is the time between checks for unschedulable pods. Unschedulable is the time for which pods
	// must be unschedulable before they move.
	Interval, Unschedulable time.Duration
	// Waiting returns the unschedulable pods of a cluster. Used returns the requested share of its nodes. The default is
	// the Fleet.
	Waiting func(cluster string) []capacity.Pending
	Used    func(cluster string) map[corev1.ResourceName]float64
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// maxBindings limits the workloads that move in one round, to limit the damage of a mistake.
const maxBindings = 100

// maxMoved limits the replicas of a workload that leave at once because they are unschedulable.
var maxMoved = intstr.FromString("25%")

type reconciler struct {
	Options
	client client.Client
	events commit.Events
	// reported are the bindings with a recorded event that nothing can move.
	reported commit.Dedup[types.NamespacedName]
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	if o.Waiting == nil {
		o.Waiting = o.Fleet.Unschedulable
	}
	if o.Used == nil {
		o.Used = o.Fleet.Utilisation
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), events: commit.Recorder(mgr, "karmada-descheduler")}
	// One worker: each round must see the moves of the previous one.
	return ctrl.NewControllerManagedBy(mgr).Named("deschedule").
		Watches(&configv1alpha1.ReplicaSchedulingPolicy{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(rounds{r}).Complete(r)
}

// round is the request to check for unschedulable pods. No policy has an empty name.
var round = reconcile.Request{}

// rounds enqueues the first round and delays the controller until the capacity of clusters is known.
type rounds struct{ r *reconciler }

var _ source.SyncingSource = rounds{}

// Start implements source.Source.
func (s rounds) Start(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.AddAfter(round, s.r.Interval)
	return nil
}

// WaitForSync implements source.SyncingSource.
func (s rounds) WaitForSync(ctx context.Context) error { return s.r.Fleet.WaitForSync(ctx) }

// Reconcile runs a round, or evaluates a policy, and requeues.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req == round {
		return ctrl.Result{RequeueAfter: r.Interval}, r.relieve(ctx)
	}
	after, err := r.rebalance(ctx, req.NamespacedName)
	return ctrl.Result{RequeueAfter: after}, client.IgnoreNotFound(err)
}

// relieve moves unschedulable replicas.
func (r *reconciler) relieve(ctx context.Context) error {
	s, now := r.Fleet.Snapshot(), r.Clock.Now()
	waiting := map[string]map[string][]capacity.Pending{} // cluster, namespace
	for _, cluster := range ready(s) {
		for _, p := range r.Waiting(cluster) {
			if waiting[cluster] == nil {
				waiting[cluster] = map[string][]capacity.Pending{}
			}
			waiting[cluster][p.Namespace] = append(waiting[cluster][p.Namespace], p)
		}
	}
	bindings, err := r.bindings(ctx)
	if err != nil {
		return err
	}
	var failed []error
	var moves []deschedule.Decision
	waits, room := map[types.NamespacedName]bool{}, r.Fleet.PlanRoom(s)
	for _, b := range bindings {
		key := client.ObjectKeyFromObject(b)
		stuck, err := r.stuck(ctx, b, s, waiting, now.Add(-r.Unschedulable))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if waits[key] = len(stuck) > 0; !waits[key] || len(moves) >= maxBindings {
			continue
		}
		m, ok, err := deschedule.Relieve(b, stuck, s, room, maxMoved, now)
		switch {
		case err != nil:
			if r.reported.IsNew(key, err.Error()) {
				r.emit(b, corev1.EventTypeWarning, workv1alpha2.EventDescheduleBindingFailed, err.Error())
			}
		case ok:
			r.reported.Forget(key)
			moves = append(moves, deschedule.Decision{Binding: b, Move: m})
		}
	}
	r.reported.ForgetIf(func(key types.NamespacedName) bool { return !waits[key] })
	return errors.Join(append(failed, r.move(ctx, room, moves, noNode, func(d deschedule.Decision) string {
		return fmt.Sprintf("%s unschedulable for %s and moved", deschedule.Listed(d.Move.Left), r.Unschedulable)
	}))...)
}

// stuck returns the unschedulable replicas of b by cluster; none if b must not move.
func (r *reconciler) stuck(ctx context.Context, b workv1alpha2.Binding, s schedule.Snapshot,
	waiting map[string]map[string][]capacity.Pending, before time.Time) (map[string]int32, error) {
	spec := b.BindingSpec()
	if !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool {
		return len(waiting[t.Name][spec.Resource.Namespace]) > 0
	}) ||
		!deschedule.Rests(b, s, r.SchedulerName) {
		return nil, nil
	}
	obj, err := r.template(ctx, b)
	if err != nil || obj == nil {
		return nil, err
	}
	stuck := map[string]int32{}
	for _, t := range spec.Clusters {
		if n := deschedule.Stuck(obj, t.Replicas, waiting[t.Name][spec.Resource.Namespace], before); n > 0 {
			stuck[t.Name] = n
		}
	}
	return stuck, nil
}

// rebalance moves replicas out of clusters over the threshold of a policy and sets its status.
func (r *reconciler) rebalance(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	policy := &configv1alpha1.ReplicaSchedulingPolicy{}
	if err := r.client.Get(ctx, key, policy); err != nil || policy.DeletionTimestamp != nil {
		return 0, err
	}
	validate.DefaultReplicaScheduling(policy)
	rule := &policy.Spec.ReschedulePolicy
	if !*rule.Enabled {
		return 0, r.report(ctx, policy, metav1.Condition{Status: metav1.ConditionUnknown,
			Reason: configv1alpha1.ReasonDisabled, Message: "The policy is disabled by enabled: false."})
	}
	threshold := deschedule.Threshold{}
	for name, percent := range map[corev1.ResourceName]*int32{corev1.ResourceCPU: rule.Threshold.CPUUtilization,
		corev1.ResourceMemory: rule.Threshold.MemoryUtilization} {
		if percent != nil {
			threshold[name] = *percent
		}
	}
	s, now := r.Fleet.Snapshot(), r.Clock.Now()
	clusters := ready(s)
	if !deschedule.LoadOf(s, clusters, r.Used, nil).Over(threshold) { // the usual case; needs no bindings
		return rule.Interval.Duration, r.report(ctx, policy, balanced(deschedule.Rebalanced{}))
	}
	all, err := r.bindings(ctx)
	if err != nil {
		return 0, err
	}
	var targets []workv1alpha2.Binding
	for _, b := range all {
		may, err := r.targets(ctx, policy, b, s)
		if err != nil {
			return 0, err
		}
		if may {
			targets = append(targets, b)
		}
	}
	load, room := deschedule.LoadOf(s, clusters, r.Used, all), r.Fleet.PlanRoom(s)
	out := deschedule.Rebalance(threshold, targets, load, s, room, *rule.MaxMoved, maxBindings, now)
	err = r.move(ctx, room, out.Decisions, overThreshold, func(d deschedule.Decision) string {
		return fmt.Sprintf("%s removed, because the cluster is over the %s threshold of ReplicaSchedulingPolicy %s,",
			deschedule.Listed(d.Move.Left), out.Over[d.From], policy.Name)
	})
	return rule.Interval.Duration, errors.Join(err, r.report(ctx, policy, balanced(out)))
}

// targets reports whether the policy allows to move replicas of b.
func (r *reconciler) targets(ctx context.Context, policy *configv1alpha1.ReplicaSchedulingPolicy,
	b workv1alpha2.Binding, s schedule.Snapshot) (bool, error) {
	if !deschedule.Rests(b, s, r.SchedulerName) {
		return false, nil
	}
	obj, err := r.template(ctx, b)
	if err != nil || obj == nil || deschedule.ScaledByMembers(obj) {
		return false, err
	}
	selectors := policy.Spec.ResourceSelectors
	return len(selectors) == 0 || match.Selectors("", selectors, match.TemplateOf(obj)) != match.None, nil
}

func balanced(out deschedule.Rebalanced) metav1.Condition {
	var moving, blocked []string
	waits := false
	for _, cluster := range slices.Sorted(maps.Keys(out.Over)) {
		h, ok := out.Blocked[cluster]
		if waits = waits || !ok || h.Waits; !ok {
			moving = append(moving, fmt.Sprintf("replicas are moved out of cluster %s, which is over the threshold of %s",
				cluster, out.Over[cluster]))
			continue
		}
		blocked = append(blocked, fmt.Sprintf("cluster %s is over the threshold of %s, but no replicas move: %s", cluster,
			out.Over[cluster], h.Why))
	}
	c := metav1.Condition{Status: metav1.ConditionFalse, Reason: configv1alpha1.ReasonNothingToMove,
		Message: strings.Join(append(moving, blocked...), "; ") + "."}
	switch {
	case len(out.Over) == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, configv1alpha1.ReasonBelowThreshold,
			"No cluster is over the threshold."
	case waits:
		c.Reason = configv1alpha1.ReasonMoving
	}
	return c
}

func (r *reconciler) report(ctx context.Context, policy *configv1alpha1.ReplicaSchedulingPolicy,
	c metav1.Condition) error {
	want := policy.DeepCopy()
	c.Type, c.ObservedGeneration, c.LastTransitionTime = configv1alpha1.Balanced, policy.Generation,
		metav1.NewTime(r.Clock.Now())
	meta.SetStatusCondition(&want.Status.Conditions, c)
	want.Status.ObservedGeneration = policy.Generation
	_, err := commit.Status(ctx, r.client, policy, want)
	return err
}

// move carries out the moves that still have room, of all that took some of it. The others follow in later rounds.
func (r *reconciler) move(ctx context.Context, room *capacity.Room, moves []deschedule.Decision, reason string,
	why func(deschedule.Decision) string) error {
	var failed []error
	for _, d := range moves[:room.Reserve()] {
		failed = append(failed, r.write(ctx, d.Binding, d.Move, reason, why(d)))
	}
	return errors.Join(failed...)
}

// write writes a move and records events. A conflict wins: the next round uses the new binding.
func (r *reconciler) write(ctx context.Context, b workv1alpha2.Binding, m deschedule.Move, reason, why string) error {
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	m.Apply(want, r.Clock.Now())
	if _, err := commit.Update(ctx, r.client, b, want); err != nil {
		r.Fleet.Assume(b, b.BindingSpec().Clusters)
		if commit.Stale(err) {
			return nil
		}
		err = fmt.Errorf("move replicas (%s left): %w", deschedule.Listed(m.Left), err)
		r.emit(b, corev1.EventTypeWarning, workv1alpha2.EventDescheduleBindingFailed, err.Error())
		return err
	}
	for cluster, replicas := range m.Left {
		descheduled.WithLabelValues(cluster, reason).Add(float64(replicas))
	}
	ctrl.LoggerFrom(ctx).Info("descheduled", "binding", client.ObjectKeyFromObject(b), "left", m.Left, "took", m.Took,
		"why", why)
	r.events.RecordSuccess(workv1alpha2.EventDescheduleBindingSucceed,
		fmt.Sprintf("Replicas of %s to %s. Result: {%s}", why, deschedule.Listed(m.Took),
			workv1alpha2.DescribeTargets(m.Clusters)), b,
		scope.TemplateOf(b))
	return nil
}

// emit records an event on the binding and on its template.
func (r *reconciler) emit(b workv1alpha2.Binding, kind, reason, message string) {
	for _, obj := range []runtime.Object{b, scope.TemplateOf(b)} {
		r.events.Event(obj, kind, reason, message)
	}
}

// bindings returns all bindings, highest priority first. They are read-only.
func (r *reconciler) bindings(ctx context.Context) ([]workv1alpha2.Binding, error) {
	all, err := scope.Bindings.List(ctx, r.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	slices.SortFunc(all, schedule.Urgency)
	return all, nil
}

// template returns the template of a binding; nil if it does not exist.
func (r *reconciler) template(ctx context.Context, b workv1alpha2.Binding) (*unstructured.Unstructured, error) {
	obj, found, err := r.Templates.ForBinding(ctx, b)
	if errors.Is(err, propagate.ErrReference) {
		return nil, nil // dispatch reports the error
	}
	if err != nil || !found || obj.GetDeletionTimestamp() != nil {
		return nil, err
	}
	return obj, nil
}

// ready returns the names of Ready clusters. Data of other clusters may be outdated.
func ready(s schedule.Snapshot) []string {
	var names []string
	for _, name := range s.Names() {
		if membership.IsReady(s.Cluster(name)) {
			names = append(names, name)
		}
	}
	return names
}
