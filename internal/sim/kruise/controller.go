package kruise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictsAnnotation is set on a CloneSet or StatefulSet by tests. The first write of each in-place update, at its
// start and at its end, then meets a conflict, as the real manager often does.
const conflictsAnnotation = "sim.argosy.io/conflicts"

// ownerIndex finds what a set controls by the set's UID.
const ownerIndex = "controller"

// AddToManager adds the controllers of the kinds in versions, which must be served.
func AddToManager(ctx context.Context, mgr ctrl.Manager, versions Versions) error {
	for _, obj := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, obj, ownerIndex, func(o client.Object) []string {
			if ref := metav1.GetControllerOf(o); ref != nil {
				return []string{string(ref.UID)}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("index by owner: %w", err)
		}
	}
	for gk, add := range map[schema.GroupKind]func(kind) error{
		CloneSetKind.GroupKind():    addSets(mgr, cloneSet),
		StatefulSetKind.GroupKind(): addSets(mgr, statefulSet),
		BroadcastJobKind:            func(k kind) error { return addBroadcastJobs(mgr, k) },
		UnitedDeploymentKind:        func(k kind) error { return addUnitedDeployments(mgr, k, versions) },
		SidecarSetKind:              func(k kind) error { return addSidecarSets(ctx, mgr, k) },
	} {
		gvk, served := versions.stored(gk)
		if !served {
			continue
		}
		if err := add(kind{gvk: gvk}); err != nil {
			return fmt.Errorf("add the controller of %s: %w", gk.Kind, err)
		}
	}
	return nil
}

// addSets adds the controller of a kind whose pods are its own.
func addSets(mgr ctrl.Manager, decide decider) func(kind) error {
	return func(k kind) error {
		k.decide = decide
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k.gvk)
		return ctrl.NewControllerManagedBy(mgr).Named("kruise-" + strings.ToLower(k.gvk.Kind)).
			For(u).
			Owns(&corev1.Pod{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
			Complete(&reconciler{client: mgr.GetClient(), cache: mgr.GetCache(), kind: k, pending: &pending{}})
	}
}

// kind is a kind and what is decided for an object of it.
type kind struct {
	gvk    schema.GroupVersionKind
	decide decider
}

// decider says what to do for an object; the status goes with the messages of failed steps.
type decider func(*unstructured.Unstructured, observed) (steps, statusFunc, error)

type statusFunc func(messages map[string]string) (status any, recheck time.Duration, err error)

func cloneSet(u *unstructured.Unstructured, o observed) (steps, statusFunc, error) {
	cs, err := readCloneSet(u)
	if err != nil {
		return steps{}, nil, err
	}
	s, err := decideCloneSet(cs, o, func() string { return rand.String(5) })
	return s, func(failed map[string]string) (any, time.Duration, error) {
		// An error at the end of an in-place update counts as one of the update, and an error of a removal as one of scaling.
		messages := map[string]string{
			"FailedScale":  cmp.Or(failed["create"], failed["remove"]),
			"FailedUpdate": cmp.Or(failed["finish"], failed["update"]),
		}
		return answer(cloneSetStatus(cs, o, messages))
	}, err
}

func statefulSet(u *unstructured.Unstructured, o observed) (steps, statusFunc, error) {
	set, err := read[StatefulSet](u)
	if err != nil {
		return steps{}, nil, err
	}
	// Claims outlive the set, so they are found by name and not by owner.
	s, err := decideStatefulSet(set, o)
	return s, func(failed map[string]string) (any, time.Duration, error) {
		messages := map[string]string{"FailedCreatePod": failed["create"], "FailedUpdatePod": failed["update"]}
		status, err := statefulSetStatus(set, o, messages)
		return &status, 0, err
	}, err
}

// answer gives a typed status as any.
func answer[T any](status T, recheck time.Duration, err error) (any, time.Duration, error) {
	return &status, recheck, err
}

type reconciler struct {
	// client reads what has no type of its own from the server, and everything else from cache.
	client  client.Client
	cache   client.Reader
	kind    kind
	pending *pending
}

// Reconcile implements reconcile.Reconciler: observe, decide, act, report.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind.gvk)
	err := r.client.Get(ctx, req.NamespacedName, u)
	if apierrors.IsNotFound(err) {
		r.pending.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil || u.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err // the garbage collector takes what it owns
	}

	o := observed{now: time.Now()}
	if o.pods, err = r.pods(ctx, u); err != nil {
		return reconcile.Result{}, err
	}
	if !r.pending.settled(req.NamespacedName, o.pods, o.now) {
		return reconcile.Result{RequeueAfter: cacheTimeout}, nil
	}
	if o.claims, err = r.claims(ctx, u); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.revise(ctx, u, &o); conflict(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil // the cache is behind
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("keep the revisions of %s: %w", req, err)
	}
	s, status, err := r.kind.decide(u, o)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("decide for %s: %w", req, err))
	}
	failed, err := r.act(ctx, u, o, s)
	value, recheck, statusErr := status(failed)
	if statusErr == nil {
		statusErr = r.report(ctx, u, value)
	}
	if statusErr == nil && s.toDelete != nil {
		statusErr = r.truncate(ctx, u, s.toDelete)
	}
	if err := errors.Join(err, statusErr); err != nil {
		if conflict(err) {
			return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
		}
		return reconcile.Result{}, fmt.Errorf("act for %s: %w", req, err)
	}
	s.recheckIn(recheck)
	return reconcile.Result{RequeueAfter: s.recheck}, nil
}

func conflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

func (r *reconciler) pods(ctx context.Context, u *unstructured.Unstructured) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.InNamespace(u.GetNamespace()),
		client.MatchingFields{ownerIndex: string(u.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// claims are those that the set's claim templates may have made; none are looked for where there are no templates.
func (r *reconciler) claims(ctx context.Context,
	u *unstructured.Unstructured) ([]*corev1.PersistentVolumeClaim, error) {
	templates, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	if len(templates) == 0 {
		return nil, nil
	}
	var list corev1.PersistentVolumeClaimList
	if err := r.client.List(ctx, &list, client.InNamespace(u.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	var claims []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		c := &list.Items[i]
		owner := metav1.GetControllerOf(c)
		if owner == nil || owner.UID == u.GetUID() {
			claims = append(claims, c)
		}
	}
	return claims, nil
}

// revise makes sure that the spec's template is stored as the newest revision, and fills in what is observed of them.
func (r *reconciler) revise(ctx context.Context, u *unstructured.Unstructured, o *observed) error {
	var list appsv1.ControllerRevisionList
	if err := r.client.List(ctx, &list, client.InNamespace(u.GetNamespace()),
		client.MatchingFields{ownerIndex: string(u.GetUID())}); err != nil {
		return err
	}
	var revisions []*appsv1.ControllerRevision
	for i := range list.Items {
		revisions = append(revisions, &list.Items[i])
	}
	data, err := revisionData(u)
	if err != nil {
		return err
	}
	current, _, _ := unstructured.NestedString(u.Object, "status", "currentRevision")
	inUse := map[string]bool{current: true}
	for _, p := range o.pods {
		inUse[revisionOf(p)] = true
	}
	limit, found, _ := unstructured.NestedInt64(u.Object, "spec", "revisionHistoryLimit")
	if !found {
		limit = 10
	}
	if n, found, _ := unstructured.NestedInt64(u.Object, "status", "collisionCount"); found {
		count := int32(n)
		o.collisions = &count
	}
	update, number, surplus := history(revisions, data, inUse, int32(limit))
	switch {
	case update == nil:
		if update, err = r.store(ctx, u, data, number, &o.collisions); err != nil {
			return err
		}
		revisions = append(revisions, update)
	case update.Revision < number:
		// The template went back to an earlier one.
		update.Revision = number
		if err := r.client.Update(ctx, update); err != nil {
			return err
		}
	}
	for _, old := range surplus {
		if err := r.client.Delete(ctx, old); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	o.update, o.current = update.Name, current
	o.revisions = map[string]*corev1.PodTemplateSpec{}
	for _, rev := range revisions {
		if rev != update && !inUse[rev.Name] {
			continue
		}
		if o.revisions[rev.Name], err = templateOf(rev); err != nil {
			return err
		}
	}
	if o.revisions[current] == nil {
		o.current = o.update
	}
	return nil
}

// store writes a new revision. A name that another content has taken counts as a collision and gives another name.
func (r *reconciler) store(ctx context.Context, u *unstructured.Unstructured, data []byte, number int64,
	collisions **int32) (*appsv1.ControllerRevision, error) {
	for {
		rev := newRevision(u, data, number, *collisions)
		err := r.client.Create(ctx, rev)
		if !apierrors.IsAlreadyExists(err) {
			return rev, err
		}
		// The cache may be behind ourselves. Only content that differs is a collision.
		var have appsv1.ControllerRevision
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(rev), &have); err != nil {
			return nil, err
		}
		if metav1.IsControlledBy(&have, u) && reflect.DeepEqual(have.Data.Raw, data) {
			return &have, nil
		}
		next := int32(1)
		if *collisions != nil {
			next = **collisions + 1
		}
		*collisions = &next
	}
}

// act takes the steps. It returns the messages of failed steps by the kind of step, and an error if a step must be
// retried.
func (r *reconciler) act(ctx context.Context, u *unstructured.Unstructured, o observed,
	s steps) (map[string]string, error) {
	key := client.ObjectKeyFromObject(u)
	failed := map[string]string{"update": s.blocked}
	var errs []error
	conflicts := u.GetAnnotations()[conflictsAnnotation] != ""
	for _, p := range s.finish {
		err := error(nil)
		if conflicts {
			err = r.conflict(ctx, key, p, "finish "+o.update)
		}
		if err == nil {
			err = r.finishInPlace(ctx, key, p, o.now)
		}
		if err != nil {
			err = fmt.Errorf("finish the update of pod %s: %w", p.Name, err)
			failed["finish"] = err.Error()
			errs = append(errs, err)
		}
	}
	for _, c := range s.create {
		if err := r.create(ctx, key, c, o.now); err != nil {
			err = fmt.Errorf("create pod %s: %w", c.pod.Name, err)
			failed["create"] = err.Error()
			errs = append(errs, err)
			break // what refuses one refuses the next
		}
	}
	for _, d := range s.remove {
		if err := r.remove(ctx, key, d, o.now); err != nil {
			err = fmt.Errorf("remove pod %s: %w", d.pod.Name, err)
			failed["remove"] = err.Error()
			errs = append(errs, err)
		}
	}
	for _, p := range s.inPlace {
		err := error(nil)
		if conflicts {
			err = r.conflict(ctx, key, p, "start "+o.update)
		}
		if err == nil {
			err = r.startInPlace(ctx, key, p, o)
		}
		if err != nil {
			err = fmt.Errorf("update pod %s: %w", p.Name, err)
			failed["update"] = err.Error() // a conflict, too, which is tried again at once
			errs = append(errs, err)
		}
	}
	return failed, errors.Join(errs...)
}

// conflict provokes a conflict of p with the API server, once for each step. Later calls return nil.
func (r *reconciler) conflict(ctx context.Context, set types.NamespacedName, p *corev1.Pod, step string) error {
	if !r.pending.first(set, string(p.UID)+" "+step) {
		return nil
	}
	stale := p.DeepCopy()
	stale.ResourceVersion = "1" // no pod has this version anymore
	return r.client.Status().Update(ctx, stale)
}

func (r *reconciler) create(ctx context.Context, set types.NamespacedName, c creation, now time.Time) error {
	for _, claim := range c.claims {
		if err := r.client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create claim %s: %w", claim.Name, err)
		}
	}
	if err := r.client.Create(ctx, c.pod); err != nil {
		return err
	}
	r.pending.expect(set, c.pod.Name, write{version: c.pod.ResourceVersion, at: now})
	return nil
}

func (r *reconciler) remove(ctx context.Context, set types.NamespacedName, d removal, now time.Time) error {
	if err := r.client.Delete(ctx, d.pod, client.Preconditions{UID: &d.pod.UID}); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.pending.expect(set, d.pod.Name, write{gone: d.pod.UID, at: now})
	for _, name := range d.claims {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: d.pod.Namespace, Name: name}}
		if err := r.client.Delete(ctx, claim); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove claim %s: %w", name, err)
		}
	}
	return nil
}

// startInPlace first takes the pod out of service, then asks for the new images.
func (r *reconciler) startInPlace(ctx context.Context, set types.NamespacedName, p *corev1.Pod, o observed) error {
	down := p.DeepCopy()
	if slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == inPlaceReady
	}) {
		setPodCondition(down, inPlaceReady, corev1.ConditionFalse, "StartInPlaceUpdate", o.now)
		setPodCondition(down, corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady", o.now)
		if err := r.client.Status().Update(ctx, down); err != nil {
			return err
		}
		r.pending.expect(set, p.Name, write{version: down.ResourceVersion, at: o.now})
	}
	next, err := updatedInPlace(down, o.update, o.revisions[o.update], o.now.UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	if err := r.client.Update(ctx, next); err != nil {
		return err
	}
	r.pending.expect(set, p.Name, write{version: next.ResourceVersion, at: o.now})
	return nil
}

// finishInPlace puts the pod back into service.
func (r *reconciler) finishInPlace(ctx context.Context, set types.NamespacedName, p *corev1.Pod, now time.Time) error {
	up := p.DeepCopy()
	setPodCondition(up, inPlaceReady, corev1.ConditionTrue, "", now)
	if err := r.client.Status().Update(ctx, up); err != nil {
		return err
	}
	r.pending.expect(set, p.Name, write{version: up.ResourceVersion, at: now})
	return nil
}

func setPodCondition(p *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus, reason string,
	now time.Time) {
	c := corev1.PodCondition{Type: t, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now)}
	if have := condition(p, t); have != nil {
		*have = c
		return
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
}

// report writes the status if it says anything new.
func (r *reconciler) report(ctx context.Context, u *unstructured.Unstructured, status any) error {
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return err
	}
	if have, _, _ := unstructured.NestedMap(u.Object, "status"); reflect.DeepEqual(have, want) {
		return nil
	}
	out := u.DeepCopy()
	out.Object["status"] = want
	return r.client.Status().Update(ctx, out)
}

// truncate takes the names of pods that are gone out of the spec's pods to delete, as the real manager does.
func (r *reconciler) truncate(ctx context.Context, u *unstructured.Unstructured, left []string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": u.GetUID()},
		"spec":     map[string]any{"scaleStrategy": map[string]any{"podsToDelete": left}},
	})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(r.client.Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}
