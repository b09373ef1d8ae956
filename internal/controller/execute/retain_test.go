package execute

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/jsonpath"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// A field that a customization leaves to members by path is the member's, until the template says something else there.
func TestFieldLeftToTheMemberStaysUntilTheTemplateChanges(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		rules := &configv1alpha1.CustomizationRules{
			Retention: &configv1alpha1.RetentionRule{JSONPaths: []string{".data.value"}}}
		w := newWorld(t, Options{Interpreter: interpret.New(jsonpath.Hooks(rules))})
		u := manifest(membertest.ConfigMap, "shop", "template's")
		work := w.work(u)
		w.applied(work)
		w.expectContent(u, "template's")
		recorded := func() string {
			obj := w.m1.Object(membertest.ConfigMap, "shop", "c")
			if obj == nil {
				return ""
			}
			return obj.GetAnnotations()[wellknown.RetainedFieldsAnnotation]
		}
		w.Eventually("what was applied is recorded", func() string {
			if recorded() == "" {
				return "not yet"
			}
			return ""
		})
		w.Quiet()

		theirs := w.m1.Object(membertest.ConfigMap, "shop", "c")
		theirs.Object["data"].(map[string]any)["value"] = "member's"
		w.m1.Put(theirs)
		other := u.DeepCopy()
		other.SetLabels(map[string]string{"changed": "elsewhere"})
		w.set(work, other)
		w.Eventually("another change of the template goes out", func() string {
			if w.m1.Object(membertest.ConfigMap, "shop", "c").GetLabels()["changed"] == "" {
				return "not yet"
			}
			return ""
		})
		w.expectContent(u, "member's")

		before := recorded()
		next := manifest(membertest.ConfigMap, "shop", "template's new")
		w.set(work, next)
		w.expectContent(u, "template's new")
		if recorded() == before {
			t.Error("the record of what was applied did not move")
		}
	})
}

// A customization that keeps the member's replicas is about what an autoscaler sets there. It does not keep the hub
// from scaling.
func TestRetainDoesNotUndoScaling(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		keeps := &interpret.Hooks{Retain: func(_ context.Context, desired,
			observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			n, ok, err := unstructured.NestedInt64(observed.Object, "spec", "replicas")
			if !ok || err != nil {
				return desired, err
			}
			out := desired.DeepCopy()
			return out, unstructured.SetNestedField(out.Object, n, "spec", "replicas")
		}}
		w := newWorld(t, Options{Interpreter: interpret.New(interpret.Kinds{controllertest.Deployment.GroupKind(): keeps})})
		u := manifest(controllertest.Deployment, "shop", "1")
		scale := func(replicas int64) *unstructured.Unstructured {
			u = u.DeepCopy()
			u.Object["spec"] = map[string]any{"replicas": replicas}
			return u
		}
		replicas := func(want int64) {
			t.Helper()
			w.Eventually(fmt.Sprintf("the member has %d replicas", want), func() string {
				obj := w.m1.Object(controllertest.Deployment, "shop", "c")
				if obj == nil {
					return "it is not there"
				}
				if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != want {
					return fmt.Sprintf("it has %d", n)
				}
				return ""
			})
		}
		work := w.work(scale(3))
		replicas(3)
		for _, n := range []int64{6, 2} { // what was created, and what was applied
			w.set(work, scale(n))
			replicas(n)
			w.applied(work)
		}
		w.Eventually("it is reported", func() string {
			var events corev1.EventList
			if err := w.List(t.Context(), &events); err != nil {
				return err.Error()
			}
			for _, e := range events.Items {
				if e.Reason == "RetainOverruled" && e.InvolvedObject.Kind == "Deployment" &&
					strings.Contains(e.Message, "resourcetemplate.karmada.io/retain-replicas") {
					return ""
				}
			}
			return fmt.Sprintf("%d events", len(events.Items))
		})

		theirs := w.m1.Object(controllertest.Deployment, "shop", "c")
		theirs.Object["spec"].(map[string]any)["replicas"] = int64(9)
		w.m1.Put(theirs)
		w.Quiet()
		u.SetLabels(map[string]string{"changed": "elsewhere"})
		w.set(work, scale(4))
		w.Eventually("another change of the template goes out", func() string {
			if w.m1.Object(controllertest.Deployment, "shop", "c").GetLabels()["changed"] == "" {
				return "not yet"
			}
			return ""
		})
		replicas(9)
	})
}
