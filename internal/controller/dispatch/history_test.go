package dispatch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

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
