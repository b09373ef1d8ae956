// Package klusterlet runs the life cycle of clusters whose agent is the klusterlet of Open Cluster Management: its
// certificate, its rights, its Lease, the ManagedClusterSets, and the Cluster of the same name. core/cluster/klusterlet
// decides.
package klusterlet

import (
	"cmp"
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/filter"
)

// Options of the controllers.
type Options struct {
	// Definitions are the CRDs of the hub.
	Definitions *definition.Watch
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// base has what the controllers of this package share.
type base struct {
	Options
	client client.Client
	// live reads past the cache.
	live   client.Reader
	events commit.Events
}

// Setup registers the controllers with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	b := base{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(),
		events: commit.Recorder(mgr, "managedcluster-controller")}
	named := func(name string) *builder.Builder { return ctrl.NewControllerManagedBy(mgr).Named(name) }
	byName := handler.EnqueueRequestsFromMapFunc(sameName)
	byLabel := handler.EnqueueRequestsFromMapFunc(clusterOfLabel)
	sets := &setv1beta2.ManagedClusterSetList{}
	kinds, err := newAsker(b)
	if err != nil {
		return err
	}
	definitions := &metav1.PartialObjectMetadata{}
	definitions.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	for _, err := range []error{
		named("klusterlet-csr-approver").For(&certificatesv1.CertificateSigningRequest{}).Complete(&approver{b}),
		named("managedcluster").For(&clusterv1.ManagedCluster{}, builder.WithPredicates(notLeaseOnly)).
			Watches(&clusterv1alpha1.Cluster{}, byName, builder.WithPredicates(filter.Deletions)).
			Watches(&rbacv1.ClusterRole{}, byLabel, builder.WithPredicates(filter.AfterStart)).
			Watches(&rbacv1.ClusterRoleBinding{}, byLabel, builder.WithPredicates(filter.AfterStart)).
			Watches(&rbacv1.RoleBinding{}, byLabel, builder.WithPredicates(filter.AfterStart)).
			Watches(&corev1.Namespace{}, byLabel, builder.WithPredicates(filter.CreationsAndDeletions)).
			Complete(&registrar{b}),
		named("managedcluster-lease").For(&clusterv1.ManagedCluster{}).
			Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(clusterOfLease)).
			Complete(&leases{base: b, seen: map[string]renewal{}}),
		named("managedcluster-cluster").For(&clusterv1.ManagedCluster{}).Watches(&clusterv1alpha1.Cluster{}, byName).
			Watches(&ocmv1.ManifestWork{}, handler.EnqueueRequestsFromMapFunc(clusterOfKinds)).
			Complete(&pairer{b}),
		named("managedcluster-kinds").
			For(&clusterv1.ManagedCluster{}, builder.WithPredicates(notLeaseOnly)).
			Watches(&ocmv1.ManifestWork{}, handler.EnqueueRequestsFromMapFunc(clusterOfKinds),
				builder.WithPredicates(filter.AfterStart)).
			WatchesMetadata(definitions, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
				_ client.Object) []reconcile.Request {
				return filter.Listed(ctx, b.client, &clusterv1.ManagedClusterList{}, nil)
			}), builder.WithPredicates(filter.AfterStart, filter.CreationsAndDeletions)).
			Complete(kinds),
		named("managedclusterset").For(&setv1beta2.ManagedClusterSet{}).
			Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
				_ client.Object) []reconcile.Request {
				return filter.Listed(ctx, b.client, sets.DeepCopyObject().(client.ObjectList), nil)
			}), builder.WithPredicates(predicate.LabelChangedPredicate{})).
			Complete(&sizer{b}),
		named("managedcluster-namespaces").
			For(&clusterv1.ManagedCluster{}, builder.WithPredicates(predicate.LabelChangedPredicate{})).
			Watches(&setv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
				_ client.Object) []reconcile.Request {
				return filter.Listed(ctx, b.client, &clusterv1.ManagedClusterList{}, nil)
			}), builder.WithPredicates(filter.AfterStart, predicate.GenerationChangedPredicate{})).
			Complete(&namespacer{b}),
		named("managedclustersetbinding").For(&setv1beta2.ManagedClusterSetBinding{}).
			Watches(&setv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
				set client.Object) []reconcile.Request {
				return filter.Listed(ctx, b.client, &setv1beta2.ManagedClusterSetBindingList{},
					func(binding client.Object) bool { return binding.GetName() == set.GetName() })
			}), builder.WithPredicates(filter.AfterStart, filter.CreationsAndDeletions)).
			Complete(&binder{b}),
		mgr.Add(&keeper{base: b}),
	} {
		if err != nil {
			return fmt.Errorf("set up the controllers of ManagedClusters: %w", err)
		}
	}
	return nil
}

// notLeaseOnly drops updates that change only conditions which the registrar does not read or write.
var notLeaseOnly = filter.Changes(func(was, is *clusterv1.ManagedCluster) bool {
	return was.Generation != is.Generation || !was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(was.Annotations, is.Annotations) ||
		!equality.Semantic.DeepEqual(was.Finalizers, is.Finalizers) ||
		!equality.Semantic.DeepEqual(accepted(was), accepted(is))
})

func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetName()}}}
}

func clusterOfLabel(_ context.Context, obj client.Object) []reconcile.Request {
	if name := obj.GetLabels()[clusterv1.ClusterNameLabel]; name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
	return nil
}

func clusterOfLease(_ context.Context, lease client.Object) []reconcile.Request {
	if lease.GetName() != clusterv1.LeaseName {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: lease.GetNamespace()}}}
}

// managed returns a ManagedCluster with a klusterlet, or nil: it does not exist, or the hub writes it from a Cluster.
func (b *base) managed(ctx context.Context, name string) (*clusterv1.ManagedCluster, error) {
	mc := &clusterv1.ManagedCluster{}
	if err := b.client.Get(ctx, types.NamespacedName{Name: name}, mc); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if core.Derived(mc) {
		return nil, nil
	}
	return mc, nil
}

// setCondition writes one condition.
func (b *base) setCondition(ctx context.Context, mc *clusterv1.ManagedCluster,
	condition metav1.Condition) (wrote bool, err error) {
	want := mc.DeepCopy()
	meta.SetStatusCondition(&want.Status.Conditions, condition)
	return commit.Status(ctx, b.client, mc, want)
}
