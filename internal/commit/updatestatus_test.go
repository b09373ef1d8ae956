package commit

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

func TestStatusIsWrittenWithACreation(t *testing.T) {
	elsewhere, _ := writes(t)
	var stored []*unstructured.Unstructured
	here := interceptor.NewClient(elsewhere.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			for _, name := range []string{"another", obj.GetName()} { // a server may write other objects for a request
				u := &unstructured.Unstructured{Object: map[string]any{"kind": "Work",
					"metadata": map[string]any{"namespace": obj.GetNamespace(), "name": name}}}
				if err := AddStatus(ctx, u); err != nil {
					return err
				}
				stored = append(stored, u)
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	for name, c := range map[string]client.Client{"here": here, "elsewhere": elsewhere} {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: name}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
		if err := Create(context.Background(), c, w); err != nil {
			t.Fatal(err)
		}
		if name == "elsewhere" && len(w.Status.Conditions) != 0 {
			t.Errorf("a server elsewhere drops the status, but %+v was returned", w.Status)
		}
	}
	conditions, _, _ := unstructured.NestedSlice(stored[1].Object, "status", "conditions")
	if _, ok := stored[0].Object["status"]; ok || len(conditions) != 1 {
		t.Errorf("stored %v, want the status in the second object alone", stored)
	}
}

func TestUpdateWithStatusIsOneWriteIfTheServerSupportsIt(t *testing.T) {
	elsewhere, n := writes(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-a", Name: "w",
		UID: "u"}})
	var stored []*unstructured.Unstructured
	here := interceptor.NewClient(elsewhere.(client.WithWatch), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			// The server may write other objects in the same request.
			for _, uid := range []string{"another", string(obj.GetUID())} {
				u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": uid,
					"generation": int64(7)}}}
				if err := AddStatus(ctx, u); err != nil {
					return err
				}
				stored = append(stored, u)
			}
			return c.Update(ctx, obj, opts...)
		},
	})
	status := func(generation int64) any {
		return &workv1alpha1.WorkStatus{Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied,
			Status: metav1.ConditionTrue, ObservedGeneration: generation}}}
	}
	for _, step := range []struct {
		name              string
		with              client.Client
		suspended         bool
		wrote, withStatus bool
	}{
		{"the server takes both", here, true, true, true},
		{"nothing changed", here, true, false, false},
		{"the server is elsewhere", elsewhere, false, true, false},
	} {
		*n, stored = 0, nil
		was := read(t, elsewhere, "w")
		want := was.DeepCopy()
		want.Spec.SuspendDispatching = &step.suspended
		wrote, withStatus, err := UpdateWithStatus(context.Background(), step.with, was, want, status)
		if err != nil || wrote != step.wrote || withStatus != step.withStatus || *n != map[bool]int{true: 1}[wrote] {
			t.Errorf("%s: wrote %v, with status %v, %d writes, %v", step.name, wrote, withStatus, *n, err)
		}
		if !step.withStatus {
			continue
		}
		if _, ok := stored[0].Object["status"]; ok {
			t.Errorf("%s: another object got the status: %v", step.name, stored[0])
		}
		conditions, _, _ := unstructured.NestedSlice(stored[1].Object, "status", "conditions")
		if !slices.ContainsFunc(conditions, func(c any) bool {
			return c.(map[string]any)["observedGeneration"] == int64(7)
		}) {
			t.Errorf("%s: stored %v, want the status at generation 7", step.name, stored[1])
		}
	}
}
