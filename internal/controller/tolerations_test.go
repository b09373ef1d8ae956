package controller

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// An upgrade writes no policy, and so no binding. A policy of an older hub gets default tolerations when its placement
// is next written: each of its bindings then follows in one write, and the scheduler confirms the generation without a
// run.
func TestAddedDefaultTolerationsMoveNothing(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, _ := fleet(t)
		p := policy("shop", "v1", "ConfigMap")
		h.Make(p)
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
			Data: map[string]string{"a": "b"}}
		h.Make(claimed(settings, p))
		binding := func() workv1alpha2.Binding {
			b, err := scope.Bindings.Get(t.Context(), h, client.ObjectKey{Namespace: "shop", Name: "settings-configmap"})
			if err != nil {
				return nil
			}
			return b
		}
		h.Eventually("it is applied", func() string {
			if b := binding(); b == nil || !meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.FullyApplied) {
				return fmt.Sprintf("%+v", b)
			}
			return ""
		})
		h.Quiet()
		before := binding()

		defaults := membership.TolerationDefaults{NotReady: 300, Unreachable: 300}
		controllertest.Change(h, p, func(p policyv1alpha1.Propagation) {
			p.PropagationSpec().Placement.ClusterTolerations = defaults.WithDefaults(nil)
		})
		h.Eventually("the binding has the tolerations", func() string {
			if n := len(binding().BindingSpec().Placement.ClusterTolerations); n != 2 {
				return fmt.Sprintf("it has %d", n)
			}
			return ""
		})
		want := map[string]int{"update propagationpolicies": 1, "update resourcebindings": 1,
			"update resourcebindings/status": 1}
		if got := count(h.Quiet()); !maps.Equal(got, want) {
			t.Errorf("written: %v, want %v", got, want)
		}
		was, is := before.BindingStatus().LastScheduledTime, binding().BindingStatus().LastScheduledTime
		if !was.Equal(is) || fmt.Sprint(before.BindingSpec().Clusters) != fmt.Sprint(binding().BindingSpec().Clusters) {
			t.Errorf("it was scheduled again: to %v at %v, before to %v at %v", binding().BindingSpec().Clusters, is,
				before.BindingSpec().Clusters, was)
		}
	})
}
