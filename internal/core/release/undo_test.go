package release_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// stored returns the revisions that the hub stores of templates, in this order.
func stored(t *testing.T, templates ...*unstructured.Unstructured) (all []appsv1.ControllerRevision) {
	t.Helper()
	var kept []fleet.Revision
	for _, template := range templates {
		next, surplus := fleet.Remember(template, kept)
		kept = slices.DeleteFunc(kept, func(r fleet.Revision) bool {
			return slices.ContainsFunc(surplus, func(s fleet.Revision) bool { return s.Name == r.Name })
		})
		if next != nil {
			kept = append(kept, *next)
		}
	}
	last := templates[len(templates)-1]
	for _, r := range kept {
		all = append(all, appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: last.GetNamespace(),
			Name: fleet.RevisionPrefix(last) + r.Name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(last,
				last.GroupVersionKind())}}, Revision: r.Number, Data: runtime.RawExtension{Raw: r.Data}})
	}
	return all
}

// revised is a workload of a kind with the fields at the paths of its pods.
func revised(t *testing.T, apiVersion, kind, image string) *unstructured.Unstructured {
	t.Helper()
	u := coretest.Object(t, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: web, namespace: shop, uid: u-1,
 generation: 7}, spec: {replicas: 3}}`, apiVersion, kind))
	path := fleet.RevisionPaths(u.GroupVersionKind().GroupKind())[0]
	container := map[string]any{"name": "main", "image": image}
	if image == "web:1" {
		container["args"] = []any{"-v"}
	}
	var value any = map[string]any{"spec": map[string]any{"containers": []any{container}}}
	if kind == "SidecarSet" {
		u.SetNamespace("")
		value = []any{container}
	}
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestUndoBringsTheFormerPodsBackForEveryKindWithRevisions(t *testing.T) {
	const kruise = "apps.kruise.io/v1beta1"
	for _, kind := range [][2]string{{"apps/v1", "Deployment"}, {"apps/v1", "StatefulSet"}, {"apps/v1", "DaemonSet"},
		{kruise, "CloneSet"}, {kruise, "StatefulSet"}, {kruise, "DaemonSet"}, {"apps.kruise.io/v1alpha1", "UnitedDeployment"},
		{"argoproj.io/v1alpha1", "Rollout"}, {kruise, "SidecarSet"}} {
		one, two := revised(t, kind[0], kind[1], "web:1"), revised(t, kind[0], kind[1], "web:2")
		in := release.UndoInput{Template: two, Stored: stored(t, one, two)}
		past, err := in.Past()
		if err != nil || len(past) != 2 || !past[0].Current || past[1].Current || fmt.Sprint(past[1].Images) != "[web:1]" {
			t.Fatalf("%s: the history is %+v, %v", kind, past, err)
		}
		u, err := in.UndoTo(0)
		if err != nil || u.From != 2 || u.To != 1 || fmt.Sprint(u.Images) != "[{main web:2 web:1}]" || len(u.Changes) != 1 ||
			!strings.HasSuffix(u.Changes[0].Path, "[main].args") {
			t.Fatalf("%s: the way back is %+v, %v", kind, u, err)
		}
		raw, err := json.Marshal(u.Patch)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(raw)
		if err != nil {
			t.Fatal(err)
		}
		before, err := two.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		after, err := patch.Apply(before)
		got := &unstructured.Unstructured{}
		if err != nil || got.UnmarshalJSON(after) != nil {
			t.Fatalf("%s: %v: %s", kind, err, after)
		}
		if fmt.Sprint(got.Object) != fmt.Sprint(one.Object) {
			t.Errorf("%s: the template is %v, want %v", kind, got.Object, one.Object)
		}
		// Once more, the former revision is the newest.
		in = release.UndoInput{Template: one, Stored: stored(t, one, two, one)}
		if u, err = in.UndoTo(0); err != nil || u.From != 3 || u.To != 2 {
			t.Errorf("%s: after an undo, the way back is from %d to %d, %v", kind, u.From, u.To, err)
		}
		two.SetGeneration(8)
		if before, err = two.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
		if _, err := patch.Apply(before); err == nil {
			t.Errorf("%s: the patch applies to a template that has changed since", kind)
		}
	}
}

func TestASidecarSetWithVersionsIsNotUndone(t *testing.T) {
	const version = "apps.kruise.io/v1beta1"
	one, two := revised(t, version, "SidecarSet", "web:1"), revised(t, version, "SidecarSet", "web:2")
	for u, name := range map[*unstructured.Unstructured]string{one: "v1", two: "v2"} {
		if err := unstructured.SetNestedField(u.Object, name, "spec", "customVersion"); err != nil {
			t.Fatal(err)
		}
	}
	in := release.UndoInput{Template: two, Stored: stored(t, one, two)}
	if _, err := in.UndoTo(0); err == nil || !strings.Contains(err.Error(), "apply the former template with its version") {
		t.Errorf("the way back is refused with %v", err)
	}
}

func TestUndoIsRefused(t *testing.T) {
	web := func(image string) *unstructured.Unstructured { return revised(t, "apps/v1", "Deployment", image) }
	ref := releasev1alpha1.ReleaseObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	of := func(phase releasev1alpha1.ReleasePhase) *releasev1alpha1.Release {
		r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
		r.Spec.Targets, r.Status.Phase = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: ref}}, phase
		return r
	}
	record := of(releasev1alpha1.ReleaseRunning)
	record.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerDirect}
	other := of(releasev1alpha1.ReleaseRunning)
	other.Spec.Targets[0].Ref.Name = "api"
	strategy := web("web:2")
	strategy.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "gray"})
	kept := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		fleet.EffectiveRevisionAnnotation: "deployment-web-1"}}}
	foreign := stored(t, web("web:1"), web("web:2"))
	foreign[0].OwnerReferences[0].UID = "u-2"
	job := coretest.Object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: web, namespace: shop}}`)
	both := stored(t, web("web:1"), web("web:2"))
	start := "`argosy release start deployment.apps/web -n shop --revision NAME`"
	with := func(releases ...*releasev1alpha1.Release) release.UndoInput {
		in := release.UndoInput{Template: web("web:2"), Stored: both}
		for _, r := range releases {
			in.Releases = append(in.Releases, *r)
		}
		return in
	}
	named, held := with(), with()
	named.Template, held.Binding = strategy, kept
	succeeded := with(of(releasev1alpha1.ReleaseSucceeded))
	succeeded.Template = strategy
	for name, c := range map[string]struct {
		in   release.UndoInput
		to   int64
		want string
	}{
		"nothing is in the way":       {with(), 0, ""},
		"by its number":               {with(), 1, ""},
		"a record is under way":       {with(record), 0, ""},
		"a release of another one":    {with(other), 0, ""},
		"a release that has ended":    {with(of(releasev1alpha1.ReleaseSucceeded)), 0, ""},
		"a release is under way":      {with(of(releasev1alpha1.ReleasePaused)), 0, "`argosy release rollback web-1 -n shop`"},
		"a release is not accepted":   {with(of("")), 0, "`argosy release rollback web-1 -n shop`"},
		"changes wait for releases":   {named, 0, start},
		"clusters keep a revision":    {held, 0, start},
		"the last one has succeeded":  {succeeded, 0, "`argosy release rollback web-1 -n shop`, or " + start},
		"a number that is not stored": {with(), 9, "no revision 9"},
		"the revision that it has":    {with(), 2, "has revision 2 already"},
		"no earlier revision": {release.UndoInput{Template: web("web:1"), Stored: stored(t, web("web:1"))}, 0,
			"no earlier revision"},
		"a revision of another one": {release.UndoInput{Template: web("web:2"), Stored: foreign}, 0, "no earlier revision"},
		"a kind without revisions":  {release.UndoInput{Template: job}, 0, "keeps no revisions of a Job"},
	} {
		_, err := c.in.UndoTo(c.to)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
	if fleet.KeepsHistory(job) || !fleet.KeepsHistory(web("web:1")) {
		t.Error("a Job has a history, or a Deployment has none")
	}
}
