package dispatch

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// Admission refuses such a binding; one may be older than that, or come from a backup.
func TestBindingWithForeignReferenceSendsNothing(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: membertest.ConfigMap}
		w.Join("m1")
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "treasury"}})
		for _, namespace := range []string{"shop", "treasury", "karmada-cluster", "kube-system"} {
			u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"of": namespace}}}
			u.SetGroupVersionKind(membertest.ConfigMap.GroupVersionKind)
			u.SetNamespace(namespace)
			u.SetName("c")
			w.Make(u)
		}
		w.run()
		bind := func(namespace, name, to string) *workv1alpha2.ResourceBinding {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
				Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: name}}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: to, Name: "c"}
			b.Spec.Clusters = targets([]string{"m1"})
			w.Make(b)
			return b
		}
		refused := []*workv1alpha2.ResourceBinding{bind("shop", "theirs", "treasury"),
			bind("shop", "ours", "karmada-cluster"), bind("kube-system", "system", "kube-system")}
		bind("shop", "own", "shop")
		w.Eventually("its own is sent", func() string {
			var works workv1alpha1.WorkList
			if err := w.List(t.Context(), &works); err != nil || len(works.Items) == 0 {
				return "there are no Works"
			}
			return ""
		})
		for _, b := range refused {
			w.Eventually(b.Name+" says so", func() string {
				read := &workv1alpha2.ResourceBinding{}
				if err := w.Get(t.Context(), client.ObjectKeyFromObject(b), read); err != nil {
					return err.Error()
				}
				c := meta.FindStatusCondition(read.Status.Conditions, workv1alpha2.WorksWritten)
				if c == nil || c.Reason != workv1alpha2.ReasonTemplateRefused ||
					!strings.Contains(c.Message, "delete it") {
					return fmt.Sprint("its condition is ", c)
				}
				return ""
			})
		}
		var works workv1alpha1.WorkList
		if err := w.List(t.Context(), &works); err != nil {
			t.Fatal(err)
		}
		for i := range works.Items {
			if got := works.Items[i].Annotations[workv1alpha2.ResourceBindingNameAnnotation]; got != "own" {
				t.Errorf("there is a Work of %s", got)
			}
		}
	})
}
