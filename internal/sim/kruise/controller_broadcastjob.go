package kruise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// broadcastJobs runs BroadcastJobs, with the hands of the reconciler of sets.
type broadcastJobs struct{ reconciler }

func addBroadcastJobs(mgr ctrl.Manager, k kind) error {
	r := &broadcastJobs{reconciler{client: mgr.GetClient(), cache: mgr.GetCache(), kind: k, pending: &pending{}}}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk)
	return ctrl.NewControllerManagedBy(mgr).Named("kruise-broadcastjob").
		For(u).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.requestAll), builder.WithPredicates(nodesThatCome)).
		Complete(r)
}

// nodesThatCome leaves out heartbeats: of a node, jobs care for what its spec and labels say.
var nodesThatCome = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			!sameTaints(e.ObjectOld, e.ObjectNew)
	},
}

func sameTaints(a, b client.Object) bool {
	old, ok1 := a.(*corev1.Node)
	now, ok2 := b.(*corev1.Node)
	return !ok1 || !ok2 || len(old.Spec.Taints) == len(now.Spec.Taints) && old.Spec.Unschedulable == now.Spec.Unschedulable
}

// requestAll returns all jobs, since each may need a pod on a new node.
func (r *broadcastJobs) requestAll(ctx context.Context, _ client.Object) []reconcile.Request {
	list := listOf(r.kind.gvk)
	if r.cache.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	return requests(list)
}

func (r *broadcastJobs) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind.gvk)
	err := r.client.Get(ctx, req.NamespacedName, u)
	if apierrors.IsNotFound(err) {
		r.pending.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil || u.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	job, err := read[BroadcastJob](u)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("read %s: %w", req, err))
	}
	o := observed{now: time.Now()}
	if o.pods, err = r.pods(ctx, u); err != nil {
		return reconcile.Result{}, err
	}
	if !r.pending.settled(req.NamespacedName, o.pods, o.now) {
		return reconcile.Result{RequeueAfter: cacheTimeout}, nil
	}
	var list corev1.NodeList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list nodes: %w", err)
	}
	nodes := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		nodes[i] = &list.Items[i]
	}
	s, status, expired, err := decideBroadcastJob(job, o.pods, nodes, o.now, func() string { return rand.String(5) })
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("decide for %s: %w", req, err))
	}
	if expired {
		uid := u.GetUID()
		err := r.client.Delete(ctx, u, client.Preconditions{UID: &uid},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	_, err = r.act(ctx, u, o, s)
	if err := errors.Join(err, r.report(ctx, u, &status)); err != nil {
		if conflict(err) {
			return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
		}
		return reconcile.Result{}, fmt.Errorf("act for %s: %w", req, err)
	}
	return reconcile.Result{RequeueAfter: s.recheck}, nil
}
