package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// hostile has characters that change the order of others and that no page shows.
const hostile = "a\u202eb\u2066c\u200bd\u200ee\u061cf\ufeffg\u00adh\u180ei\u3164j\U000e0041k"

// snapshot is a client that ends the stream after its first topic.
type snapshot struct {
	*httptest.ResponseRecorder
	end func()
}

func (s snapshot) Write(data []byte) (int, error) {
	if strings.HasPrefix(string(data), "event: snapshot") {
		s.end()
	}
	return s.ResponseRecorder.Write(data)
}

// Texts come from tenants and members. Only what users edit, or pages send back, stays as it is.
func TestPagesShowNoHiddenCharacters(t *testing.T) {
	const shown = "a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffdg\ufffdh\ufffdi\ufffdj\ufffdk"
	now := withImage(t, "web:2")
	now.SetAnnotations(map[string]string{"note": hostile})
	objects := []client.Object{now}
	var kept []fleet.Revision
	for _, image := range []string{"web:" + hostile, "web:2"} {
		next, _ := fleet.Remember(withImage(t, image), kept)
		kept = append(kept, *next)
		objects = append(objects, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: fleet.RevisionPrefix(now) + next.Name, Labels: map[string]string{wellknown.RevisionOfLabel: "u-1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(now, now.GroupVersionKind())}},
			Revision: next.Number, Data: runtime.RawExtension{Raw: next.Data}})
	}
	a, _ := changing(t, grants{"get /argosy/health": true}, "", objects...)
	a.rows.o.Findings = func() []upkeep.Finding { return []upkeep.Finding{{Name: "store", Message: hostile}} }
	const web = "?kind=CloneSet.apps.kruise.io&namespace=shop&name=web"
	bodies := map[string]string{}
	for name, at := range map[string]string{"an object to edit": objectPath + web, "revisions": pastPath + web,
		"a stream": streamPath + "?topics=fleet"} {
		ctx, end := context.WithCancel(request.WithUser(t.Context(), alice))
		defer end()
		w := httptest.NewRecorder()
		a.Handler(http.NotFoundHandler()).ServeHTTP(snapshot{w, end}, httptest.NewRequestWithContext(ctx, "GET", at, nil))
		body := w.Body.String()
		if hidden.MatchString(body) || strings.Contains(body, shown) != (name != "an object to edit") {
			t.Errorf("%s: %s", name, body)
		}
		if name == "a stream" && !w.Flushed {
			t.Error("the stream is not flushed")
		}
		bodies[name] = body
	}
	var edited struct{ YAML string }
	if err := json.Unmarshal([]byte(bodies["an object to edit"]), &edited); err != nil ||
		!strings.Contains(edited.YAML, hostile[:5]) {
		t.Errorf("the object is edited as %q, %v", edited.YAML, err)
	}
	var past pastAnswer
	if err := json.Unmarshal([]byte(bodies["revisions"]), &past); err != nil || len(past.Revisions) != 2 {
		t.Fatalf("%v: %s", err, bodies["revisions"])
	}
	var patch any
	if err := json.Unmarshal(past.Revisions[1].Undo.Patch, &patch); err != nil {
		t.Fatal(err)
	}
	if sent, err := json.Marshal(patch); err != nil || !strings.Contains(string(sent), hostile) {
		t.Errorf("the page sends %s, %v", sent, err)
	}
}
