package dispatch

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

func TestJoiningClusterGetsNamedVersionAfterRestart(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.SidecarSet}
		for _, cluster := range []string{"m1", "m2"} {
			w.Join(cluster, controllertest.SidecarSet)
		}
		w.template = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"customVersion": "v1",
			"containers": []any{map[string]any{"name": "s", "image": "1"}}}}}
		w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
		w.template.SetName("c")
		w.Make(w.template)
		w.run()
		w.letWorksGo()
		w.bind("id", "m1")
		injects := func(what, want string) {
			t.Helper()
			w.Eventually(what, func() string {
				var got []string
				for _, cluster := range []string{"m1", "m2"} {
					if u := w.manifest(cluster); u != nil {
						containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "containers")
						version, _, _ := unstructured.NestedString(u.Object, "spec", "customVersion")
						named, _, _ := unstructured.NestedString(u.Object, "spec", "injectionStrategy", "revision", "customVersion")
						got = append(got, fmt.Sprintf("%s has %s of image %v and names %q", cluster, version,
							containers[0].(map[string]any)["image"], named))
					}
				}
				if text := strings.Join(got, ", "); text != want {
					return text + "; want " + want
				}
				return ""
			})
		}
		made := func(cluster string) {
			t.Helper()
			work := w.work(cluster)
			work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
				Reason: "r", ObservedGeneration: work.Generation, LastTransitionTime: metav1.Now()}}
			raw := fmt.Sprintf(`{"latestRevision":"r","resourceTemplateGeneration":%s}`,
				w.manifest(cluster).GetAnnotations()[workv1alpha2.TemplateGenerationAnnotation])
			work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy,
				Status: &runtime.RawExtension{Raw: []byte(raw)}}}
			if err := w.Status().Update(t.Context(), work); err != nil {
				t.Fatal(err)
			}
		}
		injects("the first version", `m1 has v1 of image 1 and names ""`)
		made("m1")
		w.Quiet()
		w.edit(map[string]any{"customVersion": "v2", "containers": []any{map[string]any{"name": "s", "image": "2"}},
			"injectionStrategy": map[string]any{"revision": map[string]any{"customVersion": "v1"}}}, "spec")
		injects("the second, of which the first is injected", `m1 has v2 of image 2 and names "v1"`)
		w.Quiet()
		var stored appsv1.ControllerRevisionList
		if err := w.List(t.Context(), &stored, client.InNamespace(names.System)); err != nil {
			t.Fatal(err)
		}
		for _, s := range stored.Items {
			if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != w.template.GetUID() {
				t.Errorf("revision %s is not its template's: %v", s.Name, s.OwnerReferences)
			}
		}
		made("m1")

		w.stop()
		w.run()
		w.change(func(b workv1alpha2.Binding) { b.BindingSpec().Clusters = targets([]string{"m1", "m2"}) })
		injects("one that joins gets the first", `m1 has v2 of image 2 and names "v1", m2 has v1 of image 1 and names ""`)
		made("m2")
		injects("then the second", `m1 has v2 of image 2 and names "v1", m2 has v2 of image 2 and names "v1"`)
		made("m2")
		if writes := works(w.Quiet()); len(writes) > 5 {
			t.Errorf("for that, written is %q", writes)
		}
	})
}
