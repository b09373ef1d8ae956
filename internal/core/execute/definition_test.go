package execute

import (
	"strings"
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestNamespacesAndDefinitionsAloneTakeOthersAlong(t *testing.T) {
	for gk, want := range map[schema.GroupKind]bool{
		{Kind: "Namespace"}: true,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
		{Group: "example.com", Kind: "Namespace"}:                         false,
		{Group: "example.com", Kind: "CustomResourceDefinition"}:          false,
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:             false,
		{Kind: "PersistentVolume"}:                                        false,
		{Kind: "ServiceAccount"}:                                          false,
	} {
		if got := TakesAlong(gk); got != want {
			t.Errorf("%s takes others along: %v, want %v", gk, got, want)
		}
	}
}

func TestADefinitionIsDeletedOnlyIfNoObjectOfItsKindStays(t *testing.T) {
	ours := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
		"kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "trains.example.com",
			"annotations": map[string]any{wellknown.CreatedAnnotation: "true"}}}}
	adopted := ours.DeepCopy()
	adopted.SetAnnotations(nil)
	train := func(name string, change ...func(*Content)) Content {
		c := Content{GroupKind: schema.GroupKind{Group: "example.com", Kind: "Train"}, Name: "shop/" + name,
			UID: types.UID(name)}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	of := func(work string) func(*Content) {
		return func(c *Content) {
			c.Managed, c.Work = true, types.NamespacedName{Namespace: "karmada-es-m1", Name: work}
		}
	}
	owned := func(c *Content) { c.Owners = []types.UID{"other"} }
	going := func(c *Content) { c.Going = true }
	states := map[string]WorkState{"goes": WorkGoes, "stands": WorkStands}

	for _, tc := range []struct {
		story    string
		crd      *unstructured.Unstructured
		objects  []Content
		more     bool
		want     Fate
		wantText string
	}{
		{"none is left", ours, nil, false, FateDeleted, ""},
		{"it was there before", adopted, nil, false, FateReleased, "it existed before"},
		{"one that only the member has", ours, []Content{train("a")}, false, FateReleased, "Train shop/a"},
		{"one that is going", ours, []Content{train("a", going)}, false, FateDeleted, ""},
		{"one that is about to go by the hub", ours, []Content{train("a", of("goes"))}, false, FateWaits, "Train shop/a"},
		{"one that is about to go, and one that stays", ours, []Content{train("a", of("goes")), train("b")}, false,
			FateReleased, "Train shop/b"},
		{"one that another Work still sends there", ours, []Content{train("a", of("stands"))}, false, FateReleased,
			"Train shop/a"},
		{"one that no Work sends there any more", ours, []Content{train("a", of("lost"))}, false, FateReleased,
			"Train shop/a"},
		{"one that belongs to something else", ours, []Content{train("a", owned)}, false, FateReleased, "Train shop/a"},
		{"one that may belong to what goes by the hub", ours, []Content{train("a", of("goes")), train("b", owned)}, false,
			FateWaits, "Train shop/a"},
		{"more than were looked at, all of which go", ours, []Content{train("a", going)}, true, FateWaits, ""},
		{"many", ours, []Content{train("a"), train("b"), train("c"), train("d"), train("e", owned)}, true, FateReleased,
			"Train shop/a, Train shop/b, Train shop/c and 2 more"},
	} {
		t.Run(tc.story, func(t *testing.T) {
			fate, reason := EndDefinition(tc.crd, tc.objects, tc.more, func(w types.NamespacedName) WorkState {
				return states[w.Name]
			})
			if fate != tc.want || !strings.Contains(reason, tc.wantText) {
				t.Errorf("it is %s: %s; want %s: … %s", fate, reason, tc.want, tc.wantText)
			}
		})
	}
}
