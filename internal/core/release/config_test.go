package release_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

func configMap(t testing.TB, name, value string) *unstructured.Unstructured {
	t.Helper()
	return coretest.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+
		", namespace: shop, labels: {app: web}}, data: {value: \""+value+"\"}}")
}

// versionOf is the name of the version of a ConfigMap with a value.
func versionOf(t testing.TB, name, value string) string {
	return release.VersionOf(configMap(t, name, value))
}

const readsAll = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-1}
spec:
  template:
    spec:
      initContainers:
      - {name: a, envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: settings}}]}
      containers:
      - name: b
        env: [{name: VALUE, valueFrom: {configMapKeyRef: {name: settings, key: value}}}, {name: OTHER, value: settings}]
      volumes:
      - {name: c, configMap: {name: settings, items: [{key: value, path: value}]}}
      - {name: d, projected: {sources: [{configMap: {name: settings}}, {secret: {name: settings}}]}}
      - {name: e, configMap: {name: missing, optional: true}}
`

func TestPodsOfARevisionReadVersionsOfTheirConfigMaps(t *testing.T) {
	template := coretest.Object(t, readsAll)
	before := template.DeepCopy()
	configMaps := release.ConfigMaps{"settings": configMap(t, "settings", "1")}
	if names := release.ReadConfigMaps(template); !slices.Equal(names, []string{"missing", "settings"}) {
		t.Fatalf("pods read %q", names)
	}
	r := release.CurrentRevision(template, nil, configMaps, nil)
	got, err := release.WithPods(template, r)
	if err != nil {
		t.Fatal(err)
	}
	version := versionOf(t, "settings", "1")
	want := coretest.Object(t, strings.NewReplacer("configMapRef: {name: settings", "configMapRef: {name: "+version,
		"configMapKeyRef: {name: settings", "configMapKeyRef: {name: "+version,
		"configMap: {name: settings", "configMap: {name: "+version).Replace(readsAll))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the pods are %v, want %v", got.Object["spec"], want.Object["spec"])
	}
	if !reflect.DeepEqual(template, before) {
		t.Error("the template was changed")
	}
	if !slices.Equal(release.Versions(r), []string{version}) || len(r.Spec.Config) != 2 {
		t.Errorf("the revision has %+v", r.Spec.Config)
	}

	configMaps["settings"] = configMap(t, "settings", "2")
	other := release.CurrentRevision(template, nil, configMaps, nil)
	if other.Name == r.Name {
		t.Error("another content makes no other revision")
	}
	plain := release.CurrentRevision(template, nil, nil, nil)
	if len(plain.Spec.Config) > 0 || plain.Name == r.Name {
		t.Errorf("without versions, the revision is %s with %v", plain.Name, plain.Spec.Config)
	}
}

func TestOnlyConfigMapsThatMembersGetAsTheyAreHaveVersions(t *testing.T) {
	selecting := func(selector policyv1alpha1.ResourceSelector) policyv1alpha1.Override {
		p := &policyv1alpha1.OverridePolicy{}
		p.Namespace, p.Name = "shop", "o"
		p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{selector}
		return p
	}
	version := configMap(t, "settings", "1")
	version.SetAnnotations(map[string]string{"argosy.io/version-of": "other"})
	for name, c := range map[string]struct {
		configMap *unstructured.Unstructured
		selector  policyv1alpha1.ResourceSelector
		versioned bool
	}{
		"as it is": {configMap(t, "settings", "1"), policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Secret"}, true},
		"a policy for all": {configMap(t, "settings", "1"),
			policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}, false},
		"a policy for its name": {configMap(t, "settings", "1"),
			policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}, false},
		"a policy for its labels": {configMap(t, "settings", "1"), policyv1alpha1.ResourceSelector{APIVersion: "v1",
			Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}, false},
		"a version": {version, policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Secret"}, false},
	} {
		r := release.CurrentRevision(coretest.Object(t, readsAll), []policyv1alpha1.Override{selecting(c.selector)},
			release.ConfigMaps{"settings": c.configMap}, nil)
		if got := len(release.Versions(r)) > 0; got != c.versioned {
			t.Errorf("%s: it is versioned: %v, want %v", name, got, c.versioned)
		}
	}
}

func TestAVersionBelongsToTheRevisionsThatUseIt(t *testing.T) {
	template, long := coretest.Object(t, readsAll), strings.Repeat("long.", 50)
	for _, name := range []string{"settings", long + "abc"} {
		if n := len(versionOf(t, name, "1")); n > 253 {
			t.Errorf("a version has a name of %d characters", n)
		}
	}
	configMaps := release.ConfigMaps{"settings": configMap(t, "settings", "1")}
	r := release.CurrentRevision(template, nil, configMaps, nil)
	versions, taken := release.VersionsToMake(r, template, configMaps)
	if len(versions) != 1 || taken != "" {
		t.Fatalf("the versions are %v, and %q is taken", versions, taken)
	}
	version := versions[0]
	if version.Object["immutable"] != true || fields.Text(version.Object, "data", "value") != "1" ||
		version.GetOwnerReferences()[0].UID != "u-1" || len(version.GetLabels()) > 0 {
		t.Errorf("the version is %v", version.Object)
	}
	configMaps[version.GetName()] = version
	if again, taken := release.VersionsToMake(r, template, configMaps); len(again) > 0 || taken != "" {
		t.Errorf("an existing version is made again: %v, %q", again, taken)
	}

	r.UID = "r-1"
	owned := release.OwnedBy(version, r)
	next := r.DeepCopy()
	next.UID = "r-2"
	owned = release.OwnedBy(owned, next)
	var owners []string
	for _, o := range owned.GetOwnerReferences() {
		owners = append(owners, o.Kind+" "+string(o.UID))
	}
	if !slices.Equal(owners, []string{"ReleaseRevision r-1", "ReleaseRevision r-2"}) {
		t.Errorf("the owners are %q", owners)
	}
	if release.OwnedBy(owned, r) != nil || release.OwnedBy(configMap(t, "settings", "1"), r) != nil {
		t.Error("an owner is added again, or to a ConfigMap of a user")
	}
}

// A mutable ConfigMap would let a user change the configuration of pods in all clusters at once.
func TestOnlyAnImmutableConfigMapOfTheContentIsAVersion(t *testing.T) {
	template := coretest.Object(t, readsAll)
	configMaps := release.ConfigMaps{"settings": configMap(t, "settings", "1")}
	r := release.CurrentRevision(template, nil, configMaps, nil)
	versions, _ := release.VersionsToMake(r, template, configMaps)
	name := versions[0].GetName()
	mutable := func(u *unstructured.Unstructured) { delete(u.Object, "immutable") }
	soon := func(u *unstructured.Unstructured) { u.Object["immutable"] = false }
	other := func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"a": "b"} }
	for what, c := range map[string]struct {
		spoil   func(u *unstructured.Unstructured)
		present bool // the ConfigMap has the content of the revision
		taken   bool
	}{
		"as it was made":                     {func(*unstructured.Unstructured) {}, true, false},
		"it can be changed":                  {mutable, true, true},
		"immutable is false":                 {soon, true, true},
		"it has other content":               {other, true, true},
		"of content that is gone":            {func(*unstructured.Unstructured) {}, false, false},
		"other content, and the own is gone": {other, false, true},
	} {
		have := versions[0].DeepCopy()
		c.spoil(have)
		all := release.ConfigMaps{name: have, "settings": configMap(t, "settings", "2")}
		if c.present {
			all["settings"] = configMap(t, "settings", "1")
		}
		want := ""
		if c.taken {
			want = "shop/" + name
		}
		if again, taken := release.VersionsToMake(r, template, all); len(again) > 0 || taken != want {
			t.Errorf("%s: %d versions are made, and %q is taken, want %q", what, len(again), taken, want)
		}
	}
	message := release.TakenMessage("shop/" + name)
	if !strings.HasPrefix(message, "ConfigMap shop/"+name+" ") || !strings.Contains(message, "delete it") {
		t.Errorf("the message is %q", message)
	}
}

// newConfigWorld is a workload that reads the ConfigMap settings, and was released with value 1 and web:2.
func newConfigWorld(t testing.TB) *world {
	t.Helper()
	w := newWorld(t, cloneSet, 5, 5)
	w.binding.Spec.PropagateDeps = true
	w.edit([]any{map[string]any{"name": "c", "configMap": map[string]any{"name": "settings"}}}, "spec", "template", "spec",
		"volumes")
	w.configMaps = release.ConfigMaps{"settings": configMap(t, "settings", "1")}
	r := w.release("r1", "config: Versioned\nstages: [{name: all}]")
	w.pass(time.Hour)
	w.expect("after the first release", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
	return w
}

// pairs are the images and ConfigMaps that Works have together.
func (w *world) pairs() map[string]bool {
	w.t.Helper()
	pairs := map[string]bool{}
	for _, work := range w.works {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
			w.t.Fatal(err)
		}
		spec := fields.Object(u.Object, "spec", "template", "spec")
		pairs[fields.Text(fields.Objects(spec, "containers")[0], "image")+" "+
			fields.Text(fields.Objects(spec, "volumes")[0], "configMap", "name")] = true
	}
	return pairs
}

func TestVersionedConfigurationGoesWithItsImageAndBack(t *testing.T) {
	w := newConfigWorld(t)
	before, after := "web:2 "+versionOf(t, "settings", "1"), "web:3 "+versionOf(t, "settings", "2")
	if got := w.pairs(); len(got) != 1 || !got[before] {
		t.Fatalf("after the first release, members have %v", got)
	}
	seen := map[string]bool{}
	w.watch = func() {
		for pair := range w.pairs() {
			seen[pair] = true
		}
	}
	w.configMaps["settings"] = configMap(t, "settings", "2")
	w.image("web:3")
	r := w.release("r2", "config: Versioned\nstages: [{name: one, clusters: {clusterNames: [c1]}}, "+
		"{name: rest, before: [{name: go}]}]")
	w.pass(time.Hour)
	if got := w.pairs(); len(got) != 2 || !got[before] || !got[after] {
		t.Errorf("in the middle, members have %v", got)
	}
	r.Spec.State = releasev1alpha1.StateRollback
	w.pass(time.Hour)
	w.expect("after the rollback", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 10)
	if got := w.pairs(); len(got) != 1 || !got[before] {
		t.Errorf("after the rollback, members have %v", got)
	}
	if len(seen) != 2 || !seen[before] || !seen[after] {
		t.Errorf("members had %v", seen)
	}
}

func TestAChangeOfAConfigMapAloneIsARevision(t *testing.T) {
	w := newConfigWorld(t)
	if w.hasCondition(fleet.ChangeAwaitsRelease) {
		t.Fatalf("without a change, the conditions are %+v", w.conditions)
	}
	w.configMaps["settings"] = configMap(t, "settings", "2")
	w.pass(time.Hour)
	before := "web:2 " + versionOf(t, "settings", "1")
	if got := w.pairs(); !w.hasCondition(fleet.ChangeAwaitsRelease) || len(got) != 1 || !got[before] {
		t.Errorf("without a release, members have %v, and the conditions are %+v", got, w.conditions)
	}
	r := w.release("r2", "config: Versioned\nstages: [{name: all}]")
	w.pass(time.Hour)
	w.expect("after the release", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
	if got := w.pairs(); len(got) != 1 || !got["web:2 "+versionOf(t, "settings", "2")] {
		t.Errorf("after the release, members have %v", got)
	}
	again := w.release("r3", "config: Versioned\nstages: [{name: all}]")
	w.pass(time.Hour)
	w.expect("without another change", again, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonSameRevision,
		"web:2", 10)
}

// A ConfigMap may be gone for a moment only: tools replace objects by deleting them.
func TestADeletedConfigMapIsNoChangeToRelease(t *testing.T) {
	w := newConfigWorld(t)
	version := versionOf(t, "settings", "1")
	delete(w.configMaps, "settings")
	w.pass(time.Hour)
	if w.hasCondition(fleet.ChangeAwaitsRelease) {
		t.Errorf("without the ConfigMap, the conditions are %+v", w.conditions)
	}
	r := w.release("r2", "config: Versioned\nstages: [{name: all}]")
	w.pass(time.Hour)
	w.expect("without the ConfigMap", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonSameRevision, "web:2", 10)

	w.image("web:3")
	r = w.release("r3", "config: Versioned\nstages: [{name: all}]")
	if a := release.Accept(w.inputAfterDeletion(r, version)); a.Reason != releasev1alpha1.ReasonConfigMapNotFound ||
		!strings.Contains(a.Message, "ConfigMap "+version) {
		t.Errorf("without the ConfigMap and its version, another image is %s: %s", a.Reason, a.Message)
	}
	w.pass(time.Hour)
	w.expect("with another image", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:3", 10)
	if got := w.pairs(); len(got) != 1 || !got["web:3 "+version] {
		t.Errorf("with another image, members have %v", got)
	}
	w.configMaps["settings"] = configMap(t, "settings", "2")
	w.pass(time.Hour)
	if !w.hasCondition(fleet.ChangeAwaitsRelease) {
		t.Error("a new content does not wait for a release")
	}
}

// Otherwise pods would read the ConfigMaps themselves at once, in all clusters.
func TestAWorkloadWithVersionsKeepsThemWithoutAStrategy(t *testing.T) {
	w := newConfigWorld(t)
	w.template = w.template.DeepCopy()
	w.template.SetAnnotations(nil)
	w.pass(time.Hour)
	if got := w.pairs(); len(got) != 1 || !got["web:2 "+versionOf(t, "settings", "1")] {
		t.Errorf("without the annotation, members have %v", got)
	}
	w.configMaps = nil
	r := w.release("r2", "stages: [{name: one, clusters: {clusterNames: [c1]}}, {name: rest}]")
	w.pass(time.Hour)
	w.expect("after a release without versions", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted,
		"web:2", 10)
	if got := w.pairs(); len(got) != 1 || !got["web:2 settings"] {
		t.Errorf("after a release without versions, members have %v", got)
	}
	if name := w.binding.Annotations[fleet.EffectiveRevisionAnnotation]; name != "" {
		t.Errorf("after a release without versions, the binding names %s", name)
	}
}

func TestAReleaseIsRefusedIfVersionsCannotBeUsed(t *testing.T) {
	for reason, spoil := range map[string]func(w *world){
		releasev1alpha1.ReasonConfigNotPropagated: func(w *world) { w.binding.Spec.PropagateDeps = false },
		releasev1alpha1.ReasonConfigMapTaken: func(w *world) {
			name := versionOf(t, "settings", "2")
			w.configMaps[name] = configMap(t, name, "2")
		},
	} {
		w := newConfigWorld(t)
		w.configMaps["settings"] = configMap(t, "settings", "2")
		spoil(w)
		r := w.release("r2", "config: Versioned\nstages: [{name: all}]")
		w.pass(time.Hour)
		w.expect(reason, r, releasev1alpha1.ReleaseFailed, reason, "web:2", 10)
		if got := w.pairs(); len(got) != 1 || !got["web:2 "+versionOf(t, "settings", "1")] {
			t.Errorf("%s: members have %v", reason, got)
		}
	}
}

func TestARollbackNamesVersionsThatWereDeleted(t *testing.T) {
	r := release.CurrentRevision(coretest.Object(t, readsAll), nil,
		release.ConfigMaps{"settings": configMap(t, "settings", "1")}, nil)
	version := versionOf(t, "settings", "1")
	for exists, want := range map[bool][]string{
		true:  {"ConfigMap missing", "Secret settings"},
		false: {"ConfigMap missing", "ConfigMap " + version + " (deleted)", "Secret settings"},
	} {
		got, err := release.Configuration(r, func(name string) bool { return exists && name == version })
		if slices.Sort(want); err != nil || !slices.Equal(got, want) {
			t.Errorf("with versions that exist (%v), the configuration is %q, want %q (%v)", exists, got, want, err)
		}
	}
}

func TestAReleaseWaitsForVersionsThatAreRefused(t *testing.T) {
	const why = "create ConfigMap shop/settings-1: exceeded quota"
	w := newConfigWorld(t)
	w.configMaps["settings"] = configMap(t, "settings", "2")
	r := w.release("r2", "config: Versioned\nstages: [{name: all}]")
	refused := func(when string, phase releasev1alpha1.ReleasePhase) {
		t.Helper()
		in := w.input(r)
		in.VersionsRefused = why
		step := release.Next(in)
		r.Status = step.Status
		if step.Status.Phase != phase || step.Status.Reason != releasev1alpha1.ReasonConfigMapRefused ||
			len(step.ConfigMaps)+len(step.Revisions) > 0 || step.RequeueAfter != time.Minute {
			t.Errorf("%s, the release is %s (%s), with %d versions, and again after %s", when, step.Status.Phase,
				step.Status.Reason, len(step.ConfigMaps), step.RequeueAfter)
		}
		if what, next := release.Waits(r); !strings.Contains(what, why) || next == "" {
			t.Errorf("%s, the release says %q, %q", when, what, next)
		}
	}
	refused("at first", releasev1alpha1.ReleasePending)
	r.Spec.State = releasev1alpha1.StatePause
	w.reconcile(r)
	delete(w.configMaps, versionOf(t, "settings", "2")) // it was deleted while the release was queued
	r.Spec.State = releasev1alpha1.StateRun
	refused("before it starts", releasev1alpha1.ReleaseQueued)
	if !meta.IsStatusConditionTrue(r.Status.Conditions, releasev1alpha1.ReleaseAccepted) {
		t.Error("the release is no longer accepted, so its targets can be changed")
	}
	w.pass(time.Hour)
	w.expect("after all", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
}
