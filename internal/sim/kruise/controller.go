package kruise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
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
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

// conflictsAnnotation is set on a CloneSet or StatefulSet by tests. The first write of each in-place update, at its
// start and at its end, then meets a conflict, as the real manager often does.
const conflictsAnnotation = "sim.argosy.io/conflicts"

// ownerLabel is the UID of the object that a revision is of.
const ownerLabel = "sim.argosy.io/owner"

// Versions are the versions in which a member stores the kinds of OpenKruise; the controllers work in those. A kind
// that is missing is not served, and has no controller.
type Versions map[schema.GroupKind]string

// stored returns the kind in the version that the member stores; ok is false if the kind is not served.
func (v Versions) stored(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool) {
	version := v[gk]
	return gk.WithVersion(version), version != ""
}

// simulated are the kinds that have a controller.
var simulated = map[schema.GroupKind]bool{CloneSetKind.GroupKind(): true, StatefulSetKind.GroupKind(): true,
	BroadcastJobKind: true, UnitedDeploymentKind: true, SidecarSetKind: true}

// AddToManager adds the controllers of the kinds in versions, which must be served.
func AddToManager(mgr ctrl.Manager, versions Versions) error {
	for gk := range simulated {
		gvk, served := versions.stored(gk)
		if !served {
			continue
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		r := &reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader(), gvk: gvk, versions: versions}
		b := ctrl.NewControllerManagedBy(mgr).Named("kruise-" + strings.ToLower(gk.Kind)).For(u).
			WithOptions(controller.Options{MaxConcurrentReconciles: 4})
		switch gk {
		case CloneSetKind.GroupKind():
			r.sync = r.syncSet(cloneSet)
			b = b.Owns(&corev1.Pod{})
		case StatefulSetKind.GroupKind():
			r.sync = r.syncSet(statefulSet)
			b = b.Owns(&corev1.Pod{})
		case BroadcastJobKind:
			r.sync = r.syncBroadcastJob
			// A node that comes, is labelled or changes its taints may need a pod. Heartbeats change none of that.
			b = b.Owns(&corev1.Pod{}).Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.requestAll),
				builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
					return !reflect.DeepEqual(e.ObjectOld.(*corev1.Node).Spec, e.ObjectNew.(*corev1.Node).Spec) ||
						!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
				}}))
		case UnitedDeploymentKind:
			r.sync = r.syncUnitedDeployment
			for _, child := range versions.childKinds() {
				c := &unstructured.Unstructured{}
				c.SetGroupVersionKind(child)
				b = b.Owns(c)
			}
			b = b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.requestAll),
				builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
					return o.GetLabels()[subsetLabel] != ""
				})))
		case SidecarSetKind:
			r.sync = r.syncSidecarSet
			b = b.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
				o client.Object) (out []reconcile.Request) {
				for _, name := range injectors(o.(*corev1.Pod)) {
					out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
				}
				return out
			}))
		}
		if err := b.Complete(r); err != nil {
			return fmt.Errorf("add the controller of %s: %w", gk.Kind, err)
		}
	}
	return nil
}

// reconciler is the controller of one kind. It reads from the server itself, since it must see its own last write.
type reconciler struct {
	client   client.Client
	reader   client.Reader
	gvk      schema.GroupVersionKind
	versions Versions
	// sync looks at an object and does what is to be done next. The duration is when time alone changes that; zero means
	// never.
	sync func(context.Context, *unstructured.Unstructured) (time.Duration, error)
	// conflicts are the steps that met their conflict.
	conflicts sync.Map
}

func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.gvk)
	if err := r.reader.Get(ctx, req.NamespacedName, u); err != nil || u.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // the garbage collector takes what it owns
	}
	recheck, err := r.sync(ctx, u)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("sync %s %s: %w", r.gvk.Kind, req, err)
	}
	return reconcile.Result{RequeueAfter: recheck}, nil
}

func (r *reconciler) requestAll(ctx context.Context, _ client.Object) []reconcile.Request {
	return filter.Listed(ctx, r.reader, listOf(r.gvk), nil)
}

func listOf(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return list
}

// decider says what to do for a set of pods, and its status once the steps were taken: failed has the messages of those
// that failed, by kind of step.
type decider func(*unstructured.Unstructured, observed) (steps, statusFunc, error)

type statusFunc func(failed map[string]string) (status any, err error)

func cloneSet(u *unstructured.Unstructured, o observed) (steps, statusFunc, error) {
	cs, err := readCloneSet(u)
	if err != nil {
		return steps{}, nil, err
	}
	s, err := decideCloneSet(cs, o, func() string { return rand.String(5) })
	return s, func(failed map[string]string) (any, error) {
		// An error at the end of an in-place update counts as one of the update, and an error of a removal as one of scaling.
		status, err := cloneSetStatus(cs, o, map[string]string{
			"FailedScale":  cmp.Or(failed["create"], failed["remove"]),
			"FailedUpdate": cmp.Or(failed["finish"], failed["update"]),
		})
		return &status, err
	}, err
}

func statefulSet(u *unstructured.Unstructured, o observed) (steps, statusFunc, error) {
	set, err := read[StatefulSet](u)
	if err != nil {
		return steps{}, nil, err
	}
	s, err := decideStatefulSet(set, o)
	return s, func(failed map[string]string) (any, error) {
		status, err := statefulSetStatus(set, o, map[string]string{"FailedCreatePod": failed["create"],
			"FailedUpdatePod": failed["update"]})
		return &status, err
	}, err
}

// syncSet returns the sync of a kind of sets: it observes the pods, decides, acts and reports.
func (r *reconciler) syncSet(decide decider) func(context.Context, *unstructured.Unstructured) (time.Duration, error) {
	return func(ctx context.Context, u *unstructured.Unstructured) (time.Duration, error) {
		o := observed{now: time.Now()}
		selector, _, _ := unstructured.NestedMap(u.Object, "spec", "selector")
		var err error
		if o.pods, err = r.pods(ctx, u, selector); err != nil {
			return 0, err
		}
		if err := r.revise(ctx, u, &o); err != nil {
			return 0, err
		}
		s, status, err := decide(u, o)
		if err != nil {
			return 0, err
		}
		failed, err := r.act(ctx, u, o, s)
		value, statusErr := status(failed)
		if statusErr == nil {
			statusErr = r.report(ctx, u, value)
		}
		if statusErr == nil && s.toDelete != nil {
			statusErr = r.truncate(ctx, u, s.toDelete)
		}
		return s.recheck, joined(err, statusErr)
	}
}

// joined joins errors so that a conflict is found in them.
func joined(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	slices.SortStableFunc(errs, func(a, b error) int {
		return compareBool(apierrors.IsConflict(b), apierrors.IsConflict(a))
	})
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// pods returns the pods that u controls, of those with labels.
func (r *reconciler) pods(ctx context.Context, u *unstructured.Unstructured,
	selector map[string]any) ([]*corev1.Pod, error) {
	var labels metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &labels); err != nil {
		return nil, err
	}
	selected, err := r.selectPods(ctx, u.GetNamespace(), &labels)
	return slices.DeleteFunc(selected, func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, u) }), err
}

// selectPods returns pods by their labels, sorted by name.
func (r *reconciler) selectPods(ctx context.Context, namespace string,
	labels *metav1.LabelSelector) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(labels)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := r.reader.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := scope.Pointers(list.Items)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// revise makes sure that the spec's template is stored as a revision, and fills in what is observed of them. A revision
// is named after its content.
func (r *reconciler) revise(ctx context.Context, u *unstructured.Unstructured, o *observed) error {
	var list appsv1.ControllerRevisionList
	ours := client.MatchingLabels{ownerLabel: string(u.GetUID())}
	if err := r.reader.List(ctx, &list, client.InNamespace(u.GetNamespace()), ours); err != nil {
		return err
	}
	o.revisions = map[string]*corev1.PodTemplateSpec{}
	add := func(rev *appsv1.ControllerRevision) error {
		var stored struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		if err := json.Unmarshal(rev.Data.Raw, &stored); err != nil {
			return fmt.Errorf("read revision %s: %w", rev.Name, err)
		}
		o.revisions[rev.Name] = &stored.Spec.Template
		return nil
	}
	for i := range list.Items {
		if err := add(&list.Items[i]); err != nil {
			return err
		}
	}
	template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return err
	}
	o.update = u.GetName() + "-" + hashOf(template)
	if o.revisions[o.update] == nil {
		rev := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: o.update, Namespace: u.GetNamespace(), Labels: ours,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(u, u.GroupVersionKind())}},
			Data: runtime.RawExtension{Raw: data}, Revision: int64(len(o.revisions) + 1),
		}
		// One of that name has the same content: it is of an earlier object of the name, which is gone.
		if err := r.client.Create(ctx, rev); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create revision %s: %w", rev.Name, err)
		}
		if err := add(rev); err != nil {
			return err
		}
	}
	if o.current, _, _ = unstructured.NestedString(u.Object, "status", "currentRevision"); o.revisions[o.current] == nil {
		o.current = o.update
	}
	return nil
}

// act takes the steps. It returns the messages of failed steps by the kind of step, and an error if a step must be
// retried.
func (r *reconciler) act(ctx context.Context, u *unstructured.Unstructured, o observed,
	s steps) (map[string]string, error) {
	failed := map[string]string{"update": s.blocked}
	var errs []error
	note := func(kind, what string, p *corev1.Pod, err error) {
		if err != nil {
			err = fmt.Errorf("%s pod %s: %w", what, p.Name, err)
			failed[kind] = err.Error() // a conflict, too, which is tried again at once
			errs = append(errs, err)
		}
	}
	conflicts := u.GetAnnotations()[conflictsAnnotation] != ""
	inPlace := func(step string, p *corev1.Pod, do func(*corev1.Pod) error) error {
		p = p.DeepCopy()
		if conflicts {
			if _, met := r.conflicts.LoadOrStore(string(p.UID)+step+o.update, true); !met {
				p.ResourceVersion = "1" // no pod has this version anymore
				return r.client.Status().Update(ctx, p)
			}
		}
		return do(p)
	}
	for _, p := range s.finish {
		note("finish", "finish the update of", p, inPlace("finish", p, func(p *corev1.Pod) error {
			setPodCondition(p, inPlaceReady, corev1.ConditionTrue, "", o.now)
			return r.client.Status().Update(ctx, p)
		}))
	}
	for _, c := range s.create {
		err := r.create(ctx, c)
		if note("create", "create", c.pod, err); err != nil {
			break // what refuses one refuses the next
		}
	}
	for _, p := range s.remove {
		note("remove", "remove", p, client.IgnoreNotFound(r.client.Delete(ctx, p, client.Preconditions{UID: &p.UID})))
	}
	for _, p := range s.inPlace {
		note("update", "update", p, inPlace("start", p, func(p *corev1.Pod) error { return r.startInPlace(ctx, p, o) }))
	}
	return failed, joined(errs...)
}

func (r *reconciler) create(ctx context.Context, c creation) error {
	for _, claim := range c.claims {
		if err := r.client.Create(ctx, claim); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create claim %s: %w", claim.Name, err)
		}
	}
	return r.client.Create(ctx, c.pod)
}

// startInPlace first takes the pod out of service, then asks for the new images.
func (r *reconciler) startInPlace(ctx context.Context, p *corev1.Pod, o observed) error {
	if slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return g.ConditionType == inPlaceReady
	}) {
		setPodCondition(p, inPlaceReady, corev1.ConditionFalse, "StartInPlaceUpdate", o.now)
		setPodCondition(p, corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady", o.now)
		if err := r.client.Status().Update(ctx, p); err != nil {
			return err
		}
	}
	return r.client.Update(ctx, updatedInPlace(p, o.update, o.revisions[o.update], o.now.UTC().Format(time.RFC3339)))
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
	patch := []byte(text.JSON(map[string]any{
		"metadata": map[string]any{"uid": u.GetUID()},
		"spec":     map[string]any{"scaleStrategy": map[string]any{"podsToDelete": left}},
	}))
	return client.IgnoreNotFound(r.client.Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
}
