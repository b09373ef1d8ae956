package dispatch

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
)

// withoutRequired returns the unwanted Works of a binding without those in clusters that a requirer is leaving, too: a
// dependency leaves a cluster after the templates that require it. The deletion of the requirer's Work reconciles the
// binding again; see requiredBy.
func (r *reconciler) withoutRequired(ctx context.Context, b workv1alpha2.Binding,
	unwanted []workv1alpha1.Work) ([]workv1alpha1.Work, error) {
	for _, by := range b.BindingSpec().RequiredBy {
		if len(unwanted) == 0 {
			return nil, nil
		}
		key := types.NamespacedName{Namespace: by.Namespace, Name: by.Name}
		requirer, err := scope.Bindings.Get(ctx, r.client, key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		works, err := scope.WorksOf(ctx, r.client, key)
		if err != nil {
			return nil, err
		}
		leaving := dispatch.LeftBy(requirer, works)
		unwanted = slices.DeleteFunc(unwanted, func(w workv1alpha1.Work) bool {
			return slices.Contains(leaving, w.Namespace)
		})
	}
	return unwanted, nil
}

// requiredBy returns the bindings of the templates that the template of a deleted Work depends on.
func (r *reconciler) requiredBy(ctx context.Context, work client.Object) (requests []reconcile.Request) {
	key, ok := scope.BindingOf(work)
	if !ok {
		return nil
	}
	requirer, err := scope.Bindings.Get(ctx, r.client, key)
	if err != nil {
		return nil // without a requirer the dependency controller updates the bindings that it required
	}
	recorded, err := propagate.RecordedDependencies(requirer)
	if err != nil {
		return nil // reported by the dependency controller
	}
	for _, ref := range recorded {
		b, _, err := scope.BindingFor(ctx, r.client, match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name,
			client.UnsafeDisableDeepCopy)
		if err == nil && b != nil {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return requests
}
