package execute_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
)

const (
	restoredDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","annotations":{"resourcetemplate.karmada.io/uid":"t1","resourcetemplate.karmada.io/generation":"5"}},"spec":{"replicas":2}}`
	restoredConfigMap  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"shop","annotations":{"resourcetemplate.karmada.io/uid":"t1","resourcetemplate.karmada.io/generation":"0"}},"data":{"a":"old"}}`
)

func TestRestoredHubPausesDifferentObjects(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	pause := func(w *workv1alpha1.Work) {
		w.Status.Conditions = append(w.Status.Conditions,
			metav1.Condition{Type: workv1alpha1.WorkHeldAfterRestore, Status: metav1.ConditionTrue, LastTransitionTime: since})
	}
	accepted := func(w *workv1alpha1.Work) {
		pause(w)
		w.Annotations = map[string]string{wellknown.AcceptRestoredAnnotation: execute.Acceptance(w)}
	}
	acceptedBefore := func(w *workv1alpha1.Work) {
		pause(w)
		w.Annotations = map[string]string{wellknown.AcceptRestoredAnnotation: "2025-01-01T00:00:00Z"}
	}
	neverApplied := func(w *workv1alpha1.Work) { w.Status.Conditions = nil }
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) }
	}
	generation := func(n string) func(*unstructured.Unstructured) {
		return set(n, "metadata", "annotations", "resourcetemplate.karmada.io/generation")
	}
	otherTemplate := set("t2", "metadata", "annotations", "resourcetemplate.karmada.io/uid")
	type change = func(*unstructured.Unstructured)
	gone := change(nil)
	going := func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(new(metav1.Unix(1, 0))) }

	tests := map[string]struct {
		manifest  string
		work      []func(*workv1alpha1.Work)
		member    []change // as the hub left it, and then; nil is gone
		unsettled bool
		want      string // empty: it is done as ever
	}{
		"a newer generation of the same template, whoever restored the store": {restoredDeployment, nil,
			[]change{generation("7"), set(int64(9), "spec", "replicas")}, false,
			"generation 7 of its template, but the hub has generation 5"},
		"a newer generation after users changed the older template": {restoredDeployment,
			[]func(*workv1alpha1.Work){changed}, []change{generation("7")}, false, "generation 7"},
		"drift of an object whose template is as the hub's": {restoredDeployment, nil,
			[]change{set(int64(9), "spec", "replicas")}, false, ""},
		"an older generation": {restoredDeployment, nil, []change{generation("4")}, false, ""},
		"another template's generation, as of one that was made anew": {restoredDeployment, nil,
			[]change{otherTemplate, generation("7")}, false, ""},
		"the same, at the first look after a restore": {restoredDeployment, nil,
			[]change{otherTemplate, generation("7")}, true, "it differs"},
		"a generation that is none": {restoredDeployment, nil,
			[]change{generation("many")}, false, ""},
		"a ConfigMap of other content, at the first look after a restore": {restoredConfigMap, nil,
			[]change{set("new", "data", "a")}, true, "data.a differs"},
		"a ConfigMap with more content, at the first look after a restore": {restoredConfigMap, nil,
			[]change{set("new", "data", "b")}, true, "data.b"},
		"a ConfigMap of other content, without a restore": {restoredConfigMap, nil,
			[]change{set("new", "data", "a")}, false, ""},
		"a ConfigMap as it was left, at the first look after a restore": {restoredConfigMap, nil, nil, true, ""},
		"an object that is gone, at the first look after a restore": {restoredConfigMap, nil, []change{gone},
			true, "does not exist there"},
		"an object that is gone, without a restore": {restoredConfigMap, nil, []change{gone},
			false, ""},
		"an object that the hub had not sent before the backup": {restoredConfigMap,
			[]func(*workv1alpha1.Work){neverApplied}, []change{gone}, true, ""},
		"what is held, once the template has overtaken it": {restoredDeployment,
			[]func(*workv1alpha1.Work){pause, changed}, []change{set(int64(9), "spec", "replicas")}, false,
			"spec.replicas differs"},
		"what was held and is as the hub wants it now": {restoredDeployment,
			[]func(*workv1alpha1.Work){pause}, nil, false, ""},
		"what is held and was accepted": {restoredDeployment,
			[]func(*workv1alpha1.Work){accepted}, []change{generation("7")}, true, ""},
		"what is held and was accepted after an earlier restore": {restoredDeployment,
			[]func(*workv1alpha1.Work){acceptedBefore}, []change{generation("7")}, true, "generation 7"},
		"what was gone and is held, after the restore was accepted for others": {restoredConfigMap,
			[]func(*workv1alpha1.Work){pause}, []change{gone}, false, "does not exist there"},
		"an object that is deleted by its Work": {restoredDeployment,
			[]func(*workv1alpha1.Work){deleting}, []change{generation("7")}, true, ""},
		"an object of another template, whose Work is being deleted": {restoredDeployment,
			[]func(*workv1alpha1.Work){deleting}, []change{otherTemplate}, true, "another template"},
		"another template's object whose Work is being deleted, without a restore": {restoredDeployment,
			[]func(*workv1alpha1.Work){deleting}, []change{otherTemplate}, false, ""},
		"the same, held before the hub started anew": {restoredDeployment,
			[]func(*workv1alpha1.Work){deleting, pause}, []change{otherTemplate}, false, "another template"},
		"the same, held and accepted": {restoredDeployment,
			[]func(*workv1alpha1.Work){deleting, accepted}, []change{otherTemplate}, true, ""},
		"an object without a template, whose Work is being deleted": {restoredDeployment,
			[]func(*workv1alpha1.Work){deleting},
			[]change{set("", "metadata", "annotations", "resourcetemplate.karmada.io/uid")}, true, ""},
		"an object that is being deleted in the member": {restoredDeployment, nil, []change{going},
			true, "being deleted there"},
		"the same, without a restore": {restoredDeployment, nil, []change{going},
			false, ""},
		"an object of a suspended Work": {restoredDeployment,
			[]func(*workv1alpha1.Work){suspended}, []change{generation("7")}, true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := work(t, test.manifest, test.work...)
			sent := w.DeepCopy()
			sent.DeletionTimestamp = nil
			observed := desired(t, sent, nil)
			for _, change := range test.member {
				if change == nil {
					observed = nil
					break
				}
				change(observed)
			}
			var d *unstructured.Unstructured
			if w.DeletionTimestamp == nil {
				d = desired(t, w, observed)
			}
			action := execute.Plan(w, d, observed)
			got := execute.PauseReason(w, action, d, observed, test.unsettled)
			if got == "" && test.want != "" || test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("%s (%s): held for %q, want %q", action.Kind, action.Reason, got, test.want)
			}
		})
	}

	w := work(t, restoredDeployment, pause)
	m, err := execute.Manifest(w)
	if err != nil {
		t.Fatal(err)
	}
	if wantText := execute.PauseMessage(w, m, "the cluster has generation 7"); !strings.Contains(wantText,
		"Deployment web in cluster eu: the cluster has generation 7") ||
		!strings.Contains(wantText, "argosy restore accept Deployment web -n shop") {
		t.Errorf("it says %q", wantText)
	}
}

func TestUncheckedWorksOfRestoredHubAreCounted(t *testing.T) {
	pause := func(w *workv1alpha1.Work) {
		w.Status.Conditions = append(w.Status.Conditions,
			metav1.Condition{Type: workv1alpha1.WorkHeldAfterRestore, Status: metav1.ConditionTrue})
	}
	neverApplied := func(w *workv1alpha1.Work) { w.Status.Conditions = nil }
	for name, test := range map[string]struct {
		work      []func(*workv1alpha1.Work)
		unsettled bool
		want      bool
	}{
		"sent before the backup":             {nil, true, true},
		"looked at":                          {nil, false, false},
		"held":                               {[]func(*workv1alpha1.Work){pause}, true, false},
		"never sent":                         {[]func(*workv1alpha1.Work){neverApplied}, true, false},
		"being deleted":                      {[]func(*workv1alpha1.Work){deleting}, true, true},
		"never known to be sent, and leaves": {[]func(*workv1alpha1.Work){neverApplied, deleting}, true, true},
	} {
		if got := execute.Unchecked(work(t, restoredConfigMap, test.work...), !test.unsettled); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
