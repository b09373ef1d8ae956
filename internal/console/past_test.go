package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
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

func TestRevisionsOfAWorkloadHaveAWayBack(t *testing.T) {
	const path = pastPath + "?kind=CloneSet.apps.kruise.io&namespace=shop&name=web"
	now := withImage(t, "web:2")
	objects := []client.Object{now}
	var kept []fleet.Revision
	for _, u := range []*unstructured.Unstructured{withImage(t, "web:1"), now} {
		next, _ := fleet.Remember(u, kept)
		kept = append(kept, *next)
		objects = append(objects, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: fleet.RevisionPrefix(u) + next.Name, Labels: map[string]string{wellknown.RevisionOfLabel: "u-1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(u, u.GroupVersionKind())}},
			Revision: next.Number, Data: runtime.RawExtension{Raw: next.Data}})
	}
	underWay := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	underWay.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}}}
	underWay.Status.Phase = releasev1alpha1.ReleaseRunning
	for name, c := range map[string]struct {
		grants  grants
		objects []client.Object
		back    bool
		missing string
		refused string
	}{
		"a user who may patch it": {grants{"patch clonesets shop": true}, objects, true, "", ""},
		"a user who may only read": {grants{}, objects, true,
			"you may not patch clonesets.apps.kruise.io in namespace shop", ""},
		"during a release": {grants{"patch clonesets shop": true}, append(objects[:3:3], underWay), false, "",
			"argosy release rollback web-1 -n shop"},
	} {
		a, _ := changing(t, c.grants, "", c.objects...)
		w := a.request(t, alice, "GET", path, "")
		var got pastAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Revisions) != 2 {
			t.Fatalf("%s: %v: %s", name, err, w.Body)
		}
		former := got.Revisions[1]
		if !got.Revisions[0].Current || got.Revisions[0].Undo != nil || former.Revision != 1 ||
			(former.Undo != nil) != c.back ||
			!strings.Contains(got.Refused, c.refused) || (got.Refused == "") != (c.refused == "") ||
			(got.Release == "web-1") != (c.refused != "") || (got.Missing == nil) != (c.missing == "") ||
			got.Missing != nil && got.Missing.Error() != c.missing {
			t.Errorf("%s: the answer is %s", name, w.Body)
		}
		if c.back && (former.Undo.Images[0].To != "web:1" ||
			got.Path != "k8s/apis/apps.kruise.io/v1alpha1/namespaces/shop/clonesets/web" ||
			former.Command != "argosy rollout undo cloneset.apps.kruise.io web -n shop --to-revision 1 --yes") {
			t.Errorf("%s: the way back is %s", name, w.Body)
		}
	}
	a, _ := changing(t, grants{}, "get", objects...)
	if w := a.request(t, alice, "GET", path, ""); w.Code != http.StatusForbidden {
		t.Errorf("a user who may not read it got %d %s", w.Code, w.Body)
	}
}

func TestEvidenceIsWhatTheUserMayRead(t *testing.T) {
	const path = evidencePath + "?namespace=shop&name=web&gate="
	rel := gatedRelease()
	rel.Name = "web"
	objects := []client.Object{rel}
	rel.Status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: "web"}}
	for i, image := range []string{"web:1", "web:2"} {
		r := release.NewRevision(withImage(t, image), nil)
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
