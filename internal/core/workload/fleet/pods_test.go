package fleet

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// sent is what PodsSent says, and the names that are to be looked for.
func (h *hub) sent() string {
	h.t.Helper()
	works := map[string]*workv1alpha1.Work{}
	for _, m := range h.in.Members {
		if m.Work != nil {
			works[m.Cluster] = m.Work
		}
	}
	sent, err := PodsSent(h.in.Template, works)
	if err != nil {
		h.t.Fatal(err)
	}
	asked, err := PodsAskedFor(h.in.Template, works)
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprint(sent, asked)
}

func TestSentPodsExistedInTheirClusters(t *testing.T) {
	const spec = "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 3, template: {}}}"
	for _, c := range []struct {
		name     string
		clusters []int64
		divided  bool
		sent     string
	}{
		{"in one cluster, which is told of all", []int64{3}, true, "map[c1:[a]]"},
		{"in one of two that share the replicas", []int64{2, 1}, true, "map[c1:[a]]"},
		{"in one of two that have all", []int64{3, 3}, false, "map[c1:[a]]"},
	} {
		h := newHub(t, spec, c.clusters...)
		h.in.Divided = c.divided
		is := func(when, want string) {
			t.Helper()
			h.expect(c.name)
			if got := h.sent(); got != want {
				t.Errorf("%s, %s: sent and asked for are %s, want %s", c.name, when, got, want)
			}
		}
		reports := make([]string, len(c.clusters))
		h.expect("at first")
		h.report(reports...)
		h.edit([]any{"a", "b"}, podsToDeletePath...)
		if got := h.sent(); got != "map[] [a b]" {
			t.Errorf("%s: before they are sent: %s", c.name, got)
		}
		h.in.Pods = map[string][]string{"a": {"c1"}, "b": {}}
		h.look()
		h.in.Pods = nil
		if got := h.sent(); len(got) < 5 || got[:5] != "map[]" {
			t.Errorf("%s: before it was taken: %s", c.name, got)
		}
		h.report(reports...)
		is("when it was taken", c.sent+" []")

		h.in.Template = WithoutPods(h.in.Template, []string{"a"})
		if got := fmt.Sprint(podsNamed(h.in.Template)); got != "[b]" {
			t.Errorf("without a, named are %s", got)
		}
		h.in.Template.SetGeneration(h.in.Template.GetGeneration() + 1)
		h.in.Pods = map[string][]string{"b": {}}
		h.look()
		h.edit([]any{"a"}, podsToDeletePath...)
		h.in.Pods = map[string][]string{"a": {}}
		h.look()
		h.in.Pods = nil
		h.report(reports...)
		if got := h.sent(); got[:5] != "map[]" {
			t.Errorf("%s: who names it again when it is gone has sent %s", c.name, got)
		}
	}
	h := newHub(t, spec)
	h.edit([]any{"a"}, podsToDeletePath...)
	if got := WithoutPods(h.in.Template, []string{"a"}); field(got.Object, "spec", "scaleStrategy") != nil {
		t.Errorf("without any it is %v", got.Object["spec"])
	}
}

func TestPodIsNamedForDeletionOnce(t *testing.T) {
	template := func(text string) *unstructured.Unstructured { return newHub(t, text, 1).in.Template }
	const set = "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 2, scaleStrategy: {podsToDelete: [x-a]}}}"
	for _, c := range []struct {
		text, pod string
		fewer     bool
		want      string
	}{
		{set, "x-b", false, "[x-a x-b] of 2"}, {set, "x-b", true, "[x-a x-b] of 1"}, {set, "x-a", false, "[x-a] of 2"},
		{"{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: x}, spec: {}}", "x-b", true, "[x-b] of 0"},
	} {
		before := template(c.text)
		is := before.DeepCopy()
		got, err := DeletingPod(is, c.pod, c.fewer)
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(PodsToDelete(got), " of ", number(got.Object, "spec", "replicas")); text != c.want {
			t.Errorf("%s: %s, want %s", c.text, text, c.want)
		}
		if !reflect.DeepEqual(before, is) {
			t.Error("the template was changed")
		}
	}
	other := template("{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 2}}")
	if _, err := DeletingPod(other, "x-a", false); err == nil || !strings.Contains(err.Error(), "only a CloneSet") {
		t.Errorf("for a Deployment: %v", err)
	}
}
