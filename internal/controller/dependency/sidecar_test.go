package dependency

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// The dependencies of a SidecarSet are needed in the namespaces and clusters of the pods that it injects into.
func TestSidecarDependenciesFollowInjectedWorkloads(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		namespace := func(name, team string) {
			h.mustSucceed(h.client.Create(context.Background(),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}))
		}
		namespace("shop", "a")
		namespace("other", "b")
		for _, ns := range []string{"shop", "other"} {
			h.create(object("ConfigMap", ns, "settings"))
		}
		sidecars := object("SidecarSet", "", "logs")
		sidecars.Object["spec"] = map[string]any{
			"selector":          map[string]any{"matchLabels": map[string]any{"logs": "yes"}},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": "a"}},
			"containers": []any{map[string]any{"name": "logs",
				"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "settings"}}}}},
		}
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
		p.Spec.PropagateDeps = true
		bind := func(u *unstructured.Unstructured, p *policyv1alpha1.ClusterPropagationPolicy,
			clusters ...string) types.NamespacedName {
			h.create(u)
			b, err := propagate.Binding(u, p, propagate.Meaning{ID: "id of " + u.GetName()}, nil)
			h.mustSucceed(err)
			b.BindingSpec().Clusters = targets(clusters...)
			h.mustSucceed(h.client.Create(context.Background(), b))
			return types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}
		}
		logs := bind(sidecars, p, "eu", "us")
		follows := func(when, want string) {
			t.Helper()
			h.settle()
			got := "none"
			if !h.going(settings) {
				got = ""
				for _, s := range h.get(settings).BindingSpec().RequiredBy {
					got += s.Name + " in"
					for _, c := range s.Clusters {
						got += " " + c.Name
					}
				}
			}
			if got != want {
				t.Errorf("%s, it follows %s, want %s", when, got, want)
			}
			if !h.going(types.NamespacedName{Namespace: "other", Name: "settings-configmap"}) {
				t.Errorf("%s, that of a namespace that is not selected follows, too", when)
			}
		}
		wakes := func(when string, keys []types.NamespacedName, want bool) {
			t.Helper()
			if slices.Contains(keys, logs) != want {
				t.Errorf("%s, %v are looked at, want the SidecarSet among them: %v", when, keys, want)
			}
		}
		follows("before there are workloads", "none")

		workload := func(ns string) *unstructured.Unstructured {
			u := object("Deployment", ns, "web-"+ns)
			u.Object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{
				"logs": "yes"}}}}
			return u
		}
		web := workload("shop")
		wakes("of one that goes nowhere", h.r.injections.moved(nil, web), false)
		alone := p.DeepCopy()
		alone.Spec.PropagateDeps = false
		propagate.Claim(web, alone)
		wakes("of one that goes somewhere", h.r.injections.moved(nil, web), true)
		placed := bind(web, alone, "asia", "eu")
		elsewhere := workload("other")
		propagate.Claim(elsewhere, alone)
		bind(elsewhere, alone, "eu", "us")
		follows("when one is there", "logs-sidecarset in eu")
		wakes("when it is known", h.r.injections.moved(web, web), false)

		was := h.get(placed)
		h.change(placed, func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = targets("eu", "us") })
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		h.r.bindingChanged().UpdateFunc(t.Context(), event.TypedUpdateEvent[workv1alpha2.Binding]{ObjectOld: was,
			ObjectNew: h.get(placed)}, q)
		if q.Len() != 1 {
			t.Errorf("a workload that moves has %d looked at, want the SidecarSet", q.Len())
		}
		follows("when it has moved", "logs-sidecarset in eu us")

		store := h.r.Templates
		h.unserve("Deployment")
		for range 2 {
			again, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: logs})
			if by := h.get(settings).BindingSpec().RequiredBy; err != nil || again.RequeueAfter != unservedRetry ||
				len(by) != 1 || len(by[0].Clusters) != 2 {
				t.Errorf("while workloads are not in memory, it is required by %v (%v), and looked at again after %s", by, err,
					again.RequeueAfter)
			}
		}
		h.restart(store)
		follows("when they are again", "logs-sidecarset in eu us")

		gone := h.get(placed)
		gone.SetFinalizers(nil)
		h.mustSucceed(h.client.Update(t.Context(), gone))
		h.mustSucceed(h.client.Delete(t.Context(), gone))
		follows("when somebody has deleted the binding of the workload", "logs-sidecarset in eu us")
		anew, err := propagate.Binding(web, alone, propagate.Meaning{ID: "another id"}, nil)
		h.mustSucceed(err)
		h.mustSucceed(h.client.Create(t.Context(), anew))
		follows("when that is made again, and not placed", "logs-sidecarset in eu us")
		h.place(placed, "us")
		follows("when it is placed", "logs-sidecarset in us")

		other := web.DeepCopy()
		_ = unstructured.SetNestedField(other.Object, "no", "spec", "template", "metadata", "labels", "logs")
		wakes("when it is another", h.r.injections.moved(web, other), true)
		_, err = h.templates.Resource(resources["Deployment"]).Namespace("shop").Update(context.Background(), other,
			metav1.UpdateOptions{})
		h.mustSucceed(err)
		follows("when it is no longer injected into", "none")
	})
}
