package dependency

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

func TestDependenciesOfTheRevisionInMembersStayDuringARelease(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		// The image names the ConfigMap that the pods use.
		h.r.Interpreter = interpret.New(interpret.Kinds{{Group: "apps", Kind: "Deployment"}: &interpret.Hooks{
			Dependencies: func(_ context.Context,
				u *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
				containers := fields.Objects(u.Object, "spec", "template", "spec", "containers")
				if len(containers) == 0 {
					return nil, nil
				}
				name := fields.Text(containers[0], "image")
				return []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
					Name: name}}, nil
			}}}, builtin.Tier())
		uses := func(u *unstructured.Unstructured, name string) {
			h.mustSucceed(unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "main", "image": name}}, "spec",
				"template", "spec", "containers"))
		}
		h.create(object("ConfigMap", "shop", "web-aaa"))
		h.create(object("ConfigMap", "shop", "web-bbb"))
		key := h.workload("Deployment", "shop", "web", "m1")
		u := object("Deployment", "shop", "web")
		uses(u, "web-aaa")
		before, err := release.NewRevision(u, nil)
		h.mustSucceed(err)
		h.mustSucceed(h.client.Create(t.Context(), before.DeepCopy()))
		uses(u, "web-bbb")
		now, err := release.NewRevision(u, nil)
		h.mustSucceed(err)
		h.mustSucceed(h.client.Create(t.Context(), now.DeepCopy()))
		h.update(u)
		has := func(when string, annotations map[string]string, want map[string]bool) {
			t.Helper()
			b := h.get(key)
			all := b.GetAnnotations()
			if all == nil {
				all = map[string]string{}
			}
			delete(all, fleet.PlanAnnotation)
			delete(all, fleet.EffectiveRevisionAnnotation)
			for k, v := range annotations {
				all[k] = v
			}
			b.SetAnnotations(all)
			h.mustSucceed(h.client.Update(t.Context(), b))
			h.settle()
			for name, there := range want {
				if going := h.going(types.NamespacedName{Namespace: "shop", Name: name + "-configmap"}); going == there {
					t.Errorf("%s, %s is attached: %v, want %v", when, name, !going, there)
				}
			}
		}
		u.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "gray"})
		uses(u, "web-aaa")
		h.update(u.DeepCopy())
		has("before a change", nil, map[string]bool{"web-aaa": true})
		uses(u, "web-bbb")
		h.update(u)
		has("before the baseline is stored", nil, map[string]bool{"web-aaa": true, "web-bbb": true})
		plan := (&fleet.Plan{Release: "r1", UID: "1", Revision: now.Name, From: before.Name}).String()
		has("while the change waits", map[string]string{fleet.EffectiveRevisionAnnotation: before.Name},
			map[string]bool{"web-aaa": true, "web-bbb": true})
		has("during the release", map[string]string{fleet.EffectiveRevisionAnnotation: now.Name, fleet.PlanAnnotation: plan},
			map[string]bool{"web-aaa": true, "web-bbb": true})
		has("while a revision is missing", map[string]string{fleet.EffectiveRevisionAnnotation: "lost"},
			map[string]bool{"web-aaa": true, "web-bbb": true})
		has("after the release", map[string]string{fleet.EffectiveRevisionAnnotation: now.Name},
			map[string]bool{"web-aaa": false, "web-bbb": true})
	})
}
