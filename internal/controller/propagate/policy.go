package propagate

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
)

// unsyncedRetry is the delay before a policy that is being deleted checks again whether its kinds are in the cache.
const unsyncedRetry = time.Second

// setupFinalizers registers the loop that removes the finalizers of deleted policies. The policy and each claim that
// ends trigger it.
func (r *reconciler) setupFinalizers(mgr ctrl.Manager) error {
	c, err := controller.New("release-policy", mgr, controller.Options{Reconciler: reconcile.Func(r.reconcilePolicy)})
	if err != nil {
		return fmt.Errorf("set up the release of policies: %w", err)
	}
	sources := []source.Source{source.Func(func(_ context.Context,
		q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.Templates.Subscribe(func(was, is *unstructured.Unstructured) {
			if was == nil {
				return
			}
			if is == nil {
				ended(was, nil, q.Add)
				return
			}
			ended(was, is, q.Add)
		})
		return nil
	})}
	for _, kind := range scope.Propagations.Kinds() {
		sources = append(sources, source.Kind(mgr.GetCache(), kind,
			&handler.TypedEnqueueRequestForObject[policyv1alpha1.Propagation]{}))
	}
	for _, kind := range scope.Bindings.Kinds() {
		sources = append(sources, source.Kind(mgr.GetCache(), kind,
			handler.TypedFuncs[workv1alpha2.Binding, reconcile.Request]{
				UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[workv1alpha2.Binding],
					q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
					ended(e.ObjectOld, e.ObjectNew, q.Add)
				},
				DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[workv1alpha2.Binding],
					q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
					ended(e.Object, nil, q.Add)
				},
			}))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watch for the release of policies: %w", err)
		}
	}
	return nil
}

// ended adds the policy that had claimed an object and has not claimed it any more; is is nil if the object was
// deleted.
func ended(was, is client.Object, add func(reconcile.Request)) {
	claim, claimed := propagate.Claimed(was)
	if !claimed {
		return
	}
	if is != nil {
		if now, still := propagate.Claimed(is); still && now == claim {
			return
		}
	}
	add(reconcile.Request{NamespacedName: claim.NamespacedName})
}

// reconcilePolicy removes the finalizer of a deleted policy once no object carries its claim. The loop of the templates
// removes the claims; the deletion triggers that loop too.
func (r *reconciler) reconcilePolicy(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p, err := scope.Propagations.Get(ctx, r.client, types.NamespacedName(req.NamespacedName))
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if p.GetDeletionTimestamp() == nil {
		return reconcile.Result{}, nil
	}
	if id := propagate.ID(p); id != "" {
		bindings, err := r.claimedBindings(ctx, id)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("list the templates that %s claims: %w", describe(p), err)
		}
		if len(bindings) > 0 || len(r.Templates.ClaimedBy(id)) > 0 {
			return reconcile.Result{}, nil // the end of each claim triggers this loop
		}
		for _, sel := range p.PropagationSpec().ResourceSelectors {
			if !r.Templates.Synced(match.GroupKind(sel.APIVersion, sel.Kind)) {
				return reconcile.Result{RequeueAfter: unsyncedRetry}, nil
			}
		}
	}
	finalizer := policyv1alpha1.PropagationPolicyFinalizer
	if !propagate.Namespaced(p) {
		finalizer = policyv1alpha1.ClusterPropagationPolicyFinalizer
	}
	return commit.Requeue(0, commit.RemoveFinalizer(ctx, r.client, p, finalizer))
}
