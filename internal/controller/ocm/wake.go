package ocm

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/filter"
)

// A ManifestWork is triggered by changes of itself, its Works, their objects in the member, and its cluster.

// byManifestWork indexes Works by ManifestWork.
const byManifestWork = "ocm.manifestWork"

// Setup registers the controller with the manager and its watches with the members.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	o.Look = cmp.Or(o.Look, defaultLook)
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, byManifestWork,
		func(obj client.Object) []string {
			if key, ok := manifestWorkOf(obj); ok {
				return []string{key.String()}
			}
			return nil
		}); err != nil {
		return fmt.Errorf("index works by manifest work: %w", err)
	}
	o.Members.Handle(r.memberEvent)
	return ctrl.NewControllerManagedBy(mgr).Named("manifestwork").
		WithOptions(controller.Options{MaxConcurrentReconciles: max(o.Concurrency, 1),
			RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		For(&ocmv1.ManifestWork{}, builder.WithPredicates(asked)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
			w client.Object) []reconcile.Request {
			if key, ok := manifestWorkOf(w); ok {
				return []reconcile.Request{{NamespacedName: key}}
			}
			return nil
		})).
		Watches(&clusterv1alpha1.Cluster{},
			handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, c client.Object) []reconcile.Request {
				return r.manifestWorksIn(ctx, c.GetName())
			}), builder.WithPredicates(filter.AfterStart, clusterTurned)).
		Watches(&clusterv1.ManagedCluster{},
			handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, mc client.Object) []reconcile.Request {
				return r.manifestWorksIn(ctx, mc.GetName())
			}), builder.WithPredicates(filter.AfterStart, klusterletTurned)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
			space client.Object) []reconcile.Request {
			if cluster, err := names.ClusterOf(space.GetName()); err == nil {
				return r.manifestWorksIn(ctx, cluster)
			}
			return nil
		}), builder.WithPredicates(filter.AfterStart, filter.CreationsAndDeletions)).
		WatchesRawSource(source.Func(func(_ context.Context,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.queue.Store(&q)
			return nil
		})).
		Complete(r)
}

// manifestWorkOf returns the ManifestWork of a Work.
func manifestWorkOf(w client.Object) (types.NamespacedName, bool) {
	name := w.GetAnnotations()[wellknown.ManifestWorkAnnotation]
	cluster, err := names.ClusterOf(w.GetNamespace())
	return types.NamespacedName{Namespace: cluster, Name: name}, name != "" && err == nil
}

// asked selects ManifestWorks with a changed spec, and our own status writes: a reconciliation before the cache showed
// them may have used old data.
var asked = filter.Changes(func(was, is *ocmv1.ManifestWork) bool {
	return was.Generation != is.Generation || !equality.Semantic.DeepEqual(was.Status, is.Status) ||
		!was.DeletionTimestamp.Equal(is.DeletionTimestamp) || !slices.Equal(was.Finalizers, is.Finalizers) ||
		was.UID != is.UID
})

// clusterTurned selects clusters that are new or gone, leave, answer again, or serve other kinds than before.
var clusterTurned = filter.Changes(func(was, is *clusterv1alpha1.Cluster) bool {
	return unready(was) != nil && unready(is) == nil || !was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(was.Status.APIEnablements, is.Status.APIEnablements)
})

// klusterletTurned selects ManagedClusters that are new or gone, or that the hub begins to write.
var klusterletTurned = filter.Changes(func(was, is *clusterv1.ManagedCluster) bool {
	return klusterlet.Derived(was) != klusterlet.Derived(is)
})

// manifestWorksIn returns the ManifestWorks of a cluster.
func (r *reconciler) manifestWorksIn(ctx context.Context, cluster string) []reconcile.Request {
	return filter.Listed(ctx, r.client, &ocmv1.ManifestWorkList{}, nil, client.InNamespace(cluster))
}

// memberEvent handles a change of our objects in a member; nil means absent.
func (r *reconciler) memberEvent(cluster string, _ schema.GroupVersionResource, old,
	object *unstructured.Unstructured) {
	queue := r.queue.Load()
	if queue == nil {
		return // at startup every ManifestWork is reconciled
	}
	for _, o := range []*unstructured.Unstructured{old, object} {
		if o == nil {
			continue
		}
		notes := fields.Object(o.Object, "metadata", "annotations")
		if name := fields.Text(notes, wellknown.ManifestWorkAnnotation); name != "" &&
			fields.Text(notes, workv1alpha2.WorkNamespaceAnnotation) == names.ExecutionSpace(cluster) {
			(*queue).Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: cluster, Name: name}})
		}
	}
}
