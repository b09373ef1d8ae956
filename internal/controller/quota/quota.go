// Package quota sends the ResourceQuotas of FederatedResourceQuotas to clusters, counts what namespaces use, and
// refuses writes of the hub's controllers that exceed a quota. core/admission/quota decides.
package quota

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

const (
	// gather collects changes of bindings and Works for one write of a status.
	gather = time.Second
	// recountEvery is the interval of recounts without an event.
	recountEvery = 5 * time.Minute
	// spaceRetry is the delay before a cluster without an execution space is tried again.
	spaceRetry = 2 * time.Second
	// byQuota is the index of Works by quota, with values "namespace/name".
	byQuota = "quota.owner"
)

type reconciler struct {
	client client.Client
	// live bypasses the cache, for deletions.
	live   client.Reader
	events commit.Events
	// warned are the failures that events reported.
	warned commit.Dedup[types.NamespacedName]
}

// Setup registers the controller with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager) error {
	r := &reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), events: commit.Recorder(mgr, "quota")}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, byQuota, func(obj client.Object) []string {
		if namespace, name, ok := quota.OwnerOf(obj.(*workv1alpha1.Work)); ok {
			return []string{types.NamespacedName{Namespace: namespace, Name: name}.String()}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("index works by quota: %w", err)
	}
	followed.Store(new(client.Reader(mgr.GetCache())))
	return ctrl.NewControllerManagedBy(mgr).Named("quota").
		For(&policyv1alpha1.FederatedResourceQuota{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1alpha1.Work{}, filter.Delayed(gather, func(_ context.Context, obj client.Object) []reconcile.Request {
			if namespace, name, ok := quota.OwnerOf(obj.(*workv1alpha1.Work)); ok {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
			}
			return nil
		})).
		Watches(&workv1alpha2.ResourceBinding{}, filter.Delayed(gather, func(ctx context.Context,
			obj client.Object) []reconcile.Request {
			return filter.Listed(ctx, r.client, &policyv1alpha1.FederatedResourceQuotaList{}, nil,
				client.InNamespace(obj.GetNamespace()))
		}), builder.WithPredicates(filter.AfterStart, usageChanged)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
			cluster client.Object) []reconcile.Request {
			return filter.Listed(ctx, r.client, &policyv1alpha1.FederatedResourceQuotaList{}, func(q client.Object) bool {
				for _, a := range q.(*policyv1alpha1.FederatedResourceQuota).Spec.StaticAssignments {
					if a.ClusterName == cluster.GetName() {
						return true
					}
				}
				return false
			})
		}), builder.WithPredicates(filter.AfterStart, filter.Creations)).
		Complete(r)
}

// usageChanged selects changes of what a binding uses.
var usageChanged = filter.Changes(func(before, now *workv1alpha2.ResourceBinding) bool {
	return !equality.Semantic.DeepEqual(propagate.Used(&before.Spec), propagate.Used(&now.Spec))
})

// Reconcile writes the Works and the status of one quota.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := req.NamespacedName
	works, err := r.worksOf(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	q := &policyv1alpha1.FederatedResourceQuota{}
	err = r.client.Get(ctx, key, q)
	if commit.Absent(err) {
		return commit.Requeue(0, r.withdraw(ctx, key, works))
	}
	if err != nil || q.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	sent, counted := r.send(ctx, q, works), r.count(ctx, q, works)
	if counted == nil && (apierrors.IsNotFound(sent) || apierrors.HasStatusCause(sent, corev1.NamespaceTerminatingCause)) {
		return ctrl.Result{RequeueAfter: spaceRetry}, nil // a cluster has just joined or is leaving
	}
	return commit.Requeue(recountEvery, cmp.Or(counted, sent))
}

// count writes the status of a quota.
func (r *reconciler) count(ctx context.Context, q *policyv1alpha1.FederatedResourceQuota,
	works []*workv1alpha1.Work) error {
	var bindings workv1alpha2.ResourceBindingList
	if err := r.client.List(ctx, &bindings, client.InNamespace(q.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list bindings of namespace %q: %w", q.Namespace, err)
	}
	byName := map[string]*workv1alpha2.ResourceBinding{}
	for i := range bindings.Items {
		byName[bindings.Items[i].Name] = &bindings.Items[i]
	}
	want := q.DeepCopy()
	want.Status = quota.Status(q, propagate.Sum(byName), works)
	if wrote, err := commit.Status(ctx, r.client, q, want); err != nil || !wrote {
		return client.IgnoreNotFound(err)
	}
	r.record(len(q.Status.Overall) == 0, workv1alpha2.EventCollectOverallStatusSucceed,
		"Counting the usage of the namespace succeeded.", q)
	if !equality.Semantic.DeepEqual(q.Status.AggregatedStatus, want.Status.AggregatedStatus) {
		r.record(len(q.Status.AggregatedStatus) == 0, workv1alpha2.EventAggregateStatusSucceed,
			"Collecting the usage in clusters succeeded.", q)
	}
	return nil
}

// record records a success. By default, only the first of its kind for a quota is an event.
func (r *reconciler) record(first bool, reason, message string, q *policyv1alpha1.FederatedResourceQuota) {
	if first {
		r.events.RecordSuccess(reason, message, q)
		return
	}
	r.events.RecordStep(reason, message, q)
}

// worksOf returns the Works of a quota. They are read-only.
func (r *reconciler) worksOf(ctx context.Context, key types.NamespacedName) ([]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := r.client.List(ctx, &list, client.MatchingFields{byQuota: key.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list works of FederatedResourceQuota %s: %w", key, err)
	}
	works := make([]*workv1alpha1.Work, len(list.Items))
	for i := range list.Items {
		works[i] = &list.Items[i]
	}
	return works, nil
}

// withdraw deletes the Works of a deleted quota, unless the cache does not show yet that it was created again.
func (r *reconciler) withdraw(ctx context.Context, key types.NamespacedName, works []*workv1alpha1.Work) error {
	r.warned.Forget(key)
	if len(works) == 0 {
		return nil
	}
	if err := r.live.Get(ctx, key, &policyv1alpha1.FederatedResourceQuota{}); !commit.Absent(err) {
		return err
	}
	var errs []error
	for _, w := range works {
		errs = append(errs, commit.Delete(ctx, r.client, w))
	}
	return errors.Join(errs...)
}

// send writes the Works of a quota. An error in one cluster does not block others.
func (r *reconciler) send(ctx context.Context, q *policyv1alpha1.FederatedResourceQuota,
	standing []*workv1alpha1.Work) error {
	clusters, err := facts.Clusters(ctx, r.client)
	if err != nil {
		return err
	}
	want, gone, err := quota.Works(q, standing, func(cluster string) bool {
		return clusters[cluster] != nil && clusters[cluster].DeletionTimestamp == nil
	}, uuid.NewString)
	if err != nil {
		return err
	}
	have := map[types.NamespacedName]*workv1alpha1.Work{}
	for _, w := range standing {
		have[client.ObjectKeyFromObject(w)] = w
	}
	var errs []error
	for _, w := range gone {
		errs = append(errs, commit.Delete(ctx, r.client, w))
	}
	changed, failed, key := len(gone) > 0, "", client.ObjectKeyFromObject(q)
	for _, w := range want {
		was := have[client.ObjectKeyFromObject(w)]
		switch {
		case was == nil:
			err = r.create(ctx, key, w)
		case was.DeletionTimestamp == nil && dispatch.Differs(was, w):
			_, err = commit.Update(ctx, r.client, was, dispatch.Onto(was, w))
		default:
			continue // what is being deleted is created again after that
		}
		changed = true
		if err != nil {
			cluster, _ := names.ClusterOf(w.Namespace) // it is the execution space of a cluster
			errs = append(errs, fmt.Errorf("send the ResourceQuota to cluster %q: %w", cluster, err))
			if !commit.Transient(err) && !apierrors.IsNotFound(err) {
				failed = errs[len(errs)-1].Error()
			}
		}
	}
	err = errors.Join(errs...)
	switch {
	case failed != "" && r.warned.IsNew(key, failed):
		r.events.Event(q, corev1.EventTypeWarning, workv1alpha2.EventSyncWorkFailed, failed)
	case failed == "":
		r.warned.Forget(key)
	}
	if err == nil && changed {
		r.events.RecordSuccess(workv1alpha2.EventSyncWorkSucceed, "Sync works of the quota succeeded.", q)
	}
	return err
}

// create creates a Work. It fails for good if another object of the hub has the name of the ResourceQuota.
func (r *reconciler) create(ctx context.Context, quotaKey types.NamespacedName, w *workv1alpha1.Work) error {
	err := scope.CreateWork(ctx, r.client, r.live, w, execute.ObjectOf(w))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	other := &workv1alpha1.Work{}
	if r.live.Get(ctx, client.ObjectKeyFromObject(w), other) != nil {
		return err
	}
	if namespace, name, ours := quota.OwnerOf(other); ours && namespace == quotaKey.Namespace && name == quotaKey.Name {
		return err // the cache shows it soon
	}
	return fmt.Errorf("%s already sends a ResourceQuota of this name: rename or delete one of the two", commit.Name(other))
}
