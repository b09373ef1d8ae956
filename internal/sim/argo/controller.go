// Package argo simulates the Argo Workflows controller in a member cluster: it runs the steps of Workflows as pods, one
// after the other as their templates say, and writes phase, progress and nodes into the object itself, as the real one
// does: a Workflow has no status subresource, so a client that sends one without its status restarts it.
//
// What happens next is a pure function of the Workflow and its pods (run.go); controller.go carries it out.
//
// Simulated: container and script templates (the pod runs the main container alone, under its own name main), steps,
// dag with dependencies, suspend without a duration; a reference to a WorkflowTemplate or ClusterWorkflowTemplate;
// parallelism, suspend, shutdown and ttlStrategy. Nodes are a graph as Argo's clients draw it. A step whose pod carries
// the annotation sim.argosy.io/exit-code fails with it; sim.argosy.io/runs-for says how long a step takes.
//
// The list ignored has fields without effect, such as parameters, which stay as they are written. A Workflow with any
// other field or template type ends in Error, and its message names it. CronWorkflows are not simulated.
package argo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
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
	data, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(data, wf)
	}
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("read Workflow %s: %w", req, err))
	}
	var pods corev1.PodList
	if err := r.reader.List(ctx, &pods, client.InNamespace(req.Namespace),
		client.MatchingLabels{workflowLabel: req.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list pods: %w", err)
	}
	var own []*corev1.Pod
	for i := range pods.Items {
		if metav1.IsControlledBy(&pods.Items[i], u) {
			own = append(own, &pods.Items[i])
		}
	}
	spec, broken, err := r.spec(ctx, u)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read the template of Workflow %s: %w", req, err)
	}
	now := time.Now()
	out := decide(wf, spec, own, broken, now)
	if out.expired {
		uid := u.GetUID()
		err := r.client.Delete(ctx, u, client.Preconditions{UID: &uid},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err = r.act(ctx, &out, now); err == nil {
		err = r.write(ctx, u, &out)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("run Workflow %s: %w", req, err)
	}
	return reconcile.Result{RequeueAfter: out.recheck}, nil
}

// spec returns what runs: the spec of the workflow over that of the template that it refers to. broken is why nothing
// runs.
func (r *runner) spec(ctx context.Context, u *unstructured.Unstructured) (spec *Spec, broken, err error) {
	own, _ := u.Object["spec"].(map[string]any)
	if spec, broken = readSpec(own); broken != nil || spec.WorkflowTemplateRef == nil {
		return spec, broken, nil
	}
	template, key := &unstructured.Unstructured{}, client.ObjectKey{Namespace: u.GetNamespace(),
		Name: spec.WorkflowTemplateRef.Name}
	template.SetGroupVersionKind(version.WithKind("WorkflowTemplate"))
	if spec.WorkflowTemplateRef.ClusterScope {
		template.SetGroupVersionKind(version.WithKind("ClusterWorkflowTemplate"))
		key.Namespace = ""
	}
	if err := r.reader.Get(ctx, key, template); apierrors.IsNotFound(err) {
		return spec, err, nil
	} else if err != nil {
		return nil, nil, err
	}
	both := map[string]any{}
	base, _ := template.Object["spec"].(map[string]any)
	maps.Copy(both, base)
	maps.Copy(both, own)
	spec, broken = readSpec(both)
	return spec, broken, nil
}

// act makes and removes pods. A pod that is refused ends its node, in out.
func (r *runner) act(ctx context.Context, out *outcome, now time.Time) error {
	for _, pod := range out.create {
		err := r.client.Create(ctx, pod)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			n, stamp := out.status.Nodes[pod.Annotations[nodeIDNote]], metav1.NewTime(now.Truncate(time.Second))
			n.Phase, n.Message, n.FinishedAt = Errored, err.Error(), &stamp
			out.status.Nodes[n.ID] = n
			out.recheck = time.Millisecond // what contains the node follows
		} else if err != nil { // also that of a workflow of the same name, which is on its way out
			return fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
	}
	var errs []error
	for _, pod := range out.remove {
		errs = append(errs, client.IgnoreNotFound(r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})))
	}
	return errors.Join(errs...)
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
