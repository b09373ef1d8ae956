// Package cluster runs the life cycle of member clusters and keeps their status up to date. core/cluster/membership
// decides what a status means. Package member connects to the member.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/scope"
)

// Options of the controllers. Zero values mean the defaults.
type Options struct {
	Members *member.Members
	// Definitions are the CRDs of the hub.
	Definitions *definition.Watch
	// Thresholds are how long a member must respond, or not respond, before the condition Ready changes. The default is
	// 30s each.
	Thresholds membership.Thresholds
	// StatusUpdateFrequency is the interval between status updates of a member. The default is 10s.
	StatusUpdateFrequency time.Duration
	// Grants lists the users that may be impersonated in members. The default is none.
	Grants acting.Source
	// NoExecuteTaintPolicies permits ClusterTaintPolicies to add NoExecute taints.
	NoExecuteTaintPolicies bool
	// Clock defaults to the real clock.
	Clock clock.WithTicker
}

func (o Options) withDefaults() Options {
	o.Thresholds.Success = cmp.Or(o.Thresholds.Success, 30*time.Second)
	o.Thresholds.Failure = cmp.Or(o.Thresholds.Failure, 30*time.Second)
	o.StatusUpdateFrequency = cmp.Or(o.StatusUpdateFrequency, 10*time.Second)
	if o.Grants == nil {
		o.Grants = acting.Fixed(access.Grants{})
	}
	o.Clock = cmp.Or(o.Clock, clock.WithTicker(clock.RealClock{}))
	return o
}

// Setup registers the controllers for the life cycle and the status of Clusters with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	life := &lifecycle{
		client:      mgr.GetClient(),
		members:     o.Members,
		definitions: o.Definitions,
		clock:       o.Clock,
		noExecute:   o.NoExecuteTaintPolicies,
		events:      commit.Recorder(mgr, "cluster-controller"),
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("cluster").
		For(&clusterv1alpha1.Cluster{}).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(clusterOfSpace),
			builder.WithPredicates(filter.Deletions)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(life.leaverOfWork),
			builder.WithPredicates(filter.Deletions)).
		Watches(&policyv1alpha1.ClusterTaintPolicy{}, handler.EnqueueRequestsFromMapFunc(life.allClusters)).
		Watches(&remedyv1alpha1.Remedy{}, handler.EnqueueRequestsFromMapFunc(life.allClusters)).
		Watches(scope.Bindings.Kinds()[0], handler.EnqueueRequestsFromMapFunc(life.leavers)).
		Watches(scope.Bindings.Kinds()[1], handler.EnqueueRequestsFromMapFunc(life.leavers)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		Complete(life)
	if err != nil {
		return fmt.Errorf("set up the cluster controller: %w", err)
	}
	if err := setupLeases(mgr, o); err != nil {
		return err
	}
	return SetupStatus(mgr, o)
}

// SetupStatus registers only the controller for the status of Clusters. An agent needs no other.
func SetupStatus(mgr ctrl.Manager, o Options) error {
	o = o.withDefaults()
	status := newCollector(mgr.GetClient(), commit.Recorder(mgr, "cluster-status-controller"),
		commit.Recorder(mgr, "unified-auth-controller"), o)
	o.Members.OnAnswer(status.kick)
	o.Members.OnTaken(status.kick)
	o.Members.OnBrake(func(cluster, _ string, _ bool) { status.kick(cluster) })
	if err := mgr.Add(status); err != nil {
		return fmt.Errorf("set up the cluster status controller: %w", err)
	}
	// Only changes of the connection or the credentials trigger a new probe. The status is written by the probe itself.
	err := ctrl.NewControllerManagedBy(mgr).Named("cluster-status").
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(
			predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, systemNamesChanged))).
		Complete(status)
	if err != nil {
		return fmt.Errorf("set up the cluster status controller: %w", err)
	}
	return nil
}

// systemNamesChanged selects changes of the system names that an administrator permits to impersonate.
var systemNamesChanged = filter.Changes(func(was, is client.Object) bool {
	return was.GetAnnotations()[wellknown.SystemNamesAnnotation] != is.GetAnnotations()[wellknown.SystemNamesAnnotation]
})

func clusterOfSpace(_ context.Context, obj client.Object) []reconcile.Request {
	name, err := names.ClusterOf(obj.GetName())
	if err != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// allClusters maps a ClusterTaintPolicy or a Remedy to all clusters.
func (l *lifecycle) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	return filter.Listed(ctx, l.client, &clusterv1alpha1.ClusterList{}, nil)
}
