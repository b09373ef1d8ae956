package dispatch

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// m1 and m2 pull images, m3 does not serve ImagePullJobs.
func TestImagesArePulledBeforeNewPodsComeAndNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, kind: controllertest.Deployment}
		pullJobs := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1",
			Kind: "ImagePullJob"}, Plural: "imagepulljobs", Namespaced: true}
		w.Join("m1", controllertest.Deployment, pullJobs)
		w.Join("m2", controllertest.Deployment, pullJobs)
		w.Join("m3", controllertest.Deployment)
		pods := func(image string) map[string]any {
			containers := []any{map[string]any{"name": "c", "image": image}}
			return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}}
		}
		w.template = &unstructured.Unstructured{Object: map[string]any{"spec": pods("web:1")}}
		w.template.SetGroupVersionKind(w.kind.GroupVersionKind)
		w.template.SetNamespace("shop")
		w.template.SetName("c")
		w.template.SetAnnotations(map[string]string{wellknown.PrePullAnnotation: "true"})
		propagate.Claim(w.template, &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: "p", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}}})
		w.Make(w.template)
		w.letWorksGo()
		w.run()
		w.bind("workload", "m1", "m2", "m3")

		// stand says which images the Works have, and in which clusters which are pulled.
		pulls := func() (all []workv1alpha1.Work) {
			var works workv1alpha1.WorkList
			if err := w.List(t.Context(), &works); err != nil {
				t.Fatal(err)
			}
			for _, work := range works.Items {
				if work.Annotations[wellknown.PrePullOfAnnotation] == "shop/c-deployment" && work.DeletionTimestamp == nil {
					all = append(all, work)
				}
			}
			return all
		}
		stand := func(when, images, pulled, waiting string) {
			t.Helper()
			w.Eventually(when, func() string {
				var got, pull []string
				for _, cluster := range []string{"m1", "m2", "m3"} {
					work := w.work(cluster)
					if work == nil {
						return cluster + " has no Work"
					}
					_, image, _ := strings.Cut(string(work.Spec.Workload.Manifests[0].Raw), `"image":"`)
					image, _, _ = strings.Cut(image, `"`)
					got = append(got, image)
				}
				for _, work := range pulls() {
					cluster, err := names.ClusterOf(work.Namespace)
					if err != nil {
						t.Fatal(err)
					}
					pull = append(pull, cluster)
					if work.CreationTimestamp.IsZero() { // the server of these tests dates nothing
						work.CreationTimestamp = metav1.Now()
						_ = w.Update(t.Context(), &work)
					}
				}
				b, err := scope.Bindings.Get(t.Context(), w.Client, w.key())
				if err != nil {
					t.Fatal(err)
				}
				var lines []string
				if c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.ImagesPulled); c != nil &&
					c.Status == metav1.ConditionFalse {
					for line := range strings.SplitSeq(c.Message, "\n") {
						lines = append(lines, strings.Split(line, `"`)[1])
					}
				}
				if all := fmt.Sprintf("%s; %s; %s", strings.Join(got, " "), strings.Join(pull, " "),
					strings.Join(lines, " ")); all != images+"; "+pulled+"; "+waiting {
					return all
				}
				return ""
			})
		}
		image := func(image string) {
			t.Helper()
			controllertest.Change(w.Hub, w.template, func(u *unstructured.Unstructured) { u.Object["spec"] = pods(image) })
			w.change(func(b workv1alpha2.Binding) {
				b.BindingSpec().Resource.ResourceVersion = w.template.GetResourceVersion()
			})
		}
		stand("it is sent", "web:1 web:1 web:1", "", "")
		image("web:2")
		stand("it is pulled first where that can be", "web:1 web:1 web:2", "m1 m2", "m1 m2")

		for _, work := range pulls() {
			if work.Namespace != names.ExecutionSpace("m1") {
				continue
			}
			work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
				Reason: "r", LastTransitionTime: metav1.Now()}}
			work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(
				`{"desired":20,"succeeded":19}`)}}}
			if err := w.Status().Update(t.Context(), &work); err != nil {
				t.Fatal(err)
			}
		}
		stand("where it is there the new pods come", "web:2 web:1 web:2", "m2", "m2")
		image("web:3")
		stand("another image", "web:2 web:1 web:3", "m1 m2", "m1 m2")
		image("web:1")
		stand("the one that m2 has", "web:2 web:1 web:1", "m1", "m1")
		w.Quiet()
		stand("and so it stays", "web:2 web:1 web:1", "m1", "m1")

		b := scope.Bindings.New("shop")
		b.SetName(w.key().Name)
		w.Gone(w.template) // or the deletion of the binding had no request
		w.Gone(b)
		w.Eventually("nothing is left", func() string {
			var works workv1alpha1.WorkList
			if err := w.List(t.Context(), &works, &client.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, work := range works.Items {
				return work.Namespace + "/" + work.Name + " is there"
			}
			return ""
		})
	})
}
