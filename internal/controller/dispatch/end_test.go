package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// claim has a policy hold the template.
func (w *world) claim() {
	p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
		Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "p"}}}
	controllertest.Change(w.Hub, w.template, func(u *unstructured.Unstructured) { propagate.Claim(u, p) })
}

// untilGone waits until the binding is gone.
func (w *world) untilGone(b workv1alpha2.Binding) {
	w.Eventually("the binding is gone", func() string {
		if w.HasObject(b) {
			return fmt.Sprint("it has the finalizers ", b.GetFinalizers())
		}
		return ""
	})
}

func TestNextBindingAdoptsWorksOfDeletedOne(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.claim()
		b := w.bind("id", "m1", "m2")
		w.becomes("m1:1 m2:1")
		before := w.work("m1").UID
		w.Gone(b)
		w.untilGone(b)
		w.Quiet()
		if w.sent() != "m1:1 m2:1" || w.work("m1").UID != before {
			w.t.Errorf("works are %q, m1's is %s and was %s", w.sent(), w.work("m1").UID, before)
		}
		w.bind("another", "m1")
		w.becomes("m1:1")
		if now := w.work("m1").UID; now != before {
			w.t.Errorf("the next binding has the work %s, which was %s", now, before)
		}
	})
}

// The kind is not served for a while, like an API that is down: the hub cannot know whether the template exists.
func TestUnservedTemplateKindKeepsWorks(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.claim()
		b := w.bind("id", "m1", "m2")
		w.becomes("m1:1 m2:1")
		before := w.work("m1").UID
		w.Server.Unserve(w.kind)
		w.Gone(b)
		w.Eventually("an event reports that it waits", func() string {
			if events := w.Events(); !slices.ContainsFunc(events, func(e string) bool {
				return strings.Contains(e, eventEndWaits)
			}) {
				return fmt.Sprint(events)
			}
			return ""
		})
		w.Quiet()
		if w.sent() != "m1:1 m2:1" || !w.HasObject(b) {
			w.t.Errorf("works are %q, the binding is there: %v; want both to wait", w.sent(), w.HasObject(b))
		}
		w.Server.Serve(w.kind)
		w.untilGone(b)
		w.Quiet()
		w.bind("another", "m1")
		w.becomes("m1:1")
		if now := w.work("m1").UID; now != before {
			w.t.Errorf("the next binding has the work %s, which was %s", now, before)
		}
	})
}

func TestDeletedDefinitionDeletesWorksOfItsTemplates(t *testing.T) {
	forBothScopes(t, func(w *world) {
		// Definitions of any kind do; the API server deletes all objects before the definition itself.
		d := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": w.kind.Group,
			"names": map[string]any{"kind": w.kind.Kind}}}}
		d.SetGroupVersionKind(controllertest.Definition.GroupVersionKind)
		d.SetName("kind.example.com")
		d.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
		w.Make(d)
		w.claim()
		b := w.bind("id", "m1", "m2")
		w.becomes("m1:1 m2:1")
		w.Gone(d)
		w.Server.Unserve(w.kind)
		w.Gone(b)
		w.Eventually("it waits until the definition is gone", func() string {
			if len(w.Events()) == 0 {
				return "no event was recorded"
			}
			return ""
		})
		controllertest.Change(w.Hub, d, func(d *unstructured.Unstructured) { d.SetFinalizers(nil) })
		w.becomes("")
		w.untilGone(b)
	})
}

func TestTemplateDeletionDeletesWorksOfLostBinding(t *testing.T) {
	forBothScopes(t, func(w *world) {
		w.claim()
		b := w.bind("id", "m1", "m2")
		w.becomes("m1:1 m2:1")
		w.Gone(b)
		w.untilGone(b)
		w.Gone(w.template)
		w.becomes("")
	})
}
