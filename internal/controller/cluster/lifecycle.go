package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/core/cluster/taint"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/scope"
)

// lifecycle creates the execution namespace of a Cluster, writes its taints and the actions of Remedies, and removes
// the finalizer when nothing is left:
//
//	deleted → no binding targets it → its Works are gone → its execution space is gone → finalizer removed
type lifecycle struct {
	client  client.Client
	members *member.Members
	events  commit.Events
	// definitions are the CRDs of the hub.
	definitions *definition.Watch
	clock       clock.PassiveClock
	// noExecute permits ClusterTaintPolicies to add NoExecute taints.
	noExecute bool

	// leaving are the names of clusters that are being deleted. Changes of the objects that they wait for trigger them.
	leaving sync.Map
}

func (l *lifecycle) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := l.client.Get(ctx, req.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			l.leaving.Delete(req.Name)
			l.members.Forget(req.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.DeletionTimestamp != nil {
		after, err := l.leave(ctx, cluster)
		return reconcile.Result{RequeueAfter: after}, err
	}
	wrote, err := l.keep(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := l.openSpace(ctx, cluster); err != nil || wrote {
		return reconcile.Result{}, err // the written Cluster causes an event
	}
	return commit.Requeue(0, l.setActions(ctx, cluster))
}

// setActions writes the actions of Remedies into the status. An agent cannot do that for its Cluster: it may read no
// Remedies, and admission keeps the field in what it writes. If the Remedies cannot be read, the actions stay.
func (l *lifecycle) setActions(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	var remedies remedyv1alpha1.RemedyList
	if err := l.client.List(ctx, &remedies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Remedies: %w", err)
	}
	want := cluster.DeepCopy()
	want.Status.RemedyActions = remedy.Actions(cluster, remedies.Items)
	_, err := commit.Status(ctx, l.client, cluster, want)
	return err
}

// keep writes finalizer and taints at once: taints for the condition Ready, then those of ClusterTaintPolicies. It
// reports whether it wrote.
func (l *lifecycle) keep(ctx context.Context, cluster *clusterv1alpha1.Cluster) (wrote bool, err error) {
	var policies policyv1alpha1.ClusterTaintPolicyList
	if err := l.client.List(ctx, &policies); err != nil {
		return false, fmt.Errorf("list ClusterTaintPolicies: %w", err)
	}
	want := cluster.DeepCopy()
	controllerutil.AddFinalizer(want, workv1alpha2.ClusterFinalizer)
	ready, now := membership.Readiness(cluster), l.clock.Now()
	taints, changed := membership.Taints(want.Spec.Taints, ready, now)
	taints, steps := taint.Apply(cluster, taints, policies.Items, l.noExecute, now)
	want.Spec.Taints = taints
	wrote, err = commit.Update(ctx, l.client, cluster, want)
	var reasons []string
	if changed {
		reasons = append(reasons, fmt.Sprintf("condition Ready is %s", ready.Status))
	}
	for _, step := range steps {
		reasons = append(reasons, step.String())
	}
	switch {
	case err != nil && len(reasons) > 0 && !commit.Stale(err):
		l.events.Eventf(cluster, corev1.EventTypeWarning, workv1alpha2.EventTaintClusterFailed, "Taint cluster failed: %v",
			err)
		return false, err
	case err != nil || !wrote || len(reasons) == 0:
		return wrote, err
	}
	l.events.RecordSuccess(workv1alpha2.EventTaintClusterSucceed, "Taint cluster succeed: "+strings.Join(reasons, "; "),
		cluster)
	return true, nil
}

// openSpace creates the namespace for the cluster's Works.
func (l *lifecycle) openSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	name := names.ExecutionSpace(cluster.Name)
	space := &corev1.Namespace{}
	err := l.client.Get(ctx, types.NamespacedName{Name: name}, space)
	switch {
	case apierrors.IsNotFound(err):
		space = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{workv1alpha2.SystemLabel: "true"}}}
		if err := l.client.Create(ctx, space); apierrors.IsAlreadyExists(err) {
			return nil
		} else if err != nil {
			l.events.Eventf(cluster, corev1.EventTypeWarning, workv1alpha2.EventCreateExecutionSpaceFailed,
				"Create execution space(%s) failed: %v", name, err)
			return fmt.Errorf("create execution space %s: %w", name, err)
		}
		l.events.RecordSuccess(workv1alpha2.EventCreateExecutionSpaceSucceed,
			fmt.Sprintf("Create execution space(%s) for cluster(%s) succeed", name, cluster.Name), cluster)
		return nil
	case err != nil:
		return fmt.Errorf("read execution space %s: %w", name, err)
	case space.DeletionTimestamp != nil:
		return nil // of a former cluster with this name; its deletion triggers a retry
	}
	want := space.DeepCopy()
	metav1.SetMetaDataLabel(&want.ObjectMeta, workv1alpha2.SystemLabel, "true")
	_, err = commit.Update(ctx, l.client, space, want)
	return err
}

// brokenRetry is the retry interval of a deletion while a CRD of the hub is missing.
const brokenRetry = time.Second

// silentRetry is the interval of checks whether a user gave up a cluster with a silent klusterlet.
const silentRetry = 5 * time.Second

// leave proceeds as far as possible. It continues after a change of what it waits for, or after the returned time.
func (l *lifecycle) leave(ctx context.Context, cluster *clusterv1alpha1.Cluster) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(cluster, workv1alpha2.ClusterFinalizer) {
		return 0, nil
	}
	if l.definitions.Going(definition.Clusters) {
		// The Cluster is deleted with its CRD, not on request, so objects in the hub and in the member stay.
		l.members.Forget(cluster.Name)
		return 0, commit.RemoveFinalizer(ctx, l.client, cluster, workv1alpha2.ClusterFinalizer)
	}
	if broken := l.definitions.Broken(); len(broken) > 0 {
		return brokenRetry, nil // bindings or Works may be invisible
	}
	l.leaving.Store(cluster.Name, true)
	log := ctrl.LoggerFrom(ctx)

	// 1. Wait until the scheduler has removed the cluster from all bindings.
	bindings, err := scope.Bindings.List(ctx, l.client)
	if err != nil {
		return 0, fmt.Errorf("list bindings: %w", err)
	}
	for _, b := range bindings {
		if membership.Targets(b, cluster.Name) {
			log.V(1).Info("waiting for bindings to be removed from the cluster", "binding", commit.Name(b))
			return 0, nil
		}
	}

	// 2. Delete the Works and their objects in the member. An unreachable member keeps the objects.
	name := names.ExecutionSpace(cluster.Name)
	var works workv1alpha1.WorkList
	if err := l.client.List(ctx, &works, client.InNamespace(name)); err != nil {
		return 0, fmt.Errorf("list works of cluster %q: %w", cluster.Name, err)
	}
	reachable, err := l.waitsForCluster(ctx, cluster)
	if err != nil {
		return 0, err
	}
	for i := range works.Items {
		if err := commit.Delete(ctx, l.client, &works.Items[i]); err != nil {
			return 0, err
		}
		if reachable {
			continue
		}
		if err := l.abandon(ctx, client.ObjectKeyFromObject(&works.Items[i])); err != nil {
			return 0, err
		}
	}
	if reachable && len(works.Items) > 0 {
		log.V(1).Info("waiting for the Works of the cluster to be deleted", "works", len(works.Items))
		if !membership.IsReady(cluster) {
			return silentRetry, nil // a user may give the cluster up
		}
		return 0, nil
	}

	// 3. Delete the execution namespace.
	space := &corev1.Namespace{}
	switch err := l.client.Get(ctx, types.NamespacedName{Name: name}, space); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return 0, fmt.Errorf("read execution space %s: %w", name, err)
	default:
		return 0, l.closeSpace(ctx, cluster, space)
	}

	// 4. Release the member, which may join another hub.
	if reachable && !membership.Pulls(cluster) { // `argosy unregister` releases a cluster with an agent.
		if err := l.removeOwnership(ctx, cluster.Name); err != nil {
			return 0, err
		}
	}
	l.members.Forget(cluster.Name)
	if membership.Pulls(cluster) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: names.Clusters, Name: cluster.Name}}
		if err := l.client.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("delete the Lease of the agent of cluster %q: %w", cluster.Name, err)
		}
	}
	// Before the Cluster is gone: no certificate in its name may create another, or act in the next.
	grants := pull.GrantsOf(cluster.Name)
	if err := commit.DeleteAll(ctx, l.client, grants.Objects()); err != nil {
		return 0, err
	}
	return 0, commit.RemoveFinalizer(ctx, l.client, cluster, workv1alpha2.ClusterFinalizer)
}

// waitsForCluster reports whether the hub waits until the cluster has carried out the deletion of its Works. A silent
// klusterlet would carry it out later, so the hub waits until a user gives the cluster up.
func (l *lifecycle) waitsForCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	if membership.IsReady(cluster) || !klusterlet.Manages(cluster) {
		return membership.IsReady(cluster), nil
	}
	mc := &clusterv1.ManagedCluster{}
	if err := l.client.Get(ctx, types.NamespacedName{Name: cluster.Name}, mc); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return mc.Annotations[wellknown.ForceRemovalAnnotation] != "true", nil
}

// removeOwnership removes the hub's impersonation permissions and its ownership from a member. In an unreachable member
// the ownership stays. It expires without renewal, so it does not block another hub.
func (l *lifecycle) removeOwnership(ctx context.Context, cluster string) error {
	m := l.members.Known(cluster)
	if m == nil {
		return nil
	}
	if err := acting.Leave(ctx, m.Client(), string(l.members.Hub())); err != nil && !errors.Is(err, member.ErrNotOwner) &&
		!member.Unreachable(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("revoke this hub's permission to impersonate users in cluster %q: %w", cluster, err)
	}
	if err := m.Leave(ctx); err != nil && !member.Unreachable(err) && !apierrors.IsUnauthorized(err) &&
		!apierrors.IsForbidden(err) {
		return fmt.Errorf("remove this hub's claim from cluster %q: %w", cluster, err)
	}
	return nil
}

func (l *lifecycle) closeSpace(ctx context.Context, cluster *clusterv1alpha1.Cluster, space *corev1.Namespace) error {
	if space.DeletionTimestamp != nil {
		return nil
	}
	if err := commit.Delete(ctx, l.client, space); err != nil {
		l.events.Eventf(cluster, corev1.EventTypeWarning, workv1alpha2.EventRemoveExecutionSpaceFailed,
			"Remove execution space(%s) failed: %v", space.Name, err)
		return err
	}
	l.events.RecordSuccess(workv1alpha2.EventRemoveExecutionSpaceSucceed,
		fmt.Sprintf("Remove execution space(%s) succeed", space.Name), cluster)
	return nil
}

// abandon releases a Work without deleting its object in the member.
func (l *lifecycle) abandon(ctx context.Context, key types.NamespacedName) error {
	work := &workv1alpha1.Work{}
	if err := l.client.Get(ctx, key, work); err != nil {
		return client.IgnoreNotFound(err)
	}
	return commit.RemoveFinalizer(ctx, l.client, work, workv1alpha2.ExecutionFinalizer, execute.OrderedFinalizer)
}

// leavers maps a binding to all clusters that are being deleted. Usually there are none.
func (l *lifecycle) leavers(context.Context, client.Object) []reconcile.Request {
	var requests []reconcile.Request
	l.leaving.Range(func(name, _ any) bool {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name.(string)}})
		return true
	})
	return requests
}

func (l *lifecycle) leaverOfWork(_ context.Context, work client.Object) []reconcile.Request {
	name, err := names.ClusterOf(work.GetNamespace())
	if err != nil {
		return nil
	}
	if _, leaving := l.leaving.Load(name); !leaving {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
