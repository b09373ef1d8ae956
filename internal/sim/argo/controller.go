package argo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
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
)

// AddToManager adds the controller of Workflows. Their definitions must be served.
func AddToManager(mgr ctrl.Manager) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(WorkflowKind)
	err := ctrl.NewControllerManagedBy(mgr).Named("argo-workflow").
		For(u).
		Owns(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(&runner{mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("add the controller of Workflow: %w", err)
	}
	return nil
}

// runner reads Workflows and their templates from the server itself, since it must see its own last write.
type runner struct{ client client.Client }

// quotaPatience is when a pod is tried again that a quota did not let be.
const quotaPatience = 5 * time.Second

// Reconcile implements reconcile.Reconciler: observe, decide, act, and write the object as a whole.
func (r *runner) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(WorkflowKind)
	if err := r.client.Get(ctx, req.NamespacedName, u); err != nil || u.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // the garbage collector takes what it owns
	}
	if err := expand(u); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("read Workflow %s: %w", req, err))
	}
	wf, err := parse[Workflow](u.Object)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("read Workflow %s: %w", req, err))
	}
	spec, stored, err := r.resolve(ctx, u, wf)
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	missing := err
	pods, err := r.pods(ctx, u)
	if err != nil {
		return reconcile.Result{}, err
	}
	find := func(ref TemplateRef) (*Template, error) { return r.find(ctx, req.Namespace, ref) }
	now := time.Now()
	out := decide(wf, spec, pods, find, now)
	if missing != nil && !wf.Status.Phase.Over() {
		p := &pass{wf: wf, spec: spec, now: metav1.NewTime(now.Truncate(time.Second))}
		p.out.status = wf.Status
		p.fail(missing.Error())
		out = p.out
	}
	if out.expired {
		uid := u.GetUID()
		err := r.client.Delete(ctx, u, client.Preconditions{UID: &uid},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.act(ctx, u, &out, now); errors.Is(err, errAgain) {
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("act for Workflow %s: %w", req, err)
	}
	if err := r.write(ctx, u, &out, stored); apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("write Workflow %s: %w", req, client.IgnoreNotFound(err))
	}
	return reconcile.Result{RequeueAfter: out.recheck}, nil
}

// storedSpec is the field of the status that holds the spec of a workflow that refers to a template, as it was at the
// start: what the template becomes later does not matter.
const storedSpec = "storedWorkflowTemplateSpec"

// resolve returns the spec to run and, if the workflow refers to a template, what is to be stored of it.
func (r *runner) resolve(ctx context.Context, u *unstructured.Unstructured,
	wf *Workflow) (*Spec, map[string]any, error) {
	ref := wf.Spec.WorkflowTemplateRef
	if ref == nil {
		return &wf.Spec, nil, nil
	}
	stored, found, _ := unstructured.NestedMap(u.Object, "status", storedSpec)
	if !found {
		template, err := r.get(ctx, wf.Namespace, *ref)
		if err != nil {
			return &wf.Spec, nil, err
		}
		own, _, _ := unstructured.NestedMap(u.Object, "spec")
		base, _, _ := unstructured.NestedMap(template.Object, "spec")
		stored = resolved(own, base)
	}
	spec, err := parse[Spec](stored)
	if err != nil {
		return &wf.Spec, nil, fmt.Errorf("read %s: %w", ref.Name, err)
	}
	return spec, stored, nil
}

func (r *runner) get(ctx context.Context, namespace string, ref TemplateRef) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(WorkflowTemplateKind)
	if ref.ClusterScope {
		u.SetGroupVersionKind(ClusterWorkflowTemplateKind)
		namespace = ""
	}
	return u, r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, u)
}

func (r *runner) find(ctx context.Context, namespace string, ref TemplateRef) (*Template, error) {
	u, err := r.get(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	spec, err := parse[struct {
		Spec Spec `json:"spec"`
	}](u.Object)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), ref.Name, err)
	}
	t := (&pass{spec: &spec.Spec}).template(ref.Template)
	if t == nil {
		return nil, fmt.Errorf("%s %s has no template %q", u.GetKind(), ref.Name, ref.Template)
	}
	return t, nil
}

func (r *runner) pods(ctx context.Context, u *unstructured.Unstructured) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.InNamespace(u.GetNamespace()),
		client.MatchingLabels{workflowLabel: u.GetName()}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], u) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// act makes and removes pods. A pod that is refused ends its node, in out.
func (r *runner) act(ctx context.Context, u *unstructured.Unstructured, out *outcome, now time.Time) error {
	before, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	switch {
	case len(out.create) > 0:
		for _, c := range out.claims {
			if err := r.client.Create(ctx, c); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create claim %s: %w", c.Name, err)
			}
		}
	case out.over && !Phase(before).Over():
		for _, c := range out.claims {
			if err := r.client.Delete(ctx, c); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("remove claim %s: %w", c.Name, err)
			}
		}
	}
	for _, pod := range out.create {
		err := r.client.Create(ctx, pod)
		switch {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			// Ours from a pass whose status was lost, or one of a workflow of that name that is on its way out.
			var have corev1.Pod
			if r.client.Get(ctx, client.ObjectKeyFromObject(pod), &have) != nil || !metav1.IsControlledBy(&have, u) {
				return errAgain
			}
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
			delete(out.status.Nodes, pod.Annotations[nodeIDNote])
			out.recheck = quotaPatience
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
			out.status.refused(pod, err, metav1.NewTime(now.Truncate(time.Second)))
			out.recheck = time.Millisecond // what contains the node has to hear of it
		default:
			return fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
	}
	for _, pod := range out.remove {
		if err := r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil &&
			!apierrors.IsConflict(err) {
			return fmt.Errorf("remove pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// write puts status and labels into the object, if they say anything new. What others wrote beside them stays.
func (r *runner) write(ctx context.Context, u *unstructured.Unstructured, out *outcome, stored map[string]any) error {
	ours, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&out.status)
	if err != nil {
		return err
	}
	have, _, _ := unstructured.NestedMap(u.Object, "status")
	status := over(have, ours, "phase", "startedAt", "finishedAt", "progress", "message", "conditions", "nodes")
	if nodes, ok := ours["nodes"].(map[string]any); ok {
		had, _ := have["nodes"].(map[string]any)
		merged := map[string]any{}
		for id, n := range nodes {
			before, _ := had[id].(map[string]any)
			merged[id] = over(before, n.(map[string]any), "phase", "finishedAt", "progress", "message", "children",
				"outboundNodes", "hostNodeName")
		}
		status["nodes"] = merged
	}
	if stored != nil {
		status[storedSpec] = stored
	}
	next := u.DeepCopy()
	next.Object["status"] = status
	if len(out.labels) > 0 {
		labels := maps.Clone(u.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, out.labels)
		next.SetLabels(labels)
	}
	if reflect.DeepEqual(u.Object, next.Object) {
		return nil
	}
	if err := compress(next); err != nil {
		return err
	}
	return r.client.Update(ctx, next)
}

// over is have with the fields of ours, and without those named that ours lacks.
func over(have, ours map[string]any, names ...string) map[string]any {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]any{}
	}
	for _, name := range names {
		delete(out, name)
	}
	maps.Copy(out, ours)
	return out
}
