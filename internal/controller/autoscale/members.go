package autoscale

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// setupMembers registers the controller of workloads that autoscalers in members scale, which policies propagate. It
// labels their templates, and lets the replicas of divided ones follow.
func (r *reconciler) setupMembers(mgr ctrl.Manager) error {
	c, err := controller.NewTyped("autoscale-members", mgr, controller.TypedOptions[execute.Target]{
		MaxConcurrentReconciles: max(1, r.Concurrency), RateLimiter: commit.Backoff[execute.Target](firstRetry),
		Reconciler: reconcile.TypedFunc[execute.Target](r.followMembers)})
	if err != nil {
		return fmt.Errorf("set up the autoscalers of members: %w", err)
	}
	for _, s := range []source.TypedSource[execute.Target]{
		source.TypedFunc[execute.Target](func(_ context.Context,
			q workqueue.TypedRateLimitingInterface[execute.Target]) error {
			r.Templates.Subscribe(r.templateChanged(q.Add))
			return nil
		}),
		source.TypedKind(mgr.GetCache(), &workv1alpha2.ResourceBinding{},
			handler.TypedEnqueueRequestsFromMapFunc(r.scaledBinding)),
		source.TypedKind(mgr.GetCache(), &autoscalingv1alpha1.FederatedHPA{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, f *autoscalingv1alpha1.FederatedHPA) []execute.Target {
				return []execute.Target{targetOf(f)}
			})),
	} {
		if err := c.Watch(s); err != nil {
			return fmt.Errorf("watch the autoscalers of members: %w", err)
		}
	}
	return nil
}

// templateChanged adds the workloads of autoscalers that changed, and changed workloads that have one.
func (r *reconciler) templateChanged(add func(execute.Target)) template.Handler {
	return func(was, is *unstructured.Unstructured) {
		if was != nil && is != nil && propagate.SameContent(was, is) {
			return
		}
		for _, obj := range []*unstructured.Unstructured{was, is} {
			if obj == nil {
				continue
			}
			scaled, ok := execute.TargetOf(obj)
			if self := autoscale.TargetFor(obj); ok {
				add(scaled)
			} else if obj.GetAnnotations()[wellknown.ScaledByAnnotation] != "" || len(r.Templates.Autoscalers(self)) > 0 {
				add(self)
			}
		}
	}
}

// scaledBinding returns the workload of a binding, if autoscalers in members scale it.
func (r *reconciler) scaledBinding(_ context.Context, b *workv1alpha2.ResourceBinding) []execute.Target {
	ref := b.Spec.Resource
	workload := execute.Target{GroupKind: match.GroupKind(ref.APIVersion, ref.Kind), Namespace: ref.Namespace,
		Name: ref.Name}
	if !schedule.ScaledByAutoscalers(b) && len(r.Templates.Autoscalers(workload)) == 0 {
		return nil
	}
	return []execute.Target{workload}
}

// followMembers does what is due for one workload. It requeues while a cluster has not reported: that it no longer
// responds is no event here.
func (r *reconciler) followMembers(ctx context.Context, workload execute.Target) (reconcile.Result, error) {
	after, err := r.follow(ctx, workload)
	if commit.Stale(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: commit.StaleRetry}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}

func (r *reconciler) follow(ctx context.Context, workload execute.Target) (after time.Duration, err error) {
	tmpl, found, err := r.Templates.Get(ctx, workload.GroupKind, workload.Namespace, workload.Name)
	if meta.IsNoMatchError(err) || err == nil && (!found || tmpl.GetDeletionTimestamp() != nil) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	b, _, err := scope.BindingFor(ctx, r.client, workload.GroupKind, workload.Namespace, workload.Name)
	if err != nil {
		return 0, err
	}

	// 1. The label.
	by, err := r.propagatedAutoscalers(ctx, workload, tmpl, b)
	if err != nil {
		return 0, err
	}
	if marked := autoscale.Mark(tmpl, by); marked != tmpl {
		if tmpl, err = r.Templates.Update(ctx, marked); err != nil {
			return 0, err
		}
	}
	if b == nil {
		return 0, nil
	}

	// 2. The binding, before the template: the scheduler keeps the replicas that the autoscalers set.
	if len(by) == 0 || tmpl.GetLabels()[policyv1alpha1.RetainReplicasLabel] != "true" ||
		!b.BindingSpec().Placement.DividesReplicas() {
		return 0, r.divideAgain(ctx, b)
	}
	if frozen, err := r.frozen(ctx, b); err != nil || frozen != "" {
		return r.Interval, err
	}
	sum, known := autoscale.Followed(b, tmpl.GetGeneration(), func(cluster string) bool {
		c := &clusterv1alpha1.Cluster{}
		err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, c, client.UnsafeDisableDeepCopy)
		return err != nil || membership.KnownNotReady(c)
	})
	replicas, _, _, err := r.Interpreter.Replicas(ctx, tmpl)
	if err != nil {
		return 0, err
	}
	if known = known && replicas == b.BindingSpec().Replicas; !known {
		after, sum = r.Interval, nil
	}
	if err := r.recordScaled(ctx, b, strings.Join(by, ", "), sum); err != nil || !known {
		return after, err
	}

	// 3. The template.
	if total := autoscale.Total(sum); total != replicas {
		return 0, r.scale(ctx, workload.GroupKind, tmpl, total)
	}
	return 0, nil
}

// propagatedAutoscalers returns the autoscalers of a workload that policies propagate; none if a FederatedHPA scales
// it, with which they would compete. An autoscaler that is recorded is gone only if the API server says so: after a
// start, the cache may not have it yet, and pods would move.
func (r *reconciler) propagatedAutoscalers(ctx context.Context, workload execute.Target,
	tmpl *unstructured.Unstructured, b workv1alpha2.Binding) ([]string, error) {
	text := tmpl.GetAnnotations()[wellknown.ScaledByAnnotation]
	if text == "" && b != nil && schedule.ScaledByAutoscalers(b) {
		text = b.GetAnnotations()[wellknown.ScaledByAnnotation]
	}
	recorded := strings.Split(text, ", ")
	by := autoscale.Propagated(tmpl, r.Templates.Autoscalers(workload), recorded)
	for _, gvk := range kind.Scalers() {
		for _, who := range recorded {
			name, is := strings.CutPrefix(who, gvk.Kind+" ")
			if !is || slices.Contains(by, who) {
				continue
			}
			live, found, err := r.Templates.Live(ctx, gvk.GroupKind(), workload.Namespace, name)
			switch {
			case meta.IsNoMatchError(err): // not known now
				by = append(by, who)
			case err != nil:
				return nil, err
			case found:
				by = append(by, autoscale.Propagated(tmpl, []*unstructured.Unstructured{live}, recorded)...)
			}
		}
	}
	if len(by) == 0 {
		return nil, nil
	}
	var federated autoscalingv1alpha1.FederatedHPAList
	if err := r.client.List(ctx, &federated, client.InNamespace(workload.Namespace),
		client.MatchingFields{byTarget: workload.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list FederatedHPAs: %w", err)
	}
	if len(federated.Items) > 0 {
		return nil, nil
	}
	slices.Sort(by)
	return by, nil
}

// divideAgain lets the scheduler divide the replicas of a workload that autoscalers have scaled.
func (r *reconciler) divideAgain(ctx context.Context, b workv1alpha2.Binding) error {
	if !schedule.ScaledByAutoscalers(b) {
		return nil
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	schedule.SetScaled(want, "", nil)
	_, err := commit.Update(ctx, r.client, b, want)
	return err
}

// recordScaled writes into a binding who scales it in the members, and the replicas that they set, nil if they are not
// known. The latter are not written before they differ from those that the clusters were given.
func (r *reconciler) recordScaled(ctx context.Context, b workv1alpha2.Binding, by string,
	replicas map[string]int32) error {
	given := map[string]int32{}
	for _, c := range b.BindingSpec().Clusters {
		if c.Replicas > 0 {
			given[c.Name] = c.Replicas
		}
	}
	_, recorded := b.GetAnnotations()[wellknown.ScaledByMembersAnnotation]
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	if replicas != nil && (recorded || !maps.Equal(replicas, given)) {
		schedule.SetScaled(want, by, replicas)
	} else {
		schedule.SetScaler(want, by)
	}
	_, err := commit.Update(ctx, r.client, b, want)
	return err
}
