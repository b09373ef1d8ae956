// Package argo simulates the Argo Workflows controller in a member cluster: it runs the steps of Workflows as pods, one
// after the other as their templates say, and writes phase, progress and nodes into the object itself, as the real one
// does: a Workflow has no status subresource, so a client that sends one without its status restarts it.
//
// What happens next is a pure function of the Workflow and its pods (run.go); controller.go carries it out.
//
// Simulated: templates with a container (the pod runs it alone, under its own name main) or steps, and suspend of the
// Workflow. Nodes are a graph as Argo's clients draw it. A step whose pod carries the annotation
// sim.argosy.io/exit-code fails with it; sim.argosy.io/runs-for says how long a step takes.
//
// The list ignored has fields without effect, such as parameters, which stay as they are written. A Workflow with any
// other field or template type ends in Error, and its message names it. CronWorkflows are not simulated.
package argo

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/scope"
)

// AddToManager adds the controller of Workflows. Their definitions must be served.
func AddToManager(mgr ctrl.Manager) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(WorkflowKind)
	err := ctrl.NewControllerManagedBy(mgr).Named("argo-workflow").
		For(u).
		Owns(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(&runner{mgr.GetClient(), mgr.GetAPIReader()})
	if err != nil {
		return fmt.Errorf("add the controller of Workflow: %w", err)
	}
	return nil
}

// runner reads from the server itself, since it must see its own last write.
type runner struct {
	client client.Client
	reader client.Reader
}

// Reconcile implements reconcile.Reconciler: observe, decide, act, and write the object as a whole.
func (r *runner) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(WorkflowKind)
	if err := r.reader.Get(ctx, req.NamespacedName, u); err != nil || u.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // the garbage collector takes what it owns
	}
	wf := &Workflow{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, wf); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("read Workflow %s: %w", req, err))
	}
	var list corev1.PodList
	if err := r.reader.List(ctx, &list, client.InNamespace(req.Namespace),
		client.MatchingLabels{workflowLabel: req.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.DeleteFunc(scope.Pointers(list.Items), func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, u) })
	own, _ := u.Object["spec"].(map[string]any)
	spec, broken := readSpec(own)
	now := time.Now()
	out := decide(wf, spec, pods, broken, now)
	refused, err := r.create(ctx, &out, now)
	if err == nil {
		err = r.write(ctx, u, &out)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("run Workflow %s: %w", req, err)
	}
	if refused {
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil // what contains the node follows
	}
	return reconcile.Result{}, nil
}

// create makes pods. A pod that is refused ends its node, in out.
func (r *runner) create(ctx context.Context, out *outcome, now time.Time) (refused bool, err error) {
	for _, pod := range out.create {
		err := r.client.Create(ctx, pod)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			n, stamp := out.status.Nodes[pod.Annotations[nodeIDNote]], metav1.NewTime(now.Truncate(time.Second))
			n.Phase, n.Message, n.FinishedAt = Errored, err.Error(), &stamp
			out.status.Nodes[n.ID] = n
			refused = true
		} else if err != nil { // also that of a workflow of the same name, which is on its way out
			return refused, fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
	}
	return refused, nil
}

// write puts status and labels into the object, if they say anything new. What others wrote beside them stays.
func (r *runner) write(ctx context.Context, u *unstructured.Unstructured, out *outcome) error {
	ours, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&out.status)
	if err != nil {
		return err
	}
	next := u.DeepCopy()
	status := fields.Ensure(next.Object, "status")
	delete(status, "message")
	maps.Copy(status, ours)
	fields.SetLabel(next, phaseLabel, string(out.status.Phase))
	fields.SetLabel(next, completedLabel, strconv.FormatBool(out.status.Phase.Over()))
	if reflect.DeepEqual(u.Object, next.Object) {
		return nil
	}
	return r.client.Update(ctx, next)
}
