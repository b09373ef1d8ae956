package autoscale

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/scope"
)

// federated evaluates one FederatedHPA and requeues after the interval.
func (r *reconciler) federated(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	f := &autoscalingv1alpha1.FederatedHPA{}
	err := r.client.Get(ctx, req.NamespacedName, f)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("get FederatedHPA %s: %w", req, err)
	}
	if err != nil || f.DeletionTimestamp != nil {
		r.forget(req.NamespacedName)
		r.reported.Forget(req.NamespacedName)
		return reconcile.Result{}, r.end(ctx, req.NamespacedName)
	}
	want := f.DeepCopy()
	validate.DefaultFederatedHPA(want)
	err = r.evaluate(ctx, want)
	if err == nil {
		want.Spec = f.Spec
		generation := f.Generation
		want.Status.ObservedGeneration = &generation
		want.Status.Conditions = autoscale.KeepTransitionTimes(want.Status.Conditions, f.Status.Conditions)
		_, err = commit.Status(ctx, r.client, f, want)
	}
	switch {
	case commit.Stale(err) || apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: min(commit.SlowRetry, r.Interval)}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.Interval}, nil
}

// trouble is the reason why a workload cannot be scaled, for a condition.
type trouble struct {
	kind            autoscalingv2.HorizontalPodAutoscalerConditionType
	reason, message string
	// gone is true if the workload does not exist, so that the members' autoscalers can be deleted.
	gone bool
	// soon is true if the hub probably ends it by itself.
	soon bool
}

// target is the workload that a FederatedHPA scales, with its clusters.
type target struct {
	kind     schema.GroupKind
	template *unstructured.Unstructured
	binding  workv1alpha2.Binding
	replicas int32
}

// evaluate does what is due for f and sets its status. It returns only errors of the hub itself.
func (r *reconciler) evaluate(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA) error {
	key := client.ObjectKeyFromObject(f)
	t, problem, err := r.target(ctx, f)
	if err != nil {
		return err
	}
	if problem != nil {
		r.setCondition(f, problem.kind, corev1.ConditionFalse, problem.reason, problem.message)
		if !problem.soon {
			r.warn(f, problem.reason, problem.message)
		}
		if problem.gone {
			f.Status.Conditions = without(f.Status.Conditions, autoscalingv1alpha1.BoundsSplit)
			return r.end(ctx, key)
		}
		return nil
	}
	frozen, err := r.frozen(ctx, t.binding)
	if err != nil {
		return err
	}
	r.setAble(f, frozen)
	if f.Distributed() {
		return r.distribute(ctx, f, t, frozen != "")
	}
	if frozen != "" {
		return nil
	}
	if err := r.end(ctx, key); err != nil {
		return err
	}
	f.Status.Conditions = without(f.Status.Conditions, autoscalingv1alpha1.BoundsSplit)
	return r.central(ctx, f, t)
}

// frozen returns why FederatedHPAs do not scale a workload now; empty if they do.
func (r *reconciler) frozen(ctx context.Context, b workv1alpha2.Binding) (string, error) {
	plan := fleet.PlanOf(b.GetAnnotations())
	if plan == nil {
		return "", nil
	}
	key, rel := types.NamespacedName{Namespace: b.GetNamespace(), Name: plan.Release}, &releasev1alpha1.Release{}
	if err := r.client.Get(ctx, key, rel); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("get Release %s: %w", key, err)
	}
	stage := release.FrozenStage(plan, rel)
	if stage == "" {
		return "", nil
	}
	return fmt.Sprintf("release %s has autoscaling: Freeze, so the hub does not scale the workload until stage %s ends",
		rel.Name, stage), nil
}

// setAble sets AbleToScale of a workload whose replicas are known.
func (r *reconciler) setAble(f *autoscalingv1alpha1.FederatedHPA, frozen string) {
	if frozen != "" {
		r.setCondition(f, autoscalingv2.AbleToScale, corev1.ConditionFalse, autoscalingv1alpha1.ReasonFrozen, frozen)
		return
	}
	r.setCondition(f, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale",
		"the replicas of the workload are known and can be set")
}

// central scales the template by the load of its pods in all clusters.
func (r *reconciler) central(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA, t target) error {
	key, now := client.ObjectKeyFromObject(f), r.Clock.Now()
	selector, err := autoscale.Selector(t.template)
	if err != nil {
		r.setCondition(f, autoscalingv2.ScalingActive, corev1.ConditionFalse, reasonInvalidSelector, err.Error())
		r.warn(f, reasonInvalidSelector, err.Error())
		return nil
	}

	// 1. Read the metrics and decide.
	in := autoscale.Input{Spec: &f.Spec, Current: t.replicas, Each: !t.binding.BindingSpec().Placement.DividesReplicas(),
		History: r.history(f), Settings: r.Settings, Now: now}
	if t.replicas > 0 {
		in.Clusters = r.read(ctx, f, t.binding.BindingSpec(), selector)
	}
	d := autoscale.Decide(in)

	// 2. Set the conditions and scale.
	f.Status.Conditions = without(f.Status.Conditions, autoscalingv1alpha1.MetricsComplete)
	for _, c := range d.Conditions {
		f.Status.Conditions = autoscale.SetCondition(f.Status.Conditions, c, now)
	}
	f.Status.CurrentReplicas, f.Status.DesiredReplicas = t.replicas, d.Desired
	if d.Failure == nil {
		f.Status.CurrentMetrics = d.Metrics
	}
	if d.Desired == t.replicas {
		r.remember(f, d.History)
		if d.Failure != nil {
			r.warn(f, eventFailedMetrics, d.Failure.Error())
			return nil
		}
		r.reported.Forget(key)
		return nil
	}
	if err := r.scale(ctx, t.kind, t.template, d.Desired); err != nil {
		if commit.Stale(err) || apierrors.IsNotFound(err) {
			return err
		}
		r.setCondition(f, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale",
			"the replicas of the workload cannot be set: "+err.Error())
		r.warn(f, eventFailedRescale, fmt.Sprintf("New size: %d; reason: %s; error: %v", d.Desired, d.Reason, err))
		f.Status.DesiredReplicas = t.replicas
		return nil
	}
	r.remember(f, d.History.Scaled(t.replicas, d.Desired, now))
	r.reported.Forget(key)
	r.setCondition(f, autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededRescale",
		fmt.Sprintf("the workload was scaled to %d replicas", d.Desired))
	at := metav1.NewTime(now)
	f.Status.LastScaleTime = &at
	r.events.RecordSuccess(eventRescaled, fmt.Sprintf("New size: %d; reason: %s", d.Desired, d.Reason), f)
	ctrl.LoggerFrom(ctx).Info("rescaled", "workload", t.template.GetName(), "from", t.replicas, "to", d.Desired, "reason",
		d.Reason)
	return nil
}

// target finds the workload that f scales. problem is set if it cannot be scaled.
func (r *reconciler) target(ctx context.Context,
	f *autoscalingv1alpha1.FederatedHPA) (t target, problem *trouble, err error) {
	unable := func(reason, format string, args ...any) *trouble {
		return &trouble{kind: autoscalingv2.AbleToScale, reason: reason, message: fmt.Sprintf(format, args...)}
	}
	first, err := r.first(ctx, f)
	if err != nil {
		return t, nil, err
	}
	ref := f.Spec.ScaleTargetRef
	if first != "" {
		return t, &trouble{kind: autoscalingv2.ScalingActive, reason: reasonAmbiguous,
			message: fmt.Sprintf("FederatedHPA %s, which is older, also scales %s %s: delete one of them", first, ref.Kind,
				ref.Name)}, nil
	}
	t.kind = match.GroupKind(ref.APIVersion, ref.Kind)
	found := false
	if t.template, found, err = r.Templates.Get(ctx, t.kind, f.Namespace, ref.Name); err != nil &&
		!meta.IsNoMatchError(err) {
		return t, nil, err
	}
	if !found || t.template.GetDeletionTimestamp() != nil {
		problem = unable(autoscalingv1alpha1.ReasonFailedGetScaleTargetRef, "there is no %s %s in namespace %s on the hub",
			t.kind, ref.Name, f.Namespace)
		// During startup the hub may not serve the kind yet. The workload is gone only if its binding is gone too.
		b, _, err := scope.BindingFor(ctx, r.client, t.kind, f.Namespace, ref.Name, client.UnsafeDisableDeepCopy)
		problem.gone = err == nil && b == nil
		return t, problem, nil
	}
	scales := false
	if t.replicas, _, scales, err = r.Interpreter.Replicas(ctx, t.template); err != nil {
		return t, unable(reasonFailedGetScale, "the replicas of %s %s cannot be read: %v", ref.Kind, ref.Name, err), nil
	}
	if !scales {
		return t, unable(reasonFailedGetScale, "a %s has no replicas to scale", t.kind), nil
	}
	if t.binding, _, err = scope.BindingFor(ctx, r.client, t.kind, f.Namespace, ref.Name); err != nil {
		return t, nil, err
	}
	if t.binding == nil {
		problem = unable(autoscalingv1alpha1.ReasonFailedGetBinding, "no policy propagates %s %s: it has no binding",
			ref.Kind, ref.Name)
		problem.gone = true
		if _, claimed := propagate.Claimed(t.template); claimed {
			problem = unable(autoscalingv1alpha1.ReasonFailedGetBinding,
				"%s %s has no binding yet, though a policy has claimed it: `argosy why` shows what it waits for", ref.Kind,
				ref.Name)
			problem.soon = r.isNew(f, t.template)
		}
		return t, problem, nil
	}
	if len(t.binding.BindingSpec().Clusters) == 0 && t.replicas > 0 {
		problem = unable(autoscalingv1alpha1.ReasonFailedGetTargetClusters,
			"%s %s is not scheduled to any cluster: see the condition Scheduled of binding %s", ref.Kind, ref.Name,
			t.binding.GetName())
		problem.gone = !schedule.NeverPlaced(t.binding)
		problem.soon = r.isNew(f, t.template) &&
			meta.FindStatusCondition(t.binding.BindingStatus().Conditions, workv1alpha2.Scheduled) == nil
		return t, problem, nil
	}
	return t, nil, nil
}

// newFor is the time after its creation in which a workload, or its FederatedHPA, is not expected to be placed.
const newFor = time.Minute

// isNew reports whether f or its workload was created just now.
func (r *reconciler) isNew(f *autoscalingv1alpha1.FederatedHPA, template *unstructured.Unstructured) bool {
	created := template.GetCreationTimestamp()
	return r.Clock.Since(f.CreationTimestamp.Time) < newFor || r.Clock.Since(created.Time) < newFor
}

// first returns the name of an older FederatedHPA of the same workload, or empty.
func (r *reconciler) first(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA) (string, error) {
	var list autoscalingv1alpha1.FederatedHPAList
	if err := r.client.List(ctx, &list, client.InNamespace(f.Namespace),
		client.MatchingFields{byTarget: targetOf(f).String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list FederatedHPAs: %w", err)
	}
	older := func(a, b *autoscalingv1alpha1.FederatedHPA) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}
	name := ""
	for i := range list.Items {
		if other := &list.Items[i]; other.Name != f.Name && other.DeletionTimestamp == nil && older(other, f) < 0 &&
			(name == "" || other.Name < name) {
			name = other.Name
		}
	}
	return name, nil
}

// setCondition sets a condition in the status of f.
func (r *reconciler) setCondition(f *autoscalingv1alpha1.FederatedHPA,
	kind autoscalingv2.HorizontalPodAutoscalerConditionType,
	status corev1.ConditionStatus, reason, message string) {
	f.Status.Conditions = autoscale.SetCondition(f.Status.Conditions,
		autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status, Reason: reason, Message: message},
		r.Clock.Now())
}

// warn records a warning event once.
func (r *reconciler) warn(f *autoscalingv1alpha1.FederatedHPA, reason, message string) {
	if r.reported.IsNew(client.ObjectKeyFromObject(f), reason+message) {
		r.events.Event(f, corev1.EventTypeWarning, reason, message)
	}
}

func without(all []autoscalingv2.HorizontalPodAutoscalerCondition,
	kind autoscalingv2.HorizontalPodAutoscalerConditionType) []autoscalingv2.HorizontalPodAutoscalerCondition {
	return slices.DeleteFunc(slices.Clone(all), func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == kind
	})
}

func (r *reconciler) history(f *autoscalingv1alpha1.FederatedHPA) autoscale.History {
	if h, known := r.histories.Load(client.ObjectKeyFromObject(f)); known && h.(remembered).uid == f.UID {
		return h.(remembered).history
	}
	return autoscale.History{}
}

func (r *reconciler) remember(f *autoscalingv1alpha1.FederatedHPA, h autoscale.History) {
	r.histories.Store(client.ObjectKeyFromObject(f), remembered{f.UID, h})
}

func (r *reconciler) forget(key types.NamespacedName) { r.histories.Delete(key) }
