package dispatch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestDependencyLeavesClusterAfterItsRequirer(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: membertest.ConfigMap}
		for _, cluster := range []string{"m1", "m2"} {
			w.Join(cluster)
		}
		w.template = &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": "1"}}}
		w.template.SetGroupVersionKind(membertest.ConfigMap.GroupVersionKind)
		w.template.SetNamespace("shop")
		w.template.SetName("c")
		w.Make(w.template)
		w.run()

		requirer := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment",
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "web"},
			Annotations: map[string]string{workv1alpha2.DependenciesAnnotation: `[{"apiVersion":"v1","kind":"ConfigMap",` +
				`"namespace":"shop","name":"c"}]`}}}
		requirer.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
			Name: "web"}
		requirer.Spec.Clusters = targets([]string{"m1", "m2"})
		w.Make(requirer)
		workload := map[string]*workv1alpha1.Work{}
		for _, cluster := range []string{"m1", "m2"} {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster),
				Name:       names.Work("Deployment", "web", "shop"),
				Finalizers: []string{"karmada.io/execution-controller"},
				Labels:     map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "web"},
				Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
					workv1alpha2.ResourceBindingNameAnnotation: "web-deployment"}}}
			w.Make(work)
			workload[cluster] = work
		}
		w.bind("c")
		require := func(clusters ...string) {
			w.change(func(b workv1alpha2.Binding) {
				b.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment",
					Clusters: targets(clusters)}}
			})
		}
		require("m1", "m2")
		w.becomes("m1:1 m2:1")
		w.Quiet()

		controllertest.Change(w.Hub, requirer, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = targets([]string{"m2"})
		})
		require("m2")
		w.Quiet()
		if work := workload["m1"]; !w.HasObject(work) || work.DeletionTimestamp == nil {
			t.Fatalf("the requirer does not leave m1: %v", work)
		}
		if work := w.work("m1"); work == nil || work.DeletionTimestamp != nil {
			t.Fatalf("the dependency leaves m1 before its requirer: %v", work)
		}

		controllertest.Change(w.Hub, workload["m1"], func(work *workv1alpha1.Work) { work.Finalizers = nil })
		w.Eventually("the dependency leaves m1", func() string {
			if work := w.work("m1"); work != nil && work.DeletionTimestamp == nil {
				return "its Work is not being deleted"
			}
			return ""
		})
		if work := w.work("m2"); work == nil || work.DeletionTimestamp != nil {
			t.Errorf("the dependency leaves m2, where it is required: %v", work)
		}
	})
}
