package releasecli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

func TestRolloutApprovesStageOfOneRevision(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"}
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
		"image": "2"}}}}
	template.SetGroupVersionKind(gvk)
	template.SetNamespace("shop")
	template.SetName("web")
	template.SetGeneration(5)
	template.SetAnnotations(map[string]string{wellknown.RolloutOrderAnnotation: "Stages"})
	revision := fleet.RevisionOf(template)
	s := runtime.NewScheme()
	if err := workv1alpha2.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})

	approve := func(r *rolling) error { return r.approve(t.Context()) }
	resume := func(r *rolling) error { return r.resume(t.Context()) }
	waiting := fleet.Stage{Number: 2, Of: 4, State: fleet.StageWaiting}.Condition(5)
	for name, c := range map[string]struct {
		run              func(*rolling) error
		condition        metav1.Condition
		paused           bool
		clusters         []string
		approval, prints string
	}{
		"approve a stage that waits": {run: approve, condition: waiting, approval: `{"stage":2,"revision":"` + revision +
			`"}`, prints: "stage 2 of 4 is approved"},
		"resume a stage that waits": {run: resume, condition: waiting, approval: `{"stage":2,"revision":"` + revision + `"}`,
			prints: "stage 2 of 4 is approved"},
		"approve a stage in progress": {run: approve,
			condition: fleet.Stage{Number: 2, Of: 4, State: fleet.StageInProgress}.Condition(5),
			prints:    "not waiting for an approval: stage 2 of 4 is in progress"},
		"resume a stage in progress": {run: resume,
			condition: fleet.Stage{Number: 2, Of: 4, State: fleet.StageInProgress}.Condition(5),
			prints:    "already resumed: stage 2 of 4 is in progress"},
		"approve a stage of an earlier template": {run: approve,
			condition: fleet.Stage{Number: 2, Of: 4, State: fleet.StageWaiting}.Condition(4),
			prints:    "has not reported the stage"},
		"approve in some clusters": {run: approve, condition: waiting, clusters: []string{"m1"},
			prints: "omit --clusters"},
		"resume a paused template approves no stage": {run: resume, condition: waiting, paused: true, prints: "is resumed"},
	} {
		t.Run(name, func(t *testing.T) {
			stored := template.DeepCopy()
			if c.paused {
				if err := unstructured.SetNestedField(stored.Object, true, "spec", "updateStrategy", "rollingUpdate",
					"paused"); err != nil {
					t.Fatal(err)
				}
			}
			binding := &workv1alpha2.ResourceBinding{}
			binding.Namespace, binding.Name = "shop", names.Binding(gvk.Kind, "web")
			binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: template.GetAPIVersion(), Kind: gvk.Kind,
				Namespace: "shop", Name: "web"}
			binding.Status.Conditions = []metav1.Condition{c.condition}
			written := 0
			hub := fake.NewClientBuilder().WithScheme(s).WithObjects(stored, binding).WithInterceptorFuncs(interceptor.Funcs{
				// The first write meets a change of the image.
				Patch: func(ctx context.Context, cl client.WithWatch, obj client.Object, patch client.Patch,
					opts ...client.PatchOption) error {
					if written++; written == 1 {
						now := template.DeepCopy()
						if err := cl.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
							return err
						}
						if err := unstructured.SetNestedField(now.Object, "3", "spec", "template", "image"); err != nil {
							return err
						}
						if err := cl.Update(ctx, now); err != nil {
							return err
						}
					}
					return cl.Patch(ctx, obj, patch, opts...)
				},
			}).Build()
			out := &bytes.Buffer{}
			r := &rolling{client: hub, out: out, clusters: c.clusters, template: template.DeepCopy()}
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(template), r.template); err != nil {
				t.Fatal(err)
			}
			printed := ""
			if err := c.run(r); err != nil {
				printed = err.Error()
			}
			printed += out.String()
			now := template.DeepCopy()
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(template), now); err != nil {
				t.Fatal(err)
			}
			if got := now.GetAnnotations()[wellknown.RolloutStageAnnotation]; got != c.approval {
				t.Errorf("the approval is %s, want %s", got, c.approval)
			}
			if !strings.Contains(printed, c.prints) {
				t.Errorf("it prints %q, want %q", printed, c.prints)
			}
		})
	}
}

func TestRolloutStatusShowsStageOfTheTemplate(t *testing.T) {
	waiting := []metav1.Condition{fleet.Stage{Number: 1, Of: 3, State: fleet.StageWaiting}.Condition(2)}
	if got := stageLine(waiting, 2); !strings.HasPrefix(got, "Stage 1 of 3 is complete and waits for an approval: ") ||
		!strings.Contains(got, "argosy rollout approve") {
		t.Errorf("the line is %q", got)
	}
	if got := stageLine(waiting, 3); !strings.Contains(got, "not reported the stage of the current template") {
		t.Errorf("for a later template, the line is %q", got)
	}
}
