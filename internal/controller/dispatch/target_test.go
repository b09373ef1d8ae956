package dispatch

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

func TestWorkloadSpreadFollowsItsWorkload(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.WorkloadSpread}
		for _, cluster := range []string{"m1", "m2"} {
			w.Join(cluster, controllertest.WorkloadSpread)
		}
		w.template = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"targetRef": map[string]any{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
			"subsets":   []any{map[string]any{"name": "a", "maxReplicas": int64(4)}, map[string]any{"name": "b"}}}}}
		w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
		w.template.SetNamespace("shop")
		w.template.SetName("c")
		w.template.SetAnnotations(map[string]string{wellknown.RolloutScopeAnnotation: "Fleet"})
		w.Make(w.template)
		w.run()
		w.letWorksGo()
		w.bind("id", "m1", "m2")
		most := func(what, want string) {
			t.Helper()
			w.Eventually(what, func() string {
				got := ""
				for _, cluster := range []string{"m1", "m2"} {
					if u := w.manifest(cluster); u != nil {
						subsets, _, _ := unstructured.NestedSlice(u.Object, "spec", "subsets")
						got += fmt.Sprint(cluster, ":", subsets[0].(map[string]any)["maxReplicas"], " ")
					}
				}
				if got != want {
					return got + "is not " + want
				}
				return ""
			})
		}
		most("evenly, while the workload is nowhere", "m1:2 m2:2 ")
		clones := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-cloneset"}}
		clones.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet",
			Namespace: "shop", Name: "web"}
		clones.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 9}, {Name: "m2", Replicas: 3}}
		w.Make(clones)
		most("by its replicas", "m1:3 m2:1 ")
		controllertest.Change(w.Hub, clones, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 3 })
		most("by what they are now", "m1:2 m2:2 ")
	})
}
