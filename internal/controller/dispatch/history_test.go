package dispatch

import (
	"fmt"
	"net/http"
	"slices"
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
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
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

// Users go back to the revisions, see release.UndoInput.
func TestTheHubStoresEachRevisionOfAWorkload(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"stored": false, "a quota refuses it": true} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.Deployment}
				w.Join("m1", controllertest.Deployment)
				w.Server.Behave(func(out http.ResponseWriter, r *http.Request) bool {
					if !refused || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/controllerrevisions") {
						return false
					}
					http.Error(out, "exceeded quota", http.StatusForbidden)
					return true
				})
				spec := func(image string) map[string]any {
					return map[string]any{"replicas": int64(1), "revisionHistoryLimit": int64(2), "template": map[string]any{
						"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}}}}
				}
				w.template = &unstructured.Unstructured{Object: map[string]any{"spec": spec("web:1")}}
				w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
				w.template.SetNamespace("shop")
				w.template.SetName("c")
				w.Make(w.template)
				w.run()
				w.letWorksGo()
				w.bind("id", "m1")
				for i, image := range []string{"web:1", "web:2", "web:3", "web:2"} {
					if i > 0 {
						w.edit(spec(image), "spec")
					}
					w.Eventually("the member gets "+image, func() string {
						u := w.manifest("m1")
						if u == nil {
							return "it has none"
						}
						if got := interpret.Containers(u); len(got) != 1 || got[0].Image != image {
							return fmt.Sprint(got)
						}
						return ""
					})
					w.Quiet()
				}
				var stored appsv1.ControllerRevisionList
				if err := w.List(t.Context(), &stored, client.InNamespace("shop")); err != nil {
					t.Fatal(err)
				}
				past, err := release.UndoInput{Template: w.template, Stored: stored.Items}.Past()
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, p := range past {
					got = append(got, fmt.Sprintf("%d %v", p.Revision, p.Images))
				}
				want := []string{"4 [web:2]", "3 [web:3]"} // the limit is 2, and the one that came back is the newest
				if refused {
					want = nil
				}
				if !slices.Equal(got, want) {
					t.Errorf("stored is %q, want %q", got, want)
				}
			})
		})
	}
}
