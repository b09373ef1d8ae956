package ocm_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
)

func cloneSetWork() (*workv1alpha1.Work, *unstructured.Unstructured) {
	w := execute.NewWork("edge", "web-1", "id-1")
	w.Generation = 1
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
		"metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": map[string]any{"replicas": int64(3)}}}
	execute.Mark(obj, w)
	return w, obj
}

// report returns mw as a klusterlet reports it that has the object live; nil for an absent one. The order is that of
// ocm-hub.md section 10: Applied, then Available and the values of the feedback rules.
func report(t *testing.T, mw *ocmv1.ManifestWork, live *unstructured.Unstructured) *ocmv1.ManifestWork {
	t.Helper()
	mw = mw.DeepCopy()
	m := ocmv1.ManifestCondition{Conditions: []metav1.Condition{{Type: ocmv1.Applied, Status: metav1.ConditionTrue,
		ObservedGeneration: mw.Generation}, {Type: ocmv1.Available, Status: metav1.ConditionFalse}}}
	if live != nil {
		m.Conditions[1].Status = metav1.ConditionTrue
		values, err := ocm.Feedback(mw.Spec.ManifestConfigs[0].FeedbackRules, live)
		if err != nil {
			t.Fatal(err)
		}
		m.StatusFeedbacks.Values = values
	}
	mw.Status.ResourceStatus.Manifests = []ocmv1.ManifestCondition{m}
	return mw
}

func render(t *testing.T, w *workv1alpha1.Work, obj *unstructured.Unstructured, mode ocm.Mode,
	was *ocmv1.ManifestWork) *ocmv1.ManifestWork {
	t.Helper()
	mw, err := ocm.Render(w, "edge", obj, "clonesets", mode, was)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

func TestRenderedManifestWorksHaveTheirMode(t *testing.T) {
	w, obj := cloneSetWork()
	for mode, want := range map[ocm.Mode]struct {
		strategy ocmv1.UpdateStrategyType
		orphans  bool
	}{ocm.Look: {ocmv1.UpdateStrategyReadOnly, false}, ocm.Apply: {ocmv1.UpdateStrategyServerSideApply, false},
		ocm.Keep: {ocmv1.UpdateStrategyCreateOnly, true}} {
		mw := render(t, w, obj, mode, nil)
		if mw.Namespace != "edge" || !ocm.Rendered(mw, "web-1") || ocm.Rendered(mw, "web-2") || ocm.ModeOf(mw) != mode ||
			mw.Spec.ManifestConfigs[0].UpdateStrategy.Type != want.strategy || (mw.Spec.DeleteOption != nil) != want.orphans {
			t.Errorf("mode %v: %+v", mode, mw)
		}
		// What the API server returns is no difference: each one would be a write, and each write another look.
		data, _ := json.Marshal(mw)
		stored := &ocmv1.ManifestWork{}
		if err := json.Unmarshal(data, stored); err != nil {
			t.Fatal(err)
		}
		if again := render(t, w, obj, mode, stored); !reflect.DeepEqual(again.Spec, stored.Spec) {
			t.Errorf("mode %v: it is rendered as\n%+v\nthe second time, from\n%+v", mode, again.Spec, stored.Spec)
		}
	}
	if name := ocm.RenderedName(strings.Repeat("n", 253)); len(name) >= 189 { // ocm-api.md section 1.8
		t.Errorf("a klusterlet cannot store an AppliedManifestWork for %s", name)
	}
	if ocm.Rendered(&ocmv1.ManifestWork{}, "") {
		t.Error("a ManifestWork of a user counts as the hub's")
	}
}

func TestObjectsAreRebuiltFromFeedback(t *testing.T) {
	w, obj := cloneSetWork()
	mw := render(t, w, obj, ocm.Look, nil)
	mw.Generation = 2
	if a := ocm.Read(mw, obj); a.Known || a.Current || a.Observed != nil {
		t.Errorf("without a report: %+v", a)
	}
	if a := ocm.Read(report(t, mw, nil), obj); !a.Known || !a.Current || a.Observed != nil {
		t.Errorf("an absent object: %+v", a)
	}
	live := obj.DeepCopy()
	live.SetUID("uid")
	live.SetGeneration(4)
	live.SetAnnotations(map[string]string{wellknown.HandsOffAnnotation: "true",
		workv1alpha2.WorkNamespaceAnnotation: w.Namespace, workv1alpha2.WorkNameAnnotation: w.Name})
	_ = unstructured.SetNestedField(live.Object, int64(5), "spec", "replicas")
	live.Object["status"] = map[string]any{"observedGeneration": int64(4), "replicas": int64(5),
		"readyReplicas": int64(2), "updatedAvailableReplicas": int64(1), "updateRevision": "web-7",
		"conditions": []any{map[string]any{"type": "FailedUpdate", "status": "True", "reason": "Full", "message": "no room",
			"lastTransitionTime": "2026-01-02T03:04:05Z"}}}
	a := ocm.Read(report(t, mw, live), obj)
	if a.Observed == nil || !execute.Owns(w, a.Observed) || execute.HandsOff(w, a.Observed) == "" ||
		a.Observed.GetUID() != "uid" || a.Observed.GetGeneration() != 4 ||
		!reflect.DeepEqual(a.Observed.Object["status"], live.Object["status"]) ||
		!reflect.DeepEqual(a.Observed.Object["spec"], live.Object["spec"]) {
		t.Errorf("it is rebuilt as %v", a.Observed)
	}
	live.SetLabels(nil) // somebody else's object with copied annotations
	if a := ocm.Read(report(t, mw, live), obj); execute.Owns(w, a.Observed) {
		t.Error("an object without the hub's label counts as its own")
	}
	stale := report(t, mw, live)
	stale.Generation++
	if ocm.Read(stale, obj).Current {
		t.Error("a report about an earlier generation counts as current")
	}
}

// A klusterlet would apply 3 replicas again and again against an autoscaler in the cluster.
func TestRetainedReplicasAreThoseOfTheCluster(t *testing.T) {
	w, obj := cloneSetWork()
	labels := obj.GetLabels()
	labels["resourcetemplate.karmada.io/retain-replicas"] = "true"
	obj.SetLabels(labels)
	sent := render(t, w, obj, ocm.Apply, nil)
	if f := sent.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply.IgnoreFields; len(f) != 1 ||
		f[0].Condition != ocmv1.IgnoreOnSpokeChange || !reflect.DeepEqual(f[0].JSONPaths, []string{".spec.replicas"}) {
		t.Errorf("ignored fields: %+v", f)
	}
	replicas := func(obj *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		return n
	}
	observed := obj.DeepCopy()
	_ = unstructured.SetNestedField(observed.Object, int64(7), "spec", "replicas")
	same := obj.DeepCopy()
	_ = unstructured.SetNestedField(same.Object, int64(9), "spec", "replicas") // only the replicas of the template change
	if ocm.RetainReplicas(same, observed, sent); replicas(same) != 3 {
		t.Errorf("without another change, it sends %d replicas", replicas(same))
	}
	changed := obj.DeepCopy()
	_ = unstructured.SetNestedField(changed.Object, "b", "spec", "a")
	if ocm.RetainReplicas(changed, observed, sent); replicas(changed) != 7 {
		t.Errorf("with another change, it sends %d replicas", replicas(changed))
	}
}
