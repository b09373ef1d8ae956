package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// After an upgrade, a member gets the fields that its previous version did not have.
func TestWorksFollowServedVersions(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.StatefulSet}
		old := w.kind
		old.Version = "v1alpha1"
		w.Join("m1", old)
		w.Join("m2", w.kind)
		w.template = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"reserveOrdinals": []any{int64(
			1)}}}}
		w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
		w.template.SetNamespace("shop")
		w.template.SetName("c")
		w.Make(w.template)
		w.run()
		w.bind("id", "m1", "m2")

		served := func(want metav1.ConditionStatus, message string) func() string {
			return func() string {
				b := &workv1alpha2.ResourceBinding{}
				b.Namespace, b.Name = w.key().Namespace, w.key().Name
				if !w.HasObject(b) {
					return "there is no binding"
				}
				c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.VersionServed)
				if c == nil || c.Status != want || !strings.Contains(c.Message, message) {
					return fmt.Sprintf("the condition is %+v", c)
				}
				return ""
			}
		}
		w.Eventually("what m1 lacks is said",
			served(metav1.ConditionFalse, `cluster "m1": StatefulSet of apps.kruise.io/v1alpha1 has no spec.reserveOrdinals`))
		w.Eventually("m2 has it", func() string {
			if w.work("m2") == nil {
				return "it has not"
			}
			return ""
		})
		if w.work("m1") != nil {
			t.Error("m1 was sent what it cannot understand")
		}
		w.Eventually("an event says so", func() string {
			if len(w.eventsWith(workv1alpha2.EventSyncWorkFailed)) == 0 {
				return "none does"
			}
			return ""
		})

		w.ClusterStatus("m1", func(status *clusterv1alpha1.ClusterStatus) {
			status.APIEnablements = controllertest.Serves(w.kind, old, membertest.ConfigMap, membertest.Namespace)
		})
		w.Eventually("m1 has it after its upgrade", func() string {
			switch m := w.manifest("m1"); {
			case m == nil:
				return "it has nothing"
			case m.GetAPIVersion() != w.kind.GroupVersion().String():
				return "it has " + m.GetAPIVersion()
			}
			return ""
		})
		w.Eventually("nothing is lacking", served(metav1.ConditionTrue, ""))
	})
}
