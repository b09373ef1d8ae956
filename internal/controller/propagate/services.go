package propagate

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/source/service"
)

var serviceKind = schema.GroupKind{Kind: "Service"}

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
