package release_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// workOf returns the Work of a cluster with an image. applied is the annotation with the overrides of the cluster.
func (w *world) workOf(cluster, image, applied string) workv1alpha1.Work {
	w.t.Helper()
	m := w.template.DeepCopy()
	if err := unstructured.SetNestedSlice(m.Object, []any{map[string]any{"name": "main", "image": image}}, "spec",
		"template", "spec", "containers"); err != nil {
		w.t.Fatal(err)
	}
	raw, err := json.Marshal(m.Object)
	if err != nil {
		w.t.Fatal(err)
	}
	out := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: "web",
		Annotations: map[string]string{policyv1alpha1.AppliedOverridesAnnotation: applied}}}
	out.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return out
}

func TestFormerRevisionIsThatOfAWorkWithoutOverrides(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	current := w.revision() // of web:2
	work := w.workOf
	for name, c := range map[string]struct {
		works []workv1alpha1.Work
		want  string
	}{
		"none":                {nil, ""},
		"all are overridden":  {[]workv1alpha1.Work{work("c1", "eu/web:1", "[{}]")}, ""},
		"one is plain":        {[]workv1alpha1.Work{work("c1", "eu/web:1", "[{}]"), work("c2", "web:1", "")}, "web:1"},
		"one is new already":  {[]workv1alpha1.Work{work("c1", "web:2", ""), work("c2", "web:1", "")}, "web:1"},
		"all are new already": {[]workv1alpha1.Work{work("c1", "web:2", "")}, "web:2"},
	} {
		target := release.Target{Template: w.template, Binding: w.binding, Current: current}
		if err := target.SetRevisions(current.Spec.Target, nil, c.works, nil); err != nil {
			t.Fatal(err)
		}
		got := ""
		if target.Former != nil {
			got = target.Former.Spec.Images[0]
		}
		if got != c.want {
			t.Errorf("%s: the former revision has image %q, want %q", name, got, c.want)
		}
	}
}

func TestBaselineIsWhatMembersHave(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	work := w.workOf
	keeping := func(w workv1alpha1.Work) workv1alpha1.Work {
		var m unstructured.Unstructured
		if err := m.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(m.Object, int64(1), "spec", "updateStrategy", "partition"); err != nil {
			t.Fatal(err)
		}
		raw, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		w.Spec.Workload.Manifests[0].Raw = raw
		return w
	}
	w.join("c2", 2, nil)
	for name, c := range map[string]struct {
		works    []workv1alpha1.Work
		override string
		want     string
	}{
		"no cluster has it": {nil, "", "web:2"},
		"all Works have the template": {[]workv1alpha1.Work{work("c1", "web:2", ""), work("c2", "web:2", "")}, "",
			"web:2"},
		"Works have two revisions": {[]workv1alpha1.Work{work("c1", "web:1", ""), work("c2", "web:2", "")}, "", ""},
		"a plain Work has the template, another one not": {[]workv1alpha1.Work{work("c1", "web:2", ""),
			work("c2", "web:us", "[{}]")}, "eu", ""},
		"a Work keeps old pods":         {[]workv1alpha1.Work{keeping(work("c1", "web:2", ""))}, "", ""},
		"plain Works have an older one": {[]workv1alpha1.Work{work("c1", "web:1", "")}, "", "web:1"},
		"all are the template with its overrides": {[]workv1alpha1.Work{work("c1", "web:eu", "[{}]"),
			work("c2", "web:eu", "[{}]")}, "eu", "web:2"},
		"an override is older": {[]workv1alpha1.Work{work("c1", "web:eu", "[{}]"),
			work("c2", "web:us", "[{}]")}, "eu", ""},
		"an override hides the change": {[]workv1alpha1.Work{work("c1", "web:eu", "[{}]"),
			work("c2", "web:1", "")}, "eu", "web:1"},
	} {
		var overrides []policyv1alpha1.Override
		if c.override != "" {
			overrides = append(overrides, overrideOf(c.override))
		}
		baseline, err := release.Baseline(w.template, c.works, w.clusters, overrides, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if baseline != nil {
			got = baseline.Spec.Images[0]
		}
		if got != c.want {
			t.Errorf("%s: the baseline has image %q, want %q", name, got, c.want)
		}
	}
}

func TestSurplusRevisionsAreOldUnusedAndNotBlocked(t *testing.T) {
	var all []*releasev1alpha1.ReleaseRevision
	for i := range 14 {
		r := &releasev1alpha1.ReleaseRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("r%02d", i),
			CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0))}}
		all = append(all, r)
	}
	all[1].Status.Blocked = &releasev1alpha1.RevisionBlock{Reason: "PodsFailed"}
	var got []string
	for _, r := range release.SurplusRevisions(all, map[string]bool{"r02": true}) {
		got = append(got, r.Name)
	}
	if want := []string{"r03", "r00"}; !slices.Equal(got, want) {
		t.Errorf("surplus are %v, want %v", got, want)
	}
}

func TestReleaseWarnsThatItCannotBeRolledBack(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	r := w.release("r1", "stages: [{name: all}]")
	if a := release.Accept(w.input(r)); a.Message != "" {
		t.Errorf("it warns: %s", a.Message)
	}
	w.former = nil
	step := release.Next(w.input(r))
	c := meta.FindStatusCondition(step.Status.Conditions, releasev1alpha1.ReleaseAccepted)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "cannot be rolled back") {
		t.Errorf("without a former revision, Accepted is %+v", c)
	}
}

func TestPlanThatABindingCannotRecordIsRefused(t *testing.T) {
	w := newWorld(t, cloneSet, 1)
	for i := range 999 {
		w.join(fmt.Sprintf("c%d", i+2), 1, nil)
	}
	var stages []string
	for i := range 32 {
		stages = append(stages, fmt.Sprintf("{name: s%d, clusters: {exclude: [c%d]}, to: {pods: %d}}", i, i+1, i+1))
	}
	stages[31] = "{name: all, clusters: {}}"
	r := w.release("r1", "stages: ["+strings.Join(stages, ", ")+"]")
	a := release.Accept(w.input(r))
	if a.Reason != releasev1alpha1.ReasonPlanTooLarge {
		t.Errorf("it is %s: %s", a.Reason, a.Message)
	}
}

func TestRevisionThatAReleaseStartsWithIsNoSurplus(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	for i := range 14 {
		w.image(fmt.Sprintf("web:%d", 10+i))
		r := w.revision()
		r.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
		w.revisions[r.Name] = r
	}
	w.image("web:10")
	oldest := w.revision().Name
	r := w.release("r1", "stages: [{name: all}]")
	in := w.input(r)
	step := release.Next(in)
	if step.Status.Phase != releasev1alpha1.ReleaseRunning {
		t.Fatalf("the release is %s", step.Status.Phase)
	}
	surplus := release.Surplus(in, step)
	if len(surplus) != 3 {
		t.Errorf("%d revisions are surplus, want 3", len(surplus))
	}
	for _, r := range surplus {
		if r.Name == oldest {
			t.Error("the revision that the release starts with is deleted")
		}
	}
}

// Otherwise a version would be deleted with its last revision, and old pods could not restart.
func TestRevisionWhoseVersionPodsReadIsNoSurplus(t *testing.T) {
	w := newConfigWorld(t)
	var stored []*releasev1alpha1.ReleaseRevision
	for i, value := range []int{0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13} {
		w.configMaps["settings"] = configMap(t, "settings", fmt.Sprint(value))
		w.image(fmt.Sprintf("web:%d", 10+i))
		r := w.revision()
		r.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
		w.revisions[r.Name] = r
		stored = append(stored, r)
	}
	w.image("web:3")
	r := w.release("r2", "config: Versioned\nstages: [{name: all}]")
	surplus := func(when string, want ...int) {
		t.Helper()
		in := w.input(r)
		got := release.Surplus(in, release.Next(in))
		for i := range 4 {
			if slices.Contains(got, stored[i]) != slices.Contains(want, i) {
				t.Errorf("%s, revision %d is surplus: %v", when, i, !slices.Contains(want, i))
			}
		}
	}
	surplus("without old pods", 0, 1, 2, 3)
	w.binding.Annotations[workv1alpha2.DependenciesAnnotation] = `[{"apiVersion":"v1","kind":"ConfigMap",` +
		`"namespace":"shop","name":"` + versionOf(t, "settings", "0") + `"}]`
	surplus("with pods of the oldest version", 0, 2, 3)
}

func TestRevisionsOfReleasesThatCanRollBackAreInUse(t *testing.T) {
	ref := releasev1alpha1.ReleaseObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}
	of := func(phase releasev1alpha1.ReleasePhase, from, to string) releasev1alpha1.Release {
		r := releasev1alpha1.Release{Spec: releasev1alpha1.ReleaseSpec{Targets: []releasev1alpha1.ReleaseTarget{{Name: "web",
			Ref: ref}}}}
		r.Status.Phase = phase
		r.Status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: "web", From: from, To: to}}
		return r
	}
	inUse := release.RevisionsInUse(ref, []releasev1alpha1.Release{of(releasev1alpha1.ReleaseSucceeded, "r1", "r2"),
		of(releasev1alpha1.ReleaseSucceeded, "r2", "r3"), of(releasev1alpha1.ReleaseQueued, "r3", "r4")}, []string{"r3"})
	for name, want := range map[string]bool{"r1": false, "r2": true, "r3": true, "r4": true} {
		if inUse[name] != want {
			t.Errorf("%s is in use: %v, want %v", name, inUse[name], want)
		}
	}
}

func TestPacerIsARolloutThatRefersToTheWorkload(t *testing.T) {
	rollout := func(text string) *unstructured.Unstructured {
		return coretest.Object(t, "{apiVersion: rollouts.kruise.io/v1beta1, "+text[1:])
	}
	w := newWorld(t, cloneSet, 2)
	objects := []*unstructured.Unstructured{
		rollout(`{kind: Rollout, metadata: {name: other},
			spec: {workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop}}}`),
		rollout(`{kind: Rollout, metadata: {name: deployment},
			spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`),
	}
	target := release.Target{Template: w.template, Binding: w.binding}
	if target.SetObstacles(w.clusters, nil, objects); target.Pacer != "" {
		t.Errorf("%s paces the workload, want none", target.Pacer)
	}
	objects = append(objects, rollout(`{kind: Rollout, metadata: {name: own}, spec: {objectRef:
		{workloadRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: web}}}}`))
	if target.SetObstacles(w.clusters, nil, objects); target.Pacer != "Rollout own" {
		t.Errorf("%q paces the workload, want Rollout own", target.Pacer)
	}
}

func TestNewReleaseWaitsAMomentForWhatItNames(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	r := w.release("r1", "stages: [{name: all}]")
	in := w.input(r)
	in.Strategy = nil
	step := release.Next(in)
	if step.Status.Phase != releasev1alpha1.ReleasePending || step.RequeueAfter != 30*time.Second {
		t.Errorf("at first, the release is %s and the next step is after %s", step.Status.Phase, step.RequeueAfter)
	}
	in.Release.Status = step.Status
	in.Now = in.Now.Add(30 * time.Second)
	if step = release.Next(in); step.Status.Phase != releasev1alpha1.ReleaseFailed {
		t.Errorf("after a moment, the release is %s", step.Status.Phase)
	}
	in.Strategy = r.Spec.Strategy
	in.Now = w.now
	if step = release.Next(in); step.Status.Phase != releasev1alpha1.ReleaseRunning {
		t.Errorf("with its strategy, the release is %s", step.Status.Phase)
	}
}

// A binding or a template that is not there must not look like a workload that has reached its stage.
func TestReleaseDoesNotAdvanceWithoutItsTarget(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	r := w.release("r1", "stages: [{name: all}]")
	w.reconcile(r)
	for what, change := range map[string]func(*release.Target){
		"template": func(t *release.Target) { t.Template = nil },
		"binding":  func(t *release.Target) { t.Binding, t.Progress = nil, nil },
	} {
		in := w.input(r)
		target := in.Targets["web"]
		change(&target)
		in.Targets["web"] = target
		step := release.Next(in)
		if step.Status.Phase != releasev1alpha1.ReleaseRunning || len(step.Bindings) > 0 {
			t.Errorf("without its %s, the release is %s and writes bindings %v", what, step.Status.Phase, step.Bindings)
		}
	}
}
