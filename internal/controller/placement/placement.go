// Package placement writes the PlacementDecisions of Placements of Open Cluster Management. core/source/ocm/placement
// decides.
package placement

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
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
	core "github.com/argosy-io/argosy/internal/core/source/ocm/placement"
	"github.com/argosy-io/argosy/internal/filter"
)

// Options of the controller.
type Options struct {
	// Gather is the delay after a change of clusters, sets or scores, to choose once after several changes.
	Gather time.Duration
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// Reasons of the events on a Placement.
//
//reference:event Normal on Placement
const (
	// EventDecisionCreate: a PlacementDecision was created.
	EventDecisionCreate = "DecisionCreate"
	// EventDecisionUpdate: a PlacementDecision lists other clusters. A warning names scores that have expired.
	EventDecisionUpdate = "DecisionUpdate"
	// EventDecisionDelete: a PlacementDecision is not needed any more.
	EventDecisionDelete = "DecisionDelete"
	// EventScoreUpdate: the scores of all clusters that match, at an update. Only with --success-events=all.
	EventScoreUpdate = "ScoreUpdate"
)

const (
	// scoresShown is the longest text of scores in an event, in bytes.
	scoresShown = 1000
	// firstRetry is the delay before the first retry after an error, see commit.Backoff.
	firstRetry = 100 * time.Millisecond
	// workers choose at once, so that an expensive Placement does not delay all others.
	workers = 4
)

type reconciler struct {
	Options
	client   client.Client
	events   commit.Events
	programs *ocm.Programs
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	r := &reconciler{Options: o, client: mgr.GetClient(), events: commit.Recorder(mgr, "placement-controller")}
	programs, err := core.NewPrograms(r.scores)
	if err != nil {
		return err
	}
	r.programs = programs
	listed := func(pass func(changed client.Object, p *placementv1beta1.Placement) bool) func(context.Context,
		client.Object) []reconcile.Request {
		return func(ctx context.Context, obj client.Object) []reconcile.Request {
			return filter.Listed(ctx, r.client, &placementv1beta1.PlacementList{}, func(p client.Object) bool {
				return pass(obj, p.(*placementv1beta1.Placement))
			})
		}
	}
	every := listed(func(client.Object, *placementv1beta1.Placement) bool { return true })
	if err := (&publisher{reconciler: r}).setup(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("placement").
		For(&placementv1beta1.Placement{}, builder.WithPredicates(respecified)).
		Watches(&placementv1beta1.PlacementDecision{}, filter.Delayed(o.Gather, func(_ context.Context,
			decision client.Object) []reconcile.Request { // also those of another owner, which may go
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: decision.GetNamespace(),
				Name: decision.GetLabels()[placementv1beta1.PlacementLabel]}}}
		}), builder.WithPredicates(filter.AfterStart)).
		Watches(&setv1beta2.ManagedClusterSetBinding{}, filter.Delayed(o.Gather, listed(func(binding client.Object,
			p *placementv1beta1.Placement) bool {
			return binding.GetNamespace() == p.Namespace
		})), builder.WithPredicates(filter.AfterStart, filter.CreationsAndDeletions)).
		Watches(&setv1beta2.ManagedClusterSet{}, filter.Delayed(o.Gather, every),
			builder.WithPredicates(filter.AfterStart, filter.Respecified)).
		Watches(&clusterv1.ManagedCluster{}, filter.Delayed(o.Gather, every),
			builder.WithPredicates(filter.AfterStart, relevant)).
		Watches(&clusterv1.ManagedCluster{}, filter.Delayed(o.Gather, listed(func(_ client.Object,
			p *placementv1beta1.Placement) bool {
			return core.Evaluates(p)
		})), builder.WithPredicates(filter.AfterStart, readable)).
		Watches(&scorev1alpha1.AddOnPlacementScore{}, filter.Delayed(o.Gather, listed(func(score client.Object,
			p *placementv1beta1.Placement) bool {
			return core.Reads(p, score.GetName())
		})), builder.WithPredicates(filter.AfterStart, scored, predicate.NewPredicateFuncs(r.ofCluster))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers,
			RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		Complete(r)
}

// respecified passes what changes a spec or annotations.
var respecified = predicate.Or[client.Object](filter.Respecified, predicate.AnnotationChangedPredicate{})

// scored drops changes of AddOnPlacementScores that change no score.
var scored = filter.Changes(func(was, is *scorev1alpha1.AddOnPlacementScore) bool {
	return was.UID != is.UID || !equality.Semantic.DeepEqual(was.Status.Scores, is.Status.Scores) ||
		!was.Status.ValidUntil.Equal(is.Status.ValidUntil)
})

// ofCluster drops AddOnPlacementScores in namespaces of no cluster.
func (r *reconciler) ofCluster(score client.Object) bool {
	return r.client.Get(context.Background(), types.NamespacedName{Name: score.GetNamespace()},
		&clusterv1.ManagedCluster{}, client.UnsafeDisableDeepCopy) == nil
}

// readable drops changes of clusters that no expression can read.
var readable = filter.Changes(func(was, is *clusterv1.ManagedCluster) bool {
	return filter.Touched(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) ||
		!equality.Semantic.DeepEqual(was.Status, is.Status)
})

// relevant drops changes of clusters on which no choice without an expression depends, such as conditions.
var relevant = filter.Changes(func(was, is *clusterv1.ManagedCluster) bool {
	return was.UID != is.UID || !maps.Equal(was.Labels, is.Labels) || !was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints) ||
		!equality.Semantic.DeepEqual(was.Status.ClusterClaims, is.Status.ClusterClaims) ||
		!equality.Semantic.DeepEqual(was.Status.Allocatable, is.Status.Allocatable) ||
		!equality.Semantic.DeepEqual(was.Status.Capacity, is.Status.Capacity)
})

// Reconcile chooses the clusters of a Placement.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := &placementv1beta1.Placement{}
	if err := r.client.Get(ctx, req.NamespacedName, p); err != nil || p.DeletionTimestamp != nil ||
		p.Annotations[placementv1beta1.SchedulingDisabledAnnotation] == "true" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	in, all, err := r.read(ctx, p)
	if err != nil {
		return reconcile.Result{}, err
	}
	choice := core.Choose(in)
	own := owner{p.Namespace, *metav1.NewControllerRef(p, placementv1beta1.GroupVersion.WithKind("Placement"))}
	wanted := core.Decisions(req.NamespacedName, own.OwnerReference, choice.Groups)
	updated := false
	w := &writer{r.client, own, func(reason, name string) {
		switch reason {
		case EventDecisionUpdate:
			r.recordUpdate(p, choice, name)
			updated = true
		case EventDecisionCreate:
			r.events.RecordSuccess(reason, fmt.Sprintf("Decision %s is created with placement %s in namespace %s", name,
				p.Name, p.Namespace), p)
		default:
			r.events.RecordSuccess(reason, fmt.Sprintf("Decision %s is deleted with placement %s in namespace %s", name,
				p.Name, p.Namespace), p)
		}
	}}
	failed := w.write(ctx, req.NamespacedName, all, wanted)
	if updated {
		r.recordScores(p, choice)
	}
	want := p.DeepCopy()
	want.Status = choice.Status(wanted)
	if failed != nil && !commit.Transient(failed) {
		choice.Fail(failed)
		want.Status = *p.Status.DeepCopy()
	} else if failed != nil {
		return commit.Requeue(0, failed)
	}
	want.Status.Conditions = slices.Clone(p.Status.Conditions)
	for _, c := range choice.Conditions {
		c.LastTransitionTime, c.ObservedGeneration = metav1.NewTime(in.Now), p.Generation
		meta.SetStatusCondition(&want.Status.Conditions, c)
	}
	_, err = commit.Status(ctx, r.client, p, want)
	return commit.Requeue(choice.After, errors.Join(failed, client.IgnoreNotFound(err)))
}

// read returns what a choice depends on, and all PlacementDecisions.
func (r *reconciler) read(ctx context.Context, p *placementv1beta1.Placement) (in core.Input,
	all []placementv1beta1.PlacementDecision, err error) {
	var clusters clusterv1.ManagedClusterList
	var list placementv1beta1.PlacementDecisionList
	for _, err := range []error{
		r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy),
		r.client.List(ctx, &list, client.UnsafeDisableDeepCopy),
	} {
		if err != nil {
			return in, nil, fmt.Errorf("read what Placement %s/%s chooses from: %w", p.Namespace, p.Name, err)
		}
	}
	in = core.Input{Placement: p, Clusters: clusters.Items, Scores: r.scores, Programs: r.programs, Now: r.Clock.Now()}
	if in.Sets, err = r.bound(ctx, p.Namespace); err != nil {
		return in, nil, err
	}
	var others []*placementv1beta1.PlacementDecision
	for i := range list.Items {
		d := &list.Items[i]
		switch of := metav1.GetControllerOf(d); {
		case of == nil || of.Kind != "Placement":
		case d.Namespace == p.Namespace && of.Name == p.Name:
			in.Current = append(in.Current, *d)
		default:
			others = append(others, d)
		}
	}
	in.Others = func() map[string]int {
		n := map[string]int{}
		for _, d := range others {
			for _, of := range d.Status.Decisions {
				n[of.ClusterName]++
			}
		}
		return n
	}
	return in, list.Items, nil
}

// bound returns the existing ManagedClusterSets with a binding in a namespace.
func (r *reconciler) bound(ctx context.Context, namespace string) (sets []setv1beta2.ManagedClusterSet, err error) {
	var bindings setv1beta2.ManagedClusterSetBindingList
	if err := r.client.List(ctx, &bindings, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedClusterSetBindings in namespace %s: %w", namespace, err)
	}
	for _, b := range bindings.Items {
		set := &setv1beta2.ManagedClusterSet{}
		switch err := r.client.Get(ctx, types.NamespacedName{Name: b.Spec.ClusterSet}, set); {
		case err == nil && b.DeletionTimestamp == nil:
			sets = append(sets, *set)
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("read ManagedClusterSet %s: %w", b.Spec.ClusterSet, err)
		}
	}
	return sets, nil
}

// scores implements core.Scores.
func (r *reconciler) scores(cluster, name string) *scorev1alpha1.AddOnPlacementScore {
	score := &scorev1alpha1.AddOnPlacementScore{}
	if err := r.client.Get(context.Background(), types.NamespacedName{Namespace: cluster, Name: name}, score,
		client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache returns no other error than that there is none
	}
	return score
}

// recordUpdate records that a PlacementDecision lists other clusters.
func (r *reconciler) recordUpdate(p *placementv1beta1.Placement, choice core.Choice, name string) {
	message := fmt.Sprintf("Decision %s is updated with placement %s in namespace %s", name, p.Name, p.Namespace)
	if len(choice.Expired) > 0 {
		r.events.Event(p, corev1.EventTypeWarning, EventDecisionUpdate,
			message+": AddOnPlacementScores "+strings.Join(choice.Expired, " ")+" expired")
	} else {
		r.events.RecordSuccess(EventDecisionUpdate, message, p)
	}
}

// recordScores records the scores of a choice.
func (r *reconciler) recordScores(p *placementv1beta1.Placement, choice core.Choice) {
	if r.events.Successes != commit.SuccessEventsAll {
		return
	}
	var scores strings.Builder
	for _, cluster := range slices.Sorted(maps.Keys(choice.Sums)) {
		one := fmt.Sprintf("%s:%d ", cluster, choice.Sums[cluster])
		if scores.Len()+len(one) > scoresShown {
			scores.WriteString("......")
			break
		}
		scores.WriteString(one)
	}
	r.events.RecordStep(EventScoreUpdate, scores.String(), p)
}
