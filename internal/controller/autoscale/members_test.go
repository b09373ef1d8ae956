package autoscale

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// After a start, no policy has asked for autoscalers yet, so the cache has none. A workload that forgot its own would
// be divided again, and pods would move.
func TestAutoscalerThatTheCacheLacksIsNotGone(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.stop()
		const id = "propagationpolicy.karmada.io/permanent-id"
		controllertest.Change(w.Hub, w.workload(), func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{id: "p", "resourcetemplate.karmada.io/retain-replicas": "true"})
			u.SetAnnotations(map[string]string{"propagationpolicy.karmada.io/namespace": "shop",
				"propagationpolicy.karmada.io/name": "p", wellknown.ScaledByAnnotation: "HorizontalPodAutoscaler web"})
		})
		controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
			schedule.SetScaled(b, "HorizontalPodAutoscaler web", map[string]int32{"a": 3, "b": 1})
		})
		hpa := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"maxReplicas": int64(9),
			"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}}
		hpa.SetGroupVersionKind(controllertest.HorizontalPodAutoscaler.GroupVersionKind)
		hpa.SetNamespace("shop")
		hpa.SetName("web")
		hpa.SetLabels(map[string]string{id: "p"})
		hpa.SetAnnotations(w.annotations())
		w.Make(hpa)
		w.Quiet()
		w.run()
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("a start writes %v", wrote)
		}
		w.scheduler(`{"a":3,"b":1}`)

		w.Gone(hpa)
		controllertest.Change(w.Hub, w.workload(), func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "1", "spec", "selector", "matchLabels", "v")
		})
		w.Eventually("the label is gone", func() string {
			u := w.workload()
			if w.HasObject(u); u.GetLabels()["resourcetemplate.karmada.io/retain-replicas"] != "" {
				return fmt.Sprint(u.GetLabels())
			}
			return ""
		})
		w.scheduler("")
	})
}

// annotations are those of the workload on the hub.
func (w *world) annotations() map[string]string {
	u := w.workload()
	w.HasObject(u)
	all := u.GetAnnotations()
	delete(all, wellknown.ScaledByAnnotation)
	return all
}
