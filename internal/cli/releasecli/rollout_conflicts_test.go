package releasecli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/rollout"
)

// The hub writes the status of a template while a command reads and writes it.
func TestRolloutCommandsSucceedWhileTheHubWritesStatus(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"strategy": map[string]any{}}}}
	template.SetGroupVersionKind(rollout.Kind.WithVersion("v1beta1"))
	template.SetNamespace("shop")
	template.SetName("web")
	binding := &workv1alpha2.ResourceBinding{}
	binding.Namespace, binding.Name = "shop", names.Binding(rollout.Kind.Kind, "web")
	binding.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "rollouts.kruise.io/v1beta1", Kind: "Rollout",
		Namespace: "shop", Name: "web"}
	binding.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1",
		Status: &runtime.RawExtension{
			Raw: []byte(`{"canaryStatus": {"currentStepIndex": 1, "currentStepState": "StepPaused", "canaryRevision": "a"}}`)}}}
	s := runtime.NewScheme()
	if err := workv1alpha2.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypeWithName(template.GroupVersionKind(), &unstructured.Unstructured{})

	commands := map[string]func(*rolling) error{
		"approve": func(r *rolling) error { return r.approve(t.Context()) },
		"pause":   func(r *rolling) error { return r.pause(t.Context(), true) },
	}
	for name, run := range commands {
		written := 0
		hub := fake.NewClientBuilder().WithScheme(s).WithObjects(template.DeepCopy(),
			binding.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
				opts ...client.PatchOption) error {
				if written++; written == 1 {
					now := template.DeepCopy()
					if err := c.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
						return err
					}
					now.Object["status"] = map[string]any{"phase": "Progressing"}
					if err := c.Update(ctx, now); err != nil {
						return err
					}
				}
				return c.Patch(ctx, obj, patch, opts...)
			},
		}).Build()
		out := &bytes.Buffer{}
		r := &rolling{client: hub, out: out, template: template.DeepCopy()}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(template), r.template); err != nil {
			t.Fatal(err)
		}
		if err := run(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		now := template.DeepCopy()
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(template), now); err != nil {
			t.Fatal(err)
		}
		paused, _, _ := unstructured.NestedBool(now.Object, "spec", "strategy", "paused")
		approved := strings.Contains(now.GetAnnotations()[wellknown.ApprovedStepsAnnotation], `"m1"`)
		if paused != (name == "pause") || approved != (name == "approve") {
			t.Errorf("%s: paused is %t, approved in m1 is %t", name, paused, approved)
		}
	}
}
