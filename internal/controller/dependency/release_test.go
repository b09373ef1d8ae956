package dependency

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/test/kit/controllertest"
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
		before := release.NewRevision(u, nil)
		h.mustSucceed(h.client.Create(t.Context(), before.DeepCopy()))
		uses(u, "web-bbb")
		now := release.NewRevision(u, nil)
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
		h.create(object("ConfigMap", "shop", "web-ccc"))
		uses(u, "web-ccc")
		next := release.NewRevision(u, nil)
		h.mustSucceed(h.client.Create(t.Context(), next.DeepCopy()))
		h.update(u)
		plan = (&fleet.Plan{Release: "r2", UID: "2", Revision: next.Name, From: before.Name}).String()
		has("during one that replaced it, while members have pods of all three",
			map[string]string{fleet.EffectiveRevisionAnnotation: next.Name, fleet.PlanAnnotation: plan},
			map[string]bool{"web-aaa": true, "web-bbb": true, "web-ccc": true})
		reports := func(updated int) {
			b := h.get(key)
			b.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1",
				Status: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"replicas":3,"updatedReplicas":%d}`, updated)}}}
			h.mustSucceed(h.client.Status().Update(t.Context(), b))
		}
		reports(2)
		has("after both releases, while a pod is old", map[string]string{fleet.EffectiveRevisionAnnotation: next.Name},
			map[string]bool{"web-aaa": true, "web-bbb": true, "web-ccc": true})
		reports(3)
		has("after both releases", map[string]string{fleet.EffectiveRevisionAnnotation: next.Name},
			map[string]bool{"web-aaa": false, "web-bbb": false, "web-ccc": true})
	})
}

// Pods that restart would fail without them.
func TestVersionsOfConfigMapsStayWhilePodsReadThem(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		version := object("ConfigMap", "shop", "settings-v1")
		version.SetAnnotations(map[string]string{wellknown.VersionOfAnnotation: "settings"})
		h.create(version)
		h.create(object("ConfigMap", "shop", "settings"))
		versionRef := settingsRef
		versionRef.Name = version.GetName()
		h.needs = []configv1alpha1.DependentObjectReference{settingsRef, versionRef}
		key := h.workload("Deployment", "shop", "web", "m1")
		revision := release.NewRevision(object("Deployment", "shop", "web"), nil)
		revision.Spec.Config = []releasev1alpha1.RevisionConfig{{Kind: "ConfigMap", Name: "settings", Hash: "v1"}}
		h.mustSucceed(h.client.Create(t.Context(), revision))
		has := func(when string, plain, versioned bool) {
			t.Helper()
			h.settle()
			versionKey := types.NamespacedName{Namespace: "shop", Name: "settings-v1-configmap"}
			if h.going(settings) == plain || h.going(versionKey) == versioned {
				t.Errorf("%s, the ConfigMap is attached: %v, and its version: %v; want %v and %v", when, !h.going(settings),
					!h.going(versionKey), plain, versioned)
			}
		}
		name := func(revision string) {
			b := h.get(key)
			annotations := b.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			if annotations[fleet.EffectiveRevisionAnnotation] = revision; revision == "" {
				delete(annotations, fleet.EffectiveRevisionAnnotation)
			}
			b.SetAnnotations(annotations)
			h.mustSucceed(h.client.Update(t.Context(), b))
		}
		reports := func(updated int) {
			b := h.get(key)
			b.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1",
				Status: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"replicas":3,"updatedReplicas":%d}`, updated)}}}
			h.mustSucceed(h.client.Status().Update(t.Context(), b))
		}
		propagates := func(deps bool) {
			h.change(key, func(spec *workv1alpha2.ResourceBindingSpec) { spec.PropagateDeps = deps })
		}
		reports(3)
		name(revision.Name)
		has("during a release with versions", true, true)
		propagates(false)
		has("when the policy no longer propagates dependencies", false, true)
		h.mustSucceed(h.client.Delete(t.Context(), revision))
		has("while the revision is missing", false, true)

		propagates(true)
		h.settle()
		h.needs = []configv1alpha1.DependentObjectReference{}
		name("")
		reports(2)
		has("after a release without versions that tolerates an old pod", false, true)
		propagates(false)
		has("and without dependencies", false, true)
		reports(3)
		has("when all pods are new", false, false)
		if b := h.get(key); slices.Contains(b.GetFinalizers(), workv1alpha2.DependenciesDistributorFinalizer) {
			t.Error("without dependencies, the binding has the finalizer of dependencies")
		}
	})
}

func TestABindingIsLookedAtWhenItsOldPodsEnd(t *testing.T) {
	reports := func(updated int) []workv1alpha2.AggregatedStatusItem {
		return []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1",
			Status: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"replicas":3,"updatedReplicas":%d}`, updated)}}}
	}
	was := &workv1alpha2.ResourceBinding{}
	was.Namespace, was.Name = "shop", "web-deployment"
	was.Annotations = map[string]string{workv1alpha2.DependenciesAnnotation: `[{"apiVersion":"v1","kind":"ConfigMap",` +
		`"namespace":"shop","name":"settings"}]`}
	was.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	was.Status.AggregatedStatus = reports(2)
	for name, c := range map[string]struct {
		change  func(b *workv1alpha2.ResourceBinding)
		changes bool
	}{
		"a label":          {func(b *workv1alpha2.ResourceBinding) { b.Labels = map[string]string{"a": "b"} }, false},
		"another old pod":  {func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus = reports(1) }, false},
		"no more old pods": {func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus = reports(3) }, true},
		"a revision": {func(b *workv1alpha2.ResourceBinding) {
			b.Annotations[fleet.EffectiveRevisionAnnotation] = "web-1"
		}, true},
		"a plan while all pods are new": {func(b *workv1alpha2.ResourceBinding) {
			b.Status.AggregatedStatus = reports(3)
			b.Annotations[fleet.PlanAnnotation] = (&fleet.Plan{Release: "r1", UID: "1"}).String()
		}, false},
	} {
		is := was.DeepCopy()
		if c.change(is); changesDependencies(was, is) != c.changes {
			t.Errorf("%s changes what is attached: %v, want %v", name, !c.changes, c.changes)
		}
	}
}
