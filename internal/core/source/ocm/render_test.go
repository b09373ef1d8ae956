package ocm_test

import (
	"encoding/json"
	"fmt"
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
	"github.com/argosy-io/argosy/internal/core/kind"
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
	mw.Status.Conditions = []metav1.Condition{{Type: ocmv1.Available, ObservedGeneration: mw.Generation}}
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
		for _, gk := range []string{"v1 Namespace", "apiextensions.k8s.io/v1 CustomResourceDefinition"} {
			version, name, _ := strings.Cut(gk, " ")
			other := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": name,
				"metadata": map[string]any{"name": "shop"}}}
			if o := render(t, w, other, mode, nil).Spec.DeleteOption; (o == nil) != (mode == ocm.Look) {
				t.Errorf("mode %v: a klusterlet would own %s: %v", mode, gk, o)
			}
		}
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
	// The klusterlet applies and reads in two loops: both must have seen the generation.
	for _, age := range []func(*ocmv1.ManifestWork){
		func(mw *ocmv1.ManifestWork) { mw.Generation++ },
		func(mw *ocmv1.ManifestWork) { mw.Status.ResourceStatus.Manifests[0].Conditions[0].ObservedGeneration-- },
		func(mw *ocmv1.ManifestWork) { mw.Status.Conditions[0].ObservedGeneration-- },
		func(mw *ocmv1.ManifestWork) { mw.Status.Conditions = nil },
	} {
		stale := report(t, mw, live)
		age(stale)
		if ocm.Read(stale, obj).Current {
			t.Errorf("a report about an earlier generation counts as current: %+v", stale.Status)
		}
	}
	// A klusterlet could name any field.
	forged := report(t, mw, obj)
	text := "forged"
	for _, name := range []string{"kind", "spec", "metadata/name", "metadata",
		"status/" + strings.Repeat("a/", 1000) + "b"} {
		forged.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values = append(
			forged.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values, ocmv1.FeedbackValue{Name: name,
				Value: ocmv1.FieldValue{Type: ocmv1.ValueString, String: &text}})
	}
	if got := ocm.Read(forged, obj).Observed; strings.Contains(fmt.Sprint(got.Object), text) {
		t.Errorf("forged values are taken over: %v", got)
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

func evaluate(t *testing.T, rule ocmv1.ConditionRule, live *unstructured.Unstructured) bool {
	t.Helper()
	var spent uint64
	c := (*ocm.Programs)(nil).Evaluate(rule, live, &spent)
	if c.Reason != ocmv1.ReasonRuleEvaluated {
		t.Errorf("the rule fails for %v: %s", live.Object["status"], c.Message)
	}
	return c.Status == metav1.ConditionTrue
}

// The rule of a klusterlet and the hub's own table decide alike when a run has ended.
func TestRuleForEndedRunsIsThatOfTheHub(t *testing.T) {
	statuses := []map[string]any{{}, {"active": int64(1)}, {"phase": "Running"}, {"phase": "Succeeded"},
		{"phase": "Failed"},
		{"phase": "Error"}, {"phase": "completed"}, {"phase": "failed"}, {"completionTime": "2026-01-02T03:04:05Z"},
		{"state": map[string]any{"phase": "Completed"}}, {"state": map[string]any{"phase": "Running"}},
		{"jobDeploymentStatus": "Complete"}, {"jobDeploymentStatus": "Running"},
		{"applicationState": map[string]any{"state": "COMPLETED"}},
		{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}},
		{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}},
		{"conditions": []any{map[string]any{"type": "Complete", "status": "False"}}}}
	runs := 0
	for k := range kind.List() {
		if k.Once == nil {
			continue
		}
		runs++
		w := execute.NewWork("edge", "run-1", "id-1")
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.Group + "/v1", "kind": k.Kind,
			"metadata": map[string]any{"name": "run", "namespace": "shop"}}}
		rules := render(t, w, obj, ocm.Apply, nil).Spec.ManifestConfigs[0].ConditionRules
		if len(rules) != 1 || rules[0].Condition != ocmv1.Complete {
			t.Fatalf("%s: rules %+v", k.GroupKind, rules)
		}
		if look := render(t, w, obj, ocm.Look, nil).Spec.ManifestConfigs[0].ConditionRules; look != nil {
			t.Errorf("%s: a look has the rules %+v, and would end with the run", k.GroupKind, look)
		}
		for _, status := range statuses {
			if !k.Once.Over(status) {
				continue
			}
			live := obj.DeepCopy()
			live.Object["status"] = status
			if got := evaluate(t, rules[0], live); !got {
				t.Errorf("%s with %v has ended, and the klusterlet would run it again", k.GroupKind, status)
			}
		}
	}
	if runs < 5 {
		t.Errorf("%d kinds run once", runs)
	}
}
