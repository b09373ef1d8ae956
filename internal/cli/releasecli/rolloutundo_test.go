package releasecli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// undoHub is a hub in memory with a CloneSet of web:2 that had web:1 before.
type undoHub struct {
	*rolling
	t      *testing.T
	shown  *bytes.Buffer
	denied bool
	dryRun bool // the last write was one
}

func newUndoHub(t *testing.T, objects ...client.Object) *undoHub {
	t.Helper()
	h := &undoHub{t: t, shown: &bytes.Buffer{}}
	web := func(image string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		decode(t, strings.ReplaceAll(`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web,
 namespace: shop, uid: u-1, generation: 4}, spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 80%}},
 template: {spec: {containers: [{name: main, image: IMAGE}]}}}}`, "IMAGE", `"`+image+`"`), &u.Object)
		return u
	}
	now := web("web:2")
	var kept []fleet.Revision
	for _, u := range []*unstructured.Unstructured{web("web:1"), now} {
		next, _ := fleet.Remember(u, kept)
		kept = append(kept, *next)
		objects = append(objects, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: fleet.RevisionPrefix(u) + next.Name, Labels: map[string]string{wellknown.RevisionOfLabel: "u-1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(u, u.GroupVersionKind())}},
			Revision: next.Number, Data: runtime.RawExtension{Raw: next.Data}})
	}
	hub := fake.NewClientBuilder().WithScheme(hubcli.Scheme).WithObjects(append(objects, now)...).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object,
			patch client.Patch, opts ...client.PatchOption) error {
			if h.denied {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "clonesets"}, "web", errors.New("no"))
			}
			options := (&client.PatchOptions{}).ApplyOptions(opts)
			h.dryRun = len(options.DryRun) > 0
			return c.Patch(ctx, obj, patch, opts...)
		}}).Build()
	h.rolling = &rolling{client: hub, out: h.shown, template: now.DeepCopy()}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(now), h.template); err != nil {
		t.Fatal(err)
	}
	return h
}

// image is what the template has on the hub.
func (h *undoHub) image() string {
	h.t.Helper()
	now := h.template.DeepCopy()
	if err := h.client.Get(h.t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		h.t.Fatal(err)
	}
	if partition, _, _ := unstructured.NestedString(now.Object, "spec", "updateStrategy", "rollingUpdate",
		"partition"); partition != "80%" {
		h.t.Errorf("the partition is %q, want it to stay", partition)
	}
	containers, _, _ := unstructured.NestedSlice(now.Object, "spec", "template", "spec", "containers")
	return containers[0].(map[string]any)["image"].(string)
}

func TestRolloutUndoShowsAndAsks(t *testing.T) {
	for name, c := range map[string]struct {
		u       undo
		answer  io.Reader
		denied  bool
		written bool
		err     string
		prints  string
	}{
		"no terminal":          {err: "undo asks for confirmation, and there is no terminal: add --yes"},
		"no terminal, --yes":   {u: undo{yes: true}, written: true, prints: "has the pods of revision 1 again"},
		"a user says no":       {answer: strings.NewReader("n\n"), err: "nothing was changed"},
		"a user says yes":      {answer: strings.NewReader("y\n"), written: true, prints: "Go back?"},
		"a revision":           {u: undo{yes: true, to: 1}, written: true},
		"no such revision":     {u: undo{yes: true, to: 9}, err: "`argosy rollout history` lists all"},
		"a dry run":            {u: undo{dryRun: true}, prints: "The hub accepts it. Nothing was changed."},
		"a refused dry run":    {u: undo{dryRun: true}, denied: true, err: "forbidden"},
		"a user without right": {u: undo{yes: true}, denied: true, err: "forbidden"},
	} {
		h := newUndoHub(t)
		h.denied = c.denied
		if c.answer != nil {
			c.u.answers = c.answer
		}
		err := h.undo(t.Context(), &c.u)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.err)
		}
		want := map[bool]string{true: "web:1", false: "web:2"}[c.written]
		printed := h.shown.String()
		if got := h.image(); got != want || !strings.Contains(printed, c.prints) || h.dryRun != (c.u.dryRun && !c.denied) {
			t.Errorf("%s: the image is %s, want %s; it prints\n%s", name, got, want, printed)
		}
		if c.u.to != 9 && !strings.Contains(printed, "revision 2 → revision 1\n  image of main: web:2 → web:1\n") {
			t.Errorf("%s: it does not show the change:\n%s", name, printed)
		}
	}
}

func TestRolloutUndoRefusesATemplateThatHasChangedSince(t *testing.T) {
	h := newUndoHub(t)
	h.template.SetGeneration(h.template.GetGeneration() + 1)
	if err := h.undo(t.Context(), &undo{yes: true}); err == nil || h.image() != "web:2" {
		t.Errorf("the image is %s, and the error %v", h.image(), err)
	}
}

func TestRolloutUndoIsForReleasesWhereTheyOwnTheWorkload(t *testing.T) {
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
	r.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
		APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"}}}
	r.Status.Phase = releasev1alpha1.ReleaseRunning
	h := newUndoHub(t, r)
	for _, u := range []undo{{yes: true}, {dryRun: true}} {
		if err := h.undo(t.Context(), &u); err == nil || h.image() != "web:2" ||
			!strings.Contains(err.Error(), "`argosy release rollback web-1 -n shop`") {
			t.Errorf("the image is %s, and the error %v", h.image(), err)
		}
	}
}

func TestRolloutHistoryListsTheStoredRevisions(t *testing.T) {
	h := newUndoHub(t)
	if err := h.history(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(h.shown.String()), " ")
	for _, want := range []string{"REVISION CREATED IMAGES CURRENT 2 ", "web:2 yes 1 ", "web:1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in what is printed: %s", want, got)
		}
	}
	h.shown.Reset()
	var past []release.PastRevision
	if err := errors.Join(h.history(t.Context(), "json"), json.Unmarshal(h.shown.Bytes(), &past)); err != nil {
		t.Fatal(err)
	}
	if len(past) != 2 || past[0].Revision != 2 || !past[0].Current || past[1].Images[0] != "web:1" {
		t.Errorf("as JSON, the history is %+v", past)
	}
}
