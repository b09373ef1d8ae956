package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/propagate"
	core "github.com/argosy-io/argosy/internal/core/source/ocm/placement"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

// EventPublishFailed: the clusters of a policy cannot be published as a PlacementDecision.
//
//reference:event Warning on policy
const EventPublishFailed = "PublishPlacementDecisionFailed"

// publisher publishes the clusters of policies as PlacementDecisions.
type publisher struct{ *reconciler }

func (p *publisher) setup(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("placement-publisher").
		WithOptions(controller.Options{RateLimiter: commit.Backoff[reconcile.Request](firstRetry)})
	for _, kind := range scope.Propagations.Kinds() {
		b = b.Watches(kind, &handler.EnqueueRequestForObject{}, builder.WithPredicates(respecified))
	}
	publishing := filter.Delayed(p.Gather, func(ctx context.Context, _ client.Object) (all []reconcile.Request) {
		policies, err := scope.Propagations.List(ctx, p.client, client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the policies that publish their clusters")
		}
		for _, policy := range policies {
			if at, err := core.PublishedAs(policy); err == nil && at.Name != "" {
				all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(policy)})
			}
		}
		return all
	})
	b = b.Watches(&setv1beta2.ManagedClusterSetBinding{}, publishing,
		builder.WithPredicates(filter.AfterStart, filter.CreationsAndDeletions)).
		Watches(&setv1beta2.ManagedClusterSet{}, publishing, builder.WithPredicates(filter.AfterStart, filter.Respecified)).
		Watches(&clusterv1.ManagedCluster{}, publishing, builder.WithPredicates(filter.AfterStart,
			predicate.Or[client.Object](filter.Respecified, predicate.LabelChangedPredicate{})))
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(binding client.Object, q queue) {
		if claim, claimed := propagate.Claimed(binding); claimed {
			q.AddAfter(reconcile.Request{NamespacedName: claim.NamespacedName}, p.Gather)
		}
	}
	for _, kind := range scope.Bindings.Kinds() {
		b = b.Watches(kind, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
				enqueue(e.ObjectOld, q) // a policy that lost the binding
				enqueue(e.ObjectNew, q)
			},
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
		}, builder.WithPredicates(filter.AfterStart, filter.Changes(func(was, is workv1alpha2.Binding) bool {
			before, _ := propagate.Claimed(was)
			after, _ := propagate.Claimed(is)
			return before != after || was.GetGeneration() != is.GetGeneration() &&
				!slices.Equal(core.ClustersOf([]workv1alpha2.Binding{was}), core.ClustersOf([]workv1alpha2.Binding{is}))
		})))
	}
	return b.Watches(&placementv1beta1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
		decision client.Object) []reconcile.Request {
		of := metav1.GetControllerOf(decision)
		if of == nil {
			return nil
		}
		switch of.Kind {
		case "PropagationPolicy":
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: decision.GetNamespace(), Name: of.Name}}}
		case "ClusterPropagationPolicy":
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: of.Name}}}
		}
		return nil
	}), builder.WithPredicates(filter.AfterStart)).Complete(p)
}

// Reconcile publishes the clusters of a policy, or withdraws them.
func (p *publisher) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	policy, err := scope.Propagations.Get(ctx, p.client, req.NamespacedName)
	if err != nil || policy.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // the garbage collector deletes what it owns
	}
	at, err := core.PublishedAs(policy)
	if err != nil {
		p.events.Event(policy, corev1.EventTypeWarning, EventPublishFailed, err.Error())
		return reconcile.Result{}, nil // what is published stays until the annotation is corrected
	}
	var decisions placementv1beta1.PlacementDecisionList
	if err := p.client.List(ctx, &decisions, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list PlacementDecisions: %w", err)
	}
	gvk, err := apiutil.GVKForObject(policy, p.client.Scheme())
	if err != nil {
		return reconcile.Result{}, err
	}
	w := &writer{p.client, owner{policy.GetNamespace(), *metav1.NewControllerRef(policy, gvk)}, func(string, string) {}}
	var wanted []placementv1beta1.PlacementDecision
	if at.Name != "" {
		clusters, err := p.clusters(ctx, policy, at.Namespace)
		if err != nil {
			return p.failed(policy, err)
		}
		if len(clusters) > 0 {
			wanted = core.Decisions(at, w.owner.OwnerReference, []core.Group{{Clusters: clusters}})
		} else { // a program that follows an empty list may delete all workloads
			decisions.Items = slices.DeleteFunc(decisions.Items, func(d placementv1beta1.PlacementDecision) bool {
				return d.Namespace == at.Namespace && d.Labels[placementv1beta1.PlacementLabel] == at.Name
			})
		}
	}
	if err := w.write(ctx, at, decisions.Items, wanted); err != nil {
		return p.failed(policy, err)
	}
	return reconcile.Result{}, nil
}

// failed reports an error of publishing the clusters of a policy, and tries again.
func (p *publisher) failed(policy client.Object, err error) (reconcile.Result, error) {
	if !commit.Transient(err) {
		p.events.Event(policy, corev1.EventTypeWarning, EventPublishFailed, err.Error())
	}
	return commit.Requeue(0, err)
}

// clusters returns those clusters of the bindings that a policy claims whose ManagedClusterSets are bound in a
// namespace.
func (p *publisher) clusters(ctx context.Context, policy client.Object, namespace string) ([]string, error) {
	all, err := scope.Bindings.List(ctx, p.client, client.InNamespace(policy.GetNamespace()),
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	claimed := slices.DeleteFunc(all, func(b workv1alpha2.Binding) bool {
		claim, ok := propagate.Claimed(b)
		return !ok || claim.NamespacedName != client.ObjectKeyFromObject(policy) || b.GetDeletionTimestamp() != nil
	})
	sets, err := p.bound(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var clusters clusterv1.ManagedClusterList
	if err := p.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ManagedClusters: %w", err)
	}
	published, err := core.Published(claimed, sets, clusters.Items)
	if all := core.ClustersOf(claimed); err == nil && len(published) == 0 && len(all) > 0 {
		p.events.Eventf(policy, corev1.EventTypeWarning, EventPublishFailed, "no ManagedClusterSet with one of the clusters "+
			"%s is bound in namespace %s: create a ManagedClusterSetBinding there", strings.Join(all, ", "), namespace)
	}
	return published, err
}
