package migration

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// The hub writes the status of a template at any time, also between the read and the write of a migration.
func TestTemplateIsWrittenAgainAfterAConflictWithItsStatus(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	template := func(image string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "u1"},
			"spec":     map[string]any{"image": image}}}
	}
	for name, c := range map[string]struct {
		stored   string
		accepted bool
	}{
		"the content is as planned":      {"shop:1", true},
		"a user has changed the content": {"shop:3", false},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewSimpleDynamicClient(runtime.NewScheme(), template(c.stored))
			updates := 0
			hub.PrependReactor("update", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
				updates++
				return updates == 1, nil, apierrors.NewConflict(resource.GroupResource(), "web", nil)
			})
			item := &Item{hub: &onHub{}}
			item.hub.template, item.joined.Template = template("shop:1"), template("shop:2")
			_, err := item.update(context.Background(), hub.Resource(resource).Namespace("shop"), metav1.UpdateOptions{})
			if (err == nil) != c.accepted {
				t.Errorf("the update ends with %v", err)
			}
			if want := map[bool]int{true: 2, false: 1}[c.accepted]; updates != want {
				t.Errorf("%d updates, want %d", updates, want)
			}
		})
	}
}
