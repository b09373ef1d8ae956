package scope

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
)

// worksByBinding is the index that WorksOf reads, with values "namespace/name".
const worksByBinding = "scope.binding"

// IndexWorks lets WorksOf read from a cache; once per cache, before it starts.
func IndexWorks(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &workv1alpha1.Work{}, worksByBinding, func(obj client.Object) []string {
		if key, ok := BindingOf(obj); ok {
			return []string{key.String()}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index works by binding: %w", err)
	}
	return nil
}

// WorksOf reads the Works of a binding from a cache that has the index. They are the cache's own: not to be changed.
func WorksOf(ctx context.Context, r client.Reader, binding types.NamespacedName) ([]workv1alpha1.Work, error) {
	var works workv1alpha1.WorkList
	if err := r.List(ctx, &works, client.MatchingFields{worksByBinding: binding.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list works of binding %s: %w", binding, err)
	}
	return works.Items, nil
}

// OutagesOf reads the outages of the clusters of a binding from a cache.
func OutagesOf(ctx context.Context, r client.Reader, b workv1alpha2.Binding) (aggregate.Outages, error) {
	var failed error
	outages := aggregate.OutagesOf(b, func(name string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{}
		if err := r.Get(ctx, client.ObjectKey{Name: name}, c, client.UnsafeDisableDeepCopy); err != nil {
			if !apierrors.IsNotFound(err) {
				failed = fmt.Errorf("read cluster %q: %w", name, err)
			}
			return nil
		}
		return c
	})
	return outages, failed
}

// Folded is what the Works of a binding mean for its status.
type Folded struct {
	// Status is the status of the binding with the reports of its Works.
	Status  workv1alpha2.ResourceBindingStatus
	Works   []workv1alpha1.Work
	Outages aggregate.Outages
}

// Fold reads the Works of a binding from a cache and folds them into its status. With lastReported, clusters that are
// not ready count as they last reported.
func Fold(ctx context.Context, r client.Reader, b workv1alpha2.Binding, lastReported bool,
	now metav1.Time) (f Folded, err error) {
	if f.Works, err = WorksOf(ctx, r, client.ObjectKeyFromObject(b)); err != nil {
		return f, err
	}
	if !lastReported {
		if f.Outages, err = OutagesOf(ctx, r, b); err != nil {
			return f, err
		}
	}
	f.Status = aggregate.Binding(b, f.Works, f.Outages, now)
	return f, nil
}

// BindingOf returns the binding of a Work; ok is false if it has none.
func BindingOf(work client.Object) (types.NamespacedName, bool) {
	notes := work.GetAnnotations()
	if name := notes[workv1alpha2.ResourceBindingNameAnnotation]; name != "" {
		return types.NamespacedName{Namespace: notes[workv1alpha2.ResourceBindingNamespaceAnnotation], Name: name}, true
	}
	name := notes[workv1alpha2.ClusterResourceBindingNameAnnotation]
	return types.NamespacedName{Name: name}, name != ""
}

// BindingRequests returns a request for the binding of a Work; none if it has none.
func BindingRequests(_ context.Context, work client.Object) []reconcile.Request {
	if key, ok := BindingOf(work); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}
