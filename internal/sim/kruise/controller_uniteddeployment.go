package kruise

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// unitedDeployments makes the workloads of subsets; the pods are those workloads' to make.
type unitedDeployments struct {
	reconciler
	versions Versions
}

func addUnitedDeployments(mgr ctrl.Manager, k kind, versions Versions) error {
	r := &unitedDeployments{reconciler{client: mgr.GetClient(), cache: mgr.GetCache(), kind: k, pending: &pending{}},
		versions}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk)
	b := ctrl.NewControllerManagedBy(mgr).Named("kruise-uniteddeployment").
		For(u).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod))
	for _, gvk := range r.childKinds() {
		c := &unstructured.Unstructured{}
		c.SetGroupVersionKind(gvk)
		b = b.Owns(c)
	}
	return b.Complete(r)
}

// childKinds are those that a subset may be, as far as they are served.
func (r *unitedDeployments) childKinds() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("Deployment"),
		appsv1.SchemeGroupVersion.WithKind("StatefulSet")}
	for _, gk := range []schema.GroupKind{CloneSetKind.GroupKind(), StatefulSetKind.GroupKind()} {
		if gvk, ok := r.versions.stored(gk); ok {
			kinds = append(kinds, gvk)
		}
	}
	return kinds
}

// ofPod returns the UnitedDeployments that a pod of a subset may be part of.
func (r *unitedDeployments) ofPod(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[subsetLabel] == "" {
		return nil
	}
	list := listOf(r.kind.gvk)
	if r.cache.List(ctx, list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	return requests(list)
}

func (r *unitedDeployments) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind.gvk)
	err := r.client.Get(ctx, req.NamespacedName, u)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil || u.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	ud, err := read[UnitedDeployment](u)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("read %s: %w", req, err))
	}
	children, err := r.children(ctx, u)
	if err != nil {
		return reconcile.Result{}, err
	}
	o := observed{now: time.Now()}
	if err := r.revise(ctx, u, &o); conflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("keep the revisions of %s: %w", req, err)
	}
	s, err := decideUnitedDeployment(ud, children, o.update, r.versions)
	if err == nil {
		err = r.apply(ctx, s)
	}
	if conflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	if err != nil {
		// The real manager records an event and writes no status while it cannot write a subset: observedGeneration stays
		// behind.
		return reconcile.Result{}, fmt.Errorf("act for %s: %w", req, err)
	}
	pods, err := r.subsetPods(ctx, ud)
	if err != nil {
		return reconcile.Result{}, err
	}
	status := unitedDeploymentStatus(ud, pods, o)
	if err := r.report(ctx, u, &status); conflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("report for %s: %w", req, err)
	}
	return reconcile.Result{}, nil
}

// children returns the workloads that u controls.
func (r *unitedDeployments) children(ctx context.Context,
	u *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, gvk := range r.childKinds() {
		list := listOf(gvk)
		if err := r.cache.List(ctx, list, client.InNamespace(u.GetNamespace()), client.HasLabels{subsetLabel}); err != nil {
			return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], u) {
				out = append(out, &list.Items[i])
			}
		}
	}
	return out, nil
}

func (r *unitedDeployments) apply(ctx context.Context, s subsetSteps) error {
	var errs []error
	for _, c := range s.create {
		// A name of its own that stays the same, so that a cache that is behind makes no second child.
		c.SetName(c.GetGenerateName() + suffixOf(c))
		c.SetGenerateName("")
		if err := r.client.Create(ctx, c); err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, fmt.Errorf("create %s %s: %w", c.GetKind(), c.GetName(), err))
		}
	}
	for _, pair := range s.update {
		have, want := pair[0], pair[1]
		next := have.DeepCopy()
		next.Object["spec"] = runtime.DeepCopyJSON(want.Object["spec"].(map[string]any))
		next.SetLabels(want.GetLabels())
		next.SetAnnotations(merged(have.GetAnnotations(), want.GetAnnotations()))
		keepVolumeClaims(have, next)
		if err := r.client.Update(ctx, next); err != nil {
			errs = append(errs, fmt.Errorf("update %s %s: %w", have.GetKind(), have.GetName(), err))
		}
	}
	for _, c := range s.remove {
		uid := c.GetUID()
		err := r.client.Delete(ctx, c, client.Preconditions{UID: &uid},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("remove %s %s: %w", c.GetKind(), c.GetName(), err))
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// suffixOf looks random and depends on the owner and the subset alone.
func suffixOf(c *unstructured.Unstructured) string {
	owner := types.UID("")
	if ref := metav1.GetControllerOf(c); ref != nil {
		owner = ref.UID
	}
	return hashOf([]string{string(owner), c.GetLabels()[subsetLabel], c.GetKind()})[:5]
}

// keepVolumeClaims leaves claim templates as they are, which a StatefulSet does not let change.
func keepVolumeClaims(have, next *unstructured.Unstructured) {
	if have.GetKind() != "StatefulSet" {
		return
	}
	spec := next.Object["spec"].(map[string]any)
	delete(spec, "volumeClaimTemplates")
	if claims, found, _ := unstructured.NestedSlice(have.Object, "spec", "volumeClaimTemplates"); found {
		spec["volumeClaimTemplates"] = claims
	}
}

func (r *unitedDeployments) subsetPods(ctx context.Context, ud *UnitedDeployment) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(ud.Spec.Selector)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.InNamespace(ud.Namespace),
		client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}
