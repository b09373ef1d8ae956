package propagate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/source/service"
)

var serviceKind = schema.GroupKind{Kind: "Service"}

// exposed reports whether a MultiClusterService places the template, a Service. It does not rely on the mark on the
// Service: a new Service has none yet, and a user may have written the Service without it. A policy that claimed the
// Service then would move it.
func (r *reconciler) exposed(ctx context.Context, k key) (bool, error) {
	if k.GroupKind != serviceKind {
		return false, nil
	}
	s := &networkingv1alpha1.MultiClusterService{}
	if err := r.client.Get(ctx, k.NamespacedName, s, client.UnsafeDisableDeepCopy); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("get MultiClusterService %s: %w", k.NamespacedName, err)
	}
	return service.Exposes(s), nil
}

// exposureEnded adds the Service of a MultiClusterService that is being deleted or was deleted: policies may claim it
// now.
func (r *reconciler) exposureEnded() handler.TypedFuncs[*networkingv1alpha1.MultiClusterService, key] {
	type queue = workqueue.TypedRateLimitingInterface[key]
	add := func(s *networkingv1alpha1.MultiClusterService, q queue) {
		if r.Templates.Wanted(serviceKind) {
			q.Add(key{serviceKind, client.ObjectKeyFromObject(s)})
		}
	}
	return handler.TypedFuncs[*networkingv1alpha1.MultiClusterService, key]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*networkingv1alpha1.MultiClusterService], q queue) {
			if service.Exposes(e.ObjectOld) && !service.Exposes(e.ObjectNew) {
				add(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*networkingv1alpha1.MultiClusterService], q queue) {
			add(e.Object, q)
		},
	}
}
