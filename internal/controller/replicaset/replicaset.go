// Package replicaset writes the ManifestWorks of ManifestWorkReplicaSets of Open Cluster Management.
// core/source/ocm/replicaset decides.
package replicaset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha1 "github.com/argosy-io/argosy/api/ocm/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	core "github.com/argosy-io/argosy/internal/core/source/ocm/replicaset"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/filter"
)

// Options of the controller.
type Options struct {
	// Definitions are the CRDs of the hub.
	Definitions *definition.Watch
	// Gather is the delay after a change of a ManifestWork, to write one status after several changes.
	Gather time.Duration
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// firstRetry is the delay before the first retry after an error, see commit.Backoff.
const firstRetry = 100 * time.Millisecond

// byOwner indexes ManifestWorks by the label of their ManifestWorkReplicaSet.
const byOwner = "ocm.replicaSet"

type reconciler struct {
	Options
	client client.Client
	// live reads from the API server where a stale cache would leave ManifestWorks behind.
	live client.Reader
}

// Setup registers the controller with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &ocmv1.ManifestWork{}, byOwner, func(mw client.Object) []string {
		if owner := mw.GetLabels()[workv1alpha1.ReplicaSetLabel]; owner != "" {
			return []string{owner}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("index ManifestWorks by ManifestWorkReplicaSet: %w", err)
	}
	referring := func(namespace, placement string) func(context.Context) []reconcile.Request {
		return func(ctx context.Context) []reconcile.Request {
			return filter.Listed(ctx, r.client, &workv1alpha1.ManifestWorkReplicaSetList{}, func(set client.Object) bool {
				return slices.ContainsFunc(set.(*workv1alpha1.ManifestWorkReplicaSet).Spec.PlacementRefs,
					func(ref workv1alpha1.LocalPlacementReference) bool { return ref.Name == placement })
			}, client.InNamespace(namespace))
		}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("manifestworkreplicaset").
		For(&workv1alpha1.ManifestWorkReplicaSet{}, builder.WithPredicates(predicate.Or[client.Object](filter.Respecified,
			predicate.LabelChangedPredicate{}))).
		Watches(&ocmv1.ManifestWork{}, filter.Delayed(o.Gather, func(_ context.Context,
			mw client.Object) []reconcile.Request {
			namespace, name, owned := core.Owner(mw)
			if !owned {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
		}), builder.WithPredicates(filter.AfterStart, reported)).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
			_ client.Object) []reconcile.Request {
			return filter.Listed(ctx, r.client, &workv1alpha1.ManifestWorkReplicaSetList{}, nil)
		}), builder.WithPredicates(filter.AfterStart, accepted)).
		Watches(&placementv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
			p client.Object) []reconcile.Request {
			return referring(p.GetNamespace(), p.GetName())(ctx)
		}), builder.WithPredicates(filter.AfterStart, filter.Chosen)).
		Watches(&placementv1beta1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
			d client.Object) []reconcile.Request {
			return referring(d.GetNamespace(), d.GetLabels()[placementv1beta1.PlacementLabel])(ctx)
		}), builder.WithPredicates(filter.AfterStart)).
		WithOptions(controller.Options{RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		Complete(r)
}

// reported passes ManifestWorks that are new or gone, changed, or have other conditions.
var reported = filter.Changes(func(was, is *ocmv1.ManifestWork) bool {
	return was.UID != is.UID || filter.Touched(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) ||
		!was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(was.Status.Conditions, is.Status.Conditions)
})

// accepted passes clusters that are new or gone, accepted or denied, or come into a set or leave it.
var accepted = filter.Changes(func(was, is *clusterv1.ManagedCluster) bool {
	return was.UID != is.UID || core.Receives(was) != core.Receives(is)
})

// Reconcile writes the ManifestWorks of a ManifestWorkReplicaSet.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	if err := r.client.Get(ctx, req.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp != nil {
		return commit.Requeue(0, r.remove(ctx, set))
	}
	if !controllerutil.ContainsFinalizer(set, workv1alpha1.ReplicaSetFinalizer) {
		want := set.DeepCopy()
		controllerutil.AddFinalizer(want, workv1alpha1.ReplicaSetFinalizer)
		if _, err := commit.Update(ctx, r.client, set, want); err != nil {
			return commit.Requeue(0, client.IgnoreNotFound(err))
		}
		set = want
	}
	in, err := r.read(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := core.Decide(in)
	if len(r.Definitions.Broken()) > 0 {
		decision.Deletions = nil // clusters and sets may be gone with their definitions
	}
	stale, failed := r.carryOut(ctx, &in, decision)
	want := set.DeepCopy()
	want.Status = decision.Status(in, failed)
	if _, err = commit.Status(ctx, r.client, set, want); commit.Stale(err) {
		stale, err = true, nil
	}
	if err = errors.Join(failed, client.IgnoreNotFound(err)); err == nil && stale {
		return reconcile.Result{RequeueAfter: commit.SlowRetry}, nil
	}
	return reconcile.Result{RequeueAfter: decision.After}, err
}

// read returns what a decision depends on.
func (r *reconciler) read(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) (core.Input, error) {
	in := core.Input{Set: set, Placements: map[string]rollout.Placement{}, Accepted: func(cluster string) bool {
		mc := &clusterv1.ManagedCluster{}
		err := r.client.Get(ctx, types.NamespacedName{Name: cluster}, mc, client.UnsafeDisableDeepCopy)
		return err == nil && core.Receives(mc) // the cache returns no other error than that there is none
	}, Now: r.Clock.Now()}
	owner, err := core.OwnerLabel(set)
	if err != nil {
		return in, nil // the status says it
	}
	for _, ref := range set.Spec.PlacementRefs {
		p, err := facts.Placement(ctx, r.client, types.NamespacedName{Namespace: set.Namespace, Name: ref.Name})
		if err != nil {
			return in, err
		}
		in.Placements[ref.Name] = p
	}
	var works ocmv1.ManifestWorkList
	if err := r.client.List(ctx, &works, client.MatchingFields{byOwner: owner}, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list the ManifestWorks of ManifestWorkReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	in.Works = works.Items
	return in, nil
}

// carryOut writes and deletes ManifestWorks, and replaces those of in by what it wrote. An error for one cluster does
// not block the others. stale reports that the cache was behind.
func (r *reconciler) carryOut(ctx context.Context, in *core.Input, decision core.Decision) (stale bool, err error) {
	in.Works = slices.Clone(in.Works)
	var failures []error
	for _, mw := range decision.Deletions {
		failures = append(failures, commit.Delete(ctx, r.client, mw))
	}
	for _, write := range decision.Writes {
		mw := write.Want
		var err error
		if write.Was == nil {
			mw, err = r.create(ctx, mw)
		} else {
			_, err = commit.Update(ctx, r.client, write.Was, mw)
		}
		if commit.Stale(err) || write.Was != nil && commit.Absent(err) {
			stale = true
			continue
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("write ManifestWork %s/%s: %w", write.Want.Namespace, write.Want.Name, err))
			continue
		}
		in.Works = append(slices.DeleteFunc(in.Works, func(of ocmv1.ManifestWork) bool {
			return of.Namespace == mw.Namespace && of.Name == mw.Name
		}), *mw)
	}
	return stale, errors.Join(failures...)
}

// create creates a ManifestWork, and the namespace of its cluster if that is missing: clusters without a klusterlet may
// have none. If the ManifestWork exists already, because the cache is behind, it returns what is stored.
func (r *reconciler) create(ctx context.Context, want *ocmv1.ManifestWork) (*ocmv1.ManifestWork, error) {
	err := commit.CreateInNamespace(ctx, r.client, want, klusterlet.NamespaceOf(want.Namespace))
	if !apierrors.IsAlreadyExists(err) {
		return want, err
	}
	is := &ocmv1.ManifestWork{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(want), is); err != nil {
		return nil, err
	}
	if is.Labels[workv1alpha1.ReplicaSetLabel] != want.Labels[workv1alpha1.ReplicaSetLabel] ||
		is.Labels[workv1alpha1.PlacementLabel] != want.Labels[workv1alpha1.PlacementLabel] {
		return nil, errors.New("it exists, and is not of this ManifestWorkReplicaSet: rename or delete it")
	}
	return is, nil
}

// remove deletes the ManifestWorks of a set that is being deleted, and releases the set: with the policy Foreground
// after they are gone. The ManifestWorks stay if the set goes with its definition.
func (r *reconciler) remove(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) error {
	if !controllerutil.ContainsFinalizer(set, workv1alpha1.ReplicaSetFinalizer) {
		return nil
	}
	went, err := r.Definitions.WentNow(ctx, definition.ManifestWorkReplicaSets, set)
	if err != nil {
		return err
	}
	var works ocmv1.ManifestWorkList
	if owner, err := core.OwnerLabel(set); err == nil && !went {
		if err := r.live.List(ctx, &works, client.MatchingLabels{workv1alpha1.ReplicaSetLabel: owner}); err != nil {
			return fmt.Errorf("list the ManifestWorks of ManifestWorkReplicaSet %s/%s: %w", set.Namespace, set.Name, err)
		}
	}
	left := slices.DeleteFunc(works.Items, func(mw ocmv1.ManifestWork) bool { return core.Rendered(&mw) })
	for i := range left {
		if mw := &left[i]; mw.DeletionTimestamp == nil {
			if err := commit.Delete(ctx, r.client, mw); err != nil {
				return fmt.Errorf("delete ManifestWork %s/%s: %w", mw.Namespace, mw.Name, err)
			}
		}
	}
	if len(left) > 0 && set.Spec.CascadeDeletionPolicy == workv1alpha1.CascadeForeground {
		return nil // that they are gone is an event
	}
	return commit.RemoveFinalizer(ctx, r.client, set, workv1alpha1.ReplicaSetFinalizer)
}
