package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// withImage is a CloneSet with an image.
func withImage(t *testing.T, image string) *unstructured.Unstructured {
	t.Helper()
	u := deployment()
	u.SetAPIVersion("apps.kruise.io/v1alpha1")
	u.SetKind("CloneSet")
	u.SetUID("u-1")
	u.SetGeneration(2)
	if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "main", "image": image}}, "spec",
		"template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestEvidenceIsWhatTheUserMayRead(t *testing.T) {
	const path = evidencePath + "?namespace=shop&name=web&gate="
	rel := gatedRelease()
	rel.Name = "web"
	objects := []client.Object{rel}
	rel.Status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: "web"}}
	for i, image := range []string{"web:1", "web:2"} {
		r, err := release.NewRevision(withImage(t, image), nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, r)
		if rel.Status.Targets[0].To = r.Name; i == 0 {
			rel.Status.Targets[0].From = r.Name
		}
	}
	a, _ := changing(t, grants{}, "", objects...)
	w := a.request(t, alice, "GET", path+"sign", "")
	var e release.Evidence
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusOK || len(e.Targets) != 1 {
		t.Fatalf("%v: %d %s", err, w.Code, w.Body)
	}
	images := e.Targets[0].Images
	if e.Stage != "one" || e.Attempt != 3 || len(images) != 1 || images[0].From != "web:1" || images[0].To != "web:2" {
		t.Errorf("the evidence is %s", w.Body)
	}
	if len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "the plan cannot be shown") {
		t.Errorf("without the workload, the notes are %q", e.Notes)
	}
	if w = a.request(t, alice, "GET", path+"other", ""); w.Code != http.StatusConflict {
		t.Errorf("at a gate that does not wait, the answer is %d %s", w.Code, w.Body)
	}
	a, _ = changing(t, grants{}, "get", objects...)
	if w = a.request(t, alice, "GET", path+"sign", ""); w.Code != http.StatusForbidden {
		t.Errorf("a user who may not get the release got %d %s", w.Code, w.Body)
	}
}
