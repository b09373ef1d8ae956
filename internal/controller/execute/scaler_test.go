package execute

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var (
	autoscaler   = served("autoscaling", "v2", "HorizontalPodAutoscaler")
	scaledObject = served("keda.sh", "v1alpha1", "ScaledObject")
)

// scales returns an autoscaler in the member for the object c of a kind.
func scales(by, workload membertest.Kind) *unstructured.Unstructured {
	apiVersion, kind := workload.ToAPIVersionAndKind()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": apiVersion, "kind": kind, "name": "c"}}}}
	u.SetGroupVersionKind(by.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("by-load")
	return u
}

// What an autoscaler in the member sets there stays, for as long as there is one; of others the hub's word holds.
func TestReplicasOfAMembersAutoscalerAreKept(t *testing.T) {
	t.Parallel()
	for _, workload := range []membertest.Kind{
		served("apps", "v1", "Deployment"), served("apps", "v1", "StatefulSet"),
		served("apps.kruise.io", "v1beta1", "CloneSet"),
		served("apps.kruise.io", "v1beta1", "StatefulSet"), served("argoproj.io", "v1alpha1", "Rollout"),
		served("guide.example.com", "v1", "Train"),
	} {
		for _, by := range []membertest.Kind{autoscaler, scaledObject} {
			t.Run(fmt.Sprintf("%s of %s by %s", workload.Kind, workload.Group, by.Kind), func(t *testing.T) {
				t.Parallel()
				controllertest.Run(t, func(t *testing.T) {
					w := newWorld(t, Options{})
					w.serve(workload)
					w.serve(by)
					u := manifest(workload, "shop", "1")
					replicas := func(want int64) {
						t.Helper()
						w.Eventually(fmt.Sprintf("the member has %d replicas", want), func() string {
							obj := w.m1.Object(workload, "shop", "c")
							if obj == nil {
								return "it is not there"
							}
							if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != want {
								return fmt.Sprintf("it has %d", n)
							}
							return ""
						})
					}
					scale := func(n int64) {
						obj := w.m1.Object(workload, "shop", "c")
						_ = unstructured.SetNestedField(obj.Object, n, "spec", "replicas")
						w.m1.Put(obj)
					}
					_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
					work := w.work(u)
					replicas(3)
					if got := w.m1.Requests("GET /apis/" + by.Group); len(got) > 0 {
						t.Errorf("nobody scales, and autoscalers are asked for: %v", got)
					}
					scale(5)
					replicas(3) // only an autoscaler's replicas count

					w.m1.Put(scales(by, workload))
					w.Quiet()
					w.Eventually("what it sets is kept, and said", func() string {
						scale(7) // the watch may not have shown the autoscaler yet
						w.Quiet()
						c := meta.FindStatusCondition(func() []metav1.Condition { w.HasObject(work); return work.Status.Conditions }(),
							workv1alpha1.WorkScaledByMember)
						if c == nil || !strings.HasPrefix(c.Message, by.Kind+" by-load in the cluster") {
							return fmt.Sprintf("the condition is %+v", c)
						}
						return ""
					})
					// Another change of the template goes out, and leaves them.
					u.SetLabels(map[string]string{"changed": "elsewhere"})
					_ = unstructured.SetNestedField(u.Object, int64(4), "spec", "replicas")
					w.set(work, u)
					w.Eventually("another change of the template goes out", func() string {
						if w.m1.Object(workload, "shop", "c").GetLabels()["changed"] == "" {
							return "not yet"
						}
						return ""
					})
					replicas(7)

					w.m1.Remove(by, "shop", "by-load")
					replicas(4)
					w.Eventually("no autoscaler is spoken of", func() string {
						if w.HasObject(work); meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkScaledByMember) != nil {
							return "one is"
						}
						return ""
					})
				})
			})
		}
	}
}
