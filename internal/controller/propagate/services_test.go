package propagate

import (
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
)

func TestPoliciesIgnoreServicesOfMultiClusterServices(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		u := object("Service", "shop", "web")
		s := &networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec: networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{
				networkingv1alpha1.ExposureTypeCrossCluster}}}
		h.noError(h.client.Create(t.Context(), s))
		h.policy("shop", "p", u, nil)
		h.create(u) // it is not marked yet
		if w := h.settle(); len(w) != 0 {
			t.Errorf("it wrote %v", w)
		}
		h.edit(u, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"replaced": "without the mark"}) })
		if w := h.settle(); len(w) != 0 {
			t.Errorf("replaced, it wrote %v", w)
		}

		h.noError(h.client.Delete(t.Context(), s))
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[key]())
		defer q.ShutDown()
		h.r.exposureEnded().Delete(t.Context(), event.TypedDeleteEvent[*networkingv1alpha1.MultiClusterService]{Object: s}, q)
		if q.Len() != 1 {
			t.Error("nobody looks at the Service again")
		}
		h.settle()
		h.expectClaim(u, "p")
	})
}

func TestAMultiClusterServiceForALoadBalancerPlacesNothing(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		u := object("Service", "shop", "web")
		h.noError(h.client.Create(t.Context(),
			&networkingv1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
				Spec: networkingv1alpha1.MultiClusterServiceSpec{Types: []networkingv1alpha1.ExposureType{
					networkingv1alpha1.ExposureTypeLoadBalancer}}}))
		h.policy("shop", "p", u, nil)
		h.create(u)
		h.settle()
		h.expectClaim(u, "p")
	})
}
