package autoscale

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
)

// ownerOf returns the FederatedHPA whose autoscaler a Work contains.
func ownerOf(work client.Object) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(work.GetAnnotations()[wellknown.AutoscalerOfAnnotation], "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok
}

// distribute lets each cluster scale within its share of the bounds and sets the template to the sum. With frozen, the
// bounds stay, and the template does not follow.
func (r *reconciler) distribute(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA, t target, frozen bool) error {
	key, now, spec := client.ObjectKeyFromObject(f), r.Clock.Now(), t.binding.BindingSpec()
	window := autoscale.Window{Since: r.history(f).Deviates, Now: now, Settings: r.Settings, Frozen: frozen}
	r.forget(key)
	f.Status.Conditions = without(without(f.Status.Conditions, autoscalingv1alpha1.MetricsComplete),
		autoscalingv2.ScalingLimited)
	f.Status.CurrentMetrics = nil // metrics are per cluster
	if t.replicas == 0 {
		f.Status.Conditions = autoscale.SetCondition(without(f.Status.Conditions, autoscalingv1alpha1.BoundsSplit),
			autoscale.Disabled(), now)
		f.Status.CurrentReplicas, f.Status.DesiredReplicas = 0, 0
		return r.end(ctx, key)
	}
	if !spec.Placement.DividesReplicas() {
		r.setCondition(f, autoscalingv1alpha1.BoundsSplit, corev1.ConditionFalse, "ReplicasDuplicated",
			"the policy runs all replicas in every cluster, so there is nothing to divide: set replicaSchedulingType: Divided, or remove the annotation "+wellknown.AutoscalingModeAnnotation)
		return r.end(ctx, key)
	}

	// 1. Compute the shares.
	replicas := map[string]int32{}
	for _, c := range spec.Clusters {
		if c.Replicas > 0 {
			replicas[c.Name] = c.Replicas
		}
	}
	if len(replicas) == 0 {
		r.setCondition(f, autoscalingv1alpha1.BoundsSplit, corev1.ConditionFalse,
			autoscalingv1alpha1.ReasonFailedGetTargetClusters,
			"the workload has no replicas in any cluster yet")
		return r.end(ctx, key)
	}
	standing, err := r.worksOf(ctx, key)
	if err != nil {
		return err
	}
	bounds := &f.Spec
	if frozen {
		if len(standing) == 0 {
			return nil // its autoscalers are created after the stage
		}
		bounds = autoscale.Frozen(bounds, replicas, standing)
	}
	shares, deviates, many := autoscale.Shares(bounds, r.holdings(t, replicas), standing, window)
	r.remember(f, autoscale.History{Deviates: deviates})

	// 2. Write one autoscaler per cluster. A cluster without an execution namespace does not block the others.
	failed := []error{r.resumeDivision(ctx, key, t.binding.GetName())}
	for _, cluster := range slices.Sorted(maps.Keys(shares)) {
		if err := r.place(ctx, f, cluster, shares[cluster], standing[cluster]); !apierrors.IsNotFound(err) &&
			!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			failed = append(failed, err)
		}
	}
	// Remove the autoscaler from a cluster only after the workload has left it.
	stay := maps.Clone(shares)
	for _, t := range spec.GracefulEvictionTasks {
		stay[t.FromCluster] = autoscale.Share{}
	}
	failed = append(failed, r.withdraw(ctx, key, stay))
	if err := errors.Join(failed...); err != nil {
		return err
	}
	r.setBoundsSplit(f, shares, standing, deviates, many)

	// 3. Set the template to the sum. Each cluster keeps the replicas that its autoscaler chose.
	current, desired, scaling := autoscale.Sum(shares, replicas, standing)
	f.Status.Conditions = autoscale.SetCondition(f.Status.Conditions, scaling, now)
	f.Status.CurrentReplicas, f.Status.DesiredReplicas = autoscale.Total(current), autoscale.Total(desired)
	if frozen {
		return nil
	}
	n := autoscale.Total(desired)
	if n > 0 {
		if err := r.recordScaled(ctx, t.binding, f.Name, desired); err != nil {
			return err
		}
	}
	if n > 0 && n != t.replicas {
		if err := r.scale(ctx, t.kind, t.template, n); err != nil {
			if !commit.Stale(err) && !apierrors.IsNotFound(err) {
				r.setCondition(f, autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale",
					"the replicas of the workload cannot be set: "+err.Error())
				r.warn(f, eventFailedRescale, err.Error())
				return nil
			}
			return err
		}
		at := metav1.NewTime(now)
		f.Status.LastScaleTime = &at
	}
	return nil
}

// holdings returns what each cluster of a workload has of it, and what it can run.
func (r *reconciler) holdings(t target, replicas map[string]int32) map[string]autoscale.Holding {
	in := map[string]autoscale.Holding{}
	if r.Fleet == nil || !r.Fleet.Synced() {
		for name, n := range replicas {
			in[name] = autoscale.Holding{Replicas: n, Room: -1}
		}
		return in
	}
	s := r.Fleet.Snapshot()
	room := r.Fleet.Room(t.binding, s)
	for name, n := range replicas {
		waiting := deschedule.Waiting(t.template, r.Fleet.Unschedulable(name), r.Clock.Now())
		in[name] = autoscale.HoldingOf(t.binding, s.Cluster(name), n, len(waiting), room)
	}
	return in
}

// setBoundsSplit sets the condition BoundsSplit: whether the clusters have applied their autoscalers, and with which
// bounds. many explains why these differ from the spec.
func (r *reconciler) setBoundsSplit(f *autoscalingv1alpha1.FederatedHPA, shares map[string]autoscale.Share,
	works map[string]*workv1alpha1.Work, deviates time.Time, many error) {
	var taken, not, waiting []string
	for _, cluster := range slices.Sorted(maps.Keys(shares)) {
		taken = append(taken, fmt.Sprintf("%s %d to %d", cluster, shares[cluster].Min, shares[cluster].Max))
		var applied *metav1.Condition
		if w := works[cluster]; w != nil && w.DeletionTimestamp == nil {
			applied = meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
		}
		switch {
		case applied == nil || applied.Status == metav1.ConditionUnknown:
			waiting = append(waiting, cluster)
		case applied.Status == metav1.ConditionFalse:
			not = append(not, fmt.Sprintf("cluster %s: %s", cluster, applied.Message))
		}
	}
	bounds := strings.Join(taken, ", ") + autoscale.Reasons(shares, deviates, r.Settings)
	switch {
	case many != nil:
		r.setCondition(f, autoscalingv1alpha1.BoundsSplit, corev1.ConditionFalse, reasonManyClusters, many.Error()+
			"; until then each has one replica")
		r.warn(f, reasonManyClusters, many.Error())
	case len(not) > 0:
		message := "some clusters do not have their autoscaler: " + strings.Join(not, "; ")
		r.setCondition(f, autoscalingv1alpha1.BoundsSplit, corev1.ConditionFalse, reasonNotApplied, message)
		r.warn(f, reasonNotApplied, message)
	case len(waiting) > 0:
		r.setCondition(f, autoscalingv1alpha1.BoundsSplit, corev1.ConditionUnknown, reasonPending,
			fmt.Sprintf("the desired bounds of the autoscalers are: %s; not applied yet in these clusters: %s", bounds,
				strings.Join(waiting, ", ")))
	default:
		r.setCondition(f, autoscalingv1alpha1.BoundsSplit, corev1.ConditionTrue, reasonSplit,
			"the autoscalers of the clusters have these bounds: "+bounds)
	}
}

// place creates or updates the Work with a cluster's autoscaler. is may be nil.
func (r *reconciler) place(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA, cluster string, s autoscale.Share,
	is *workv1alpha1.Work) error {
	w, err := autoscale.Work(f, cluster, s, execute.PermanentID(is, uuid.NewString))
	if err != nil {
		return err
	}
	if is == nil {
		err := scope.CreateWork(ctx, r.client, r.live, w, execute.ObjectOf(w))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s: %w", commit.Name(w), err)
		}
		return nil
	}
	if is.DeletionTimestamp != nil {
		return nil // recreate it after its deletion
	}
	if w, err = execute.Renamed(w, is.Name); err != nil { // it may have the longer name
		return err
	}
	want := is.DeepCopy()
	if !equality.Semantic.DeepEqual(is.Spec.Workload, w.Spec.Workload) {
		want.Spec.Workload = w.Spec.Workload
	}
	want.Annotations = maps.Clone(is.Annotations)
	maps.Copy(want.Annotations, w.Annotations)
	_, err = commit.Update(ctx, r.client, is, want)
	return err
}

// worksOf returns the Works with autoscalers of a FederatedHPA, by cluster.
func (r *reconciler) worksOf(ctx context.Context, key types.NamespacedName) (map[string]*workv1alpha1.Work, error) {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.MatchingFields{byOwner: key.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the autoscalers of FederatedHPA %s: %w", key, err)
	}
	in := map[string]*workv1alpha1.Work{}
	for i := range works.Items {
		if cluster, err := names.ClusterOf(works.Items[i].Namespace); err == nil {
			in[cluster] = &works.Items[i]
		}
	}
	return in, nil
}

// withdraw deletes the autoscalers of a FederatedHPA in clusters that are not wanted.
func (r *reconciler) withdraw(ctx context.Context, key types.NamespacedName, wanted map[string]autoscale.Share) error {
	standing, err := r.worksOf(ctx, key)
	if err != nil {
		return err
	}
	var failed []error
	for cluster, w := range standing {
		if _, stays := wanted[cluster]; !stays && w.DeletionTimestamp == nil {
			failed = append(failed, commit.Delete(ctx, r.client, w))
		}
	}
	return errors.Join(failed...)
}

// end deletes the autoscalers of a FederatedHPA and lets the scheduler divide the replicas again.
func (r *reconciler) end(ctx context.Context, key types.NamespacedName) error {
	if err := r.resumeDivision(ctx, key, ""); err != nil {
		return err
	}
	return r.withdraw(ctx, key, nil)
}

// resumeDivision lets the scheduler divide the replicas of bindings that the autoscalers of a FederatedHPA scaled,
// except for the named binding.
func (r *reconciler) resumeDivision(ctx context.Context, key types.NamespacedName, except string) error {
	var bindings workv1alpha2.ResourceBindingList
	if err := r.client.List(ctx, &bindings, client.InNamespace(key.Namespace), client.MatchingFields{byScaler: key.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the bindings that FederatedHPA %s scales: %w", key, err)
	}
	var failed []error
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if b.Name == except {
			continue
		}
		want := b.DeepCopy()
		schedule.SetScaled(want, "", nil)
		if _, err := commit.Update(ctx, r.client, b, want); client.IgnoreNotFound(err) != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
