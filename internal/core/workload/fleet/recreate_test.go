package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

func TestContainerRecreateRequestGoesToThePodsCluster(t *testing.T) {
	const request = "{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, metadata: {name: x}, spec: {podName: shop-a, containers: [{name: main}]}}"
	for _, c := range []struct {
		name         string
		pods         map[string][]string
		routed       string
		works        []int // of the clusters that have one
		want, waits  string
		wantText     string
		asksForThese string
	}{
		{name: "where it is", pods: map[string][]string{"shop-a": {"c2"}}, want: "c2", waits: "[c1 c3]",
			asksForThese: "[shop-a]"},
		{name: "where pods of that name are", pods: map[string][]string{"shop-a": {"c3", "c1"}}, want: "c1,c3", waits: "[c2]",
			asksForThese: "[shop-a]"},
		{name: "nowhere, if it is nowhere", pods: map[string][]string{"shop-a": {}}, waits: "[c1 c2 c3]",
			asksForThese: "[shop-a]",
			wantText:     `PodNotFound: pod "shop-a" of spec.podName was not found in c1, c2, c3`},
		{name: "nowhere yet, if not all have answered", pods: map[string][]string{}, waits: "[c1 c2 c3]",
			asksForThese: "[shop-a]", wantText: "not found in any responding cluster"},
		{name: "where it went before, wherever pods of that name are now", pods: map[string][]string{"shop-a": {"c3"}},
			routed: "c1", want: "c1", waits: "[c2 c3]", asksForThese: "[shop-a]"},
		{name: "where it is already, and nobody is asked", works: []int{1}, want: "c2", waits: "[c1 c3]", asksForThese: "[]"},
	} {
		h := newHub(t, request, 0, 0, 0)
		h.in.Divided, h.in.Pods, h.in.Routed = false, c.pods, c.routed
		existing := map[string]*workv1alpha1.Work{}
		for i := range h.in.Members {
			m := &h.in.Members[i]
			m.Base, m.Local = h.in.Template, h.in.Template
		}
		for _, i := range c.works {
			raw, err := h.in.Template.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			w := &workv1alpha1.Work{}
			w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
			w.Spec.Workload.Manifests[0].Raw = raw
			h.in.Members[i].Work, existing[h.in.Members[i].Cluster] = w, w
		}
		asked, err := PodsAskedFor(h.in.Template, existing)
		if got := fmt.Sprint(asked); err != nil || got != c.asksForThese {
			t.Errorf("%s: asked for %s (%v), want %s", c.name, got, err, c.asksForThese)
		}
		r, err := Shares(h.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Waiting); r.Routed != c.want || got != c.waits {
			t.Errorf("%s: it goes to %q, and not to %s; want %q, %s", c.name, r.Routed, got, c.want, c.waits)
		}
		messages := fmt.Sprint(r.Conditions)
		if len(r.Conditions) > 0 {
			messages = r.Conditions[0].Type + ": " + r.Conditions[0].Message
		}
		if (c.wantText == "") != (len(r.Conditions) == 0) || !strings.Contains(messages, c.wantText) ||
			(r.RecheckAfter > 0) != (c.wantText != "") {
			t.Errorf("%s: reported: %s, looked at again after %v; want %q", c.name, messages, r.RecheckAfter, c.wantText)
		}
	}
	if kind, name := PodOwner(newHub(t, request).in.Template); kind != "" || name != "" {
		t.Errorf("its pod has to be of %s %s", kind, name)
	}
	if clusters, ok := RoutedTo(map[string]string{wellknown.RoutedToAnnotation: "a,b"}); !ok ||
		fmt.Sprint(clusters) != "[a b]" {
		t.Errorf("routed to %v, %v", clusters, ok)
	}
}
