package dispatch

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// A template asked to overwrite when it might; then its namespace is labelled, or the hub starts with the setting.
func TestExistingOverwriteAbortsOnceForbidden(t *testing.T) {
	t.Parallel()
	for _, hubWide := range []bool{false, true} {
		t.Run(fmt.Sprintf("hubWide=%t", hubWide), func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := &world{Hub: controllertest.New(t), t: t, kind: membertest.ConfigMap}
				w.Join("m1")
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
				if err := client.IgnoreAlreadyExists(w.Create(t.Context(), ns)); err != nil {
					t.Fatal(err)
				}
				w.template = &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": "1"}}}
				w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
				w.template.SetNamespace("shop")
				w.template.SetName("c")
				w.template.SetAnnotations(map[string]string{
					workv1alpha2.ConflictResolutionAnnotation: workv1alpha2.ConflictResolutionOverwrite})
				w.Make(w.template)
				w.run()
				w.bind("id", "m1")
				message := func(resolution string, warnings bool) func() string {
					return func() string {
						work, b := w.work("m1"), &workv1alpha2.ResourceBinding{}
						b.Namespace, b.Name = w.key().Namespace, w.key().Name
						if work == nil || !w.HasObject(b) {
							return "there is no Work"
						}
						if got := work.Annotations[workv1alpha2.ConflictResolutionAnnotation]; got != resolution {
							return "the Work says " + got
						}
						if got := meta.IsStatusConditionTrue(b.Status.Conditions, fleet.OverwriteForbidden); got != warnings {
							return fmt.Sprintf("the condition is %t", got)
						}
						return ""
					}
				}
				w.Eventually("it may overwrite", message("overwrite", false))
				label := func(value string) {
					if err := w.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
						t.Fatal(err)
					}
					ns.Labels = map[string]string{wellknown.ForbidOverwriteLabel: value}
					if err := w.Update(t.Context(), ns); err != nil {
						t.Fatal(err)
					}
				}
				if hubWide {
					w.stop()
					w.forbidsOverwrite = true
					w.run()
				} else {
					label("true")
				}
				w.Eventually("it aborts", message("abort", true))
				w.Eventually("an event says so", func() string {
					if len(w.eventsWith(fleet.OverwriteForbidden)) == 0 {
						return "none does"
					}
					return ""
				})
				if !hubWide {
					label("false")
					w.Eventually("it may again", message("overwrite", false))
				}
			})
		})
	}
}
