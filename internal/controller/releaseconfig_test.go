package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
	corefleet "github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// newConfigWorld is newReleaseWorld with a ConfigMap that the pods of the template read.
func newConfigWorld(t *testing.T) *releaseWorld {
	w := newReleaseWorld(t)
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "everywhere"}}
	controllertest.Change(w.Hub, p, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = true })
	w.Make(settings("1"))
	web := &unstructured.Unstructured{}
	web.SetGroupVersionKind(controllertest.CloneSet.GroupVersionKind)
	web.SetNamespace("shop")
	web.SetName("web")
	controllertest.Change(w.Hub, web, func(u *unstructured.Unstructured) {
		fields.Object(u.Object, "spec", "template", "spec")["volumes"] = []any{
			map[string]any{"name": "c", "configMap": map[string]any{"name": "settings"}}}
	})
	w.pass(5 * time.Second)
	w.Quiet()
	return w
}

// newReleasedConfigWorld is newConfigWorld after a release with versions has succeeded.
func newReleasedConfigWorld(t *testing.T) *releaseWorld {
	w := newConfigWorld(t)
	r := w.release("r1", versioned)
	w.pass(20 * time.Second)
	w.expect("after the release", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
	return w
}

func settings(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}, Data: map[string]string{"value": value}}
}

// configure changes the ConfigMap.
func (w *releaseWorld) configure(value string) {
	controllertest.Change(w.Hub, settings(value), func(c *corev1.ConfigMap) { c.Data["value"] = value })
	w.pass(3 * time.Second)
}

// versionName is the name of the version of the ConfigMap with a value.
func versionName(value string) string {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"value": value}}}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	u.SetNamespace("shop")
	u.SetName("settings")
	return release.VersionOf(u)
}

// version returns the version of the ConfigMap with a value.
func (w *releaseWorld) version(value string) *corev1.ConfigMap {
	w.t.Helper()
	v := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: versionName(value)}}
	if !w.HasObject(v) {
		w.t.Fatalf("the hub has no version with the value %q", value)
	}
	return v
}

// reads checks that pods of a workload read a ConfigMap in all members, and that members have it.
func (w *releaseWorld) reads(when, workload, configMap string) {
	w.t.Helper()
	for _, m := range w.members {
		u := m.server.Object(controllertest.CloneSet, "shop", workload)
		if u == nil {
			w.t.Fatalf("%s, %s lacks the workload", when, m.name)
		}
		got := "none"
		if volumes := fields.Objects(u.Object, "spec", "template", "spec", "volumes"); len(volumes) > 0 {
			got = fields.Text(volumes[0], "configMap", "name")
		}
		if got != configMap {
			w.t.Errorf("%s, pods in %s read %s, want %s", when, m.name, got, configMap)
		}
		if m.server.Object(membertest.ConfigMap, "shop", got) == nil {
			w.t.Errorf("%s, %s lacks ConfigMap %s", when, m.name, got)
		}
	}
}

// ownedBy checks the kinds of the owners of a version.
func (w *releaseWorld) ownedBy(version *corev1.ConfigMap, kinds ...string) {
	w.t.Helper()
	var got []string
	for _, o := range version.OwnerReferences {
		got = append(got, o.Kind)
	}
	if !slices.Equal(got, kinds) {
		w.t.Errorf("the owners of %s are %q, want %q", version.Name, got, kinds)
	}
}

const versioned = "config: Versioned\nstages: [{name: canary, to: {percent: 10}}, {name: rest}]"

func TestVersionsOfConfigMapsGoWithTheirRelease(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		r := w.release("r1", versioned)
		w.pass(20 * time.Second)
		w.expect("after the first release", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		one := w.version("1")
		w.reads("after the first release", "web", one.Name)
		w.ownedBy(one, "ReleaseRevision")
		if one.Immutable == nil || !*one.Immutable || one.Annotations[wellknown.VersionOfAnnotation] != "settings" {
			t.Errorf("the version is %+v", one)
		}

		w.configure("2")
		w.reads("before a release of the change", "web", one.Name)
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-cloneset"}}
		if w.HasObject(b); !meta.IsStatusConditionTrue(b.Status.Conditions, corefleet.ChangeAwaitsRelease) {
			t.Errorf("the change does not wait: %+v", b.Status.Conditions)
		}
		w.Quiet()
		r = w.release("r2", versioned)
		w.pass(20 * time.Second)
		w.expect("after the second release", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		two := w.version("2")
		w.reads("after the second release", "web", two.Name)
		writes := count(w.Quiet())
		for what, n := range map[string]int{"create configmaps": 1, "update configmaps": 1, "create releaserevisions": 1,
			"update clonesets": 0, "patch clonesets": 0} {
			if writes[what] != n {
				t.Errorf("%d × %s, want %d: %v", writes[what], what, n, writes)
			}
		}
		for _, m := range w.members {
			if m.server.Object(membertest.ConfigMap, "shop", one.Name) != nil {
				t.Errorf("%s has the version that no pod reads", m.name)
			}
		}
		w.pass(time.Minute)
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("written although nothing has changed: %q", writes)
		}

		w.set(r, releasev1alpha1.StateRollback)
		w.pass(30 * time.Second)
		w.expect("after the rollback", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack)
		w.reads("after the rollback", "web", one.Name)
	})
}

func TestAConfigMapOfAUserIsNotOverwrittenByAVersion(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		taken := settings("of a user")
		taken.Name = versionName("1")
		w.Make(taken)
		w.pass(time.Second)
		r := w.release("r1", versioned)
		w.pass(5 * time.Second)
		w.expect("with a ConfigMap in the way", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonConfigMapTaken)
		if w.HasObject(taken); taken.Data["value"] != "of a user" || len(taken.OwnerReferences) > 0 {
			t.Errorf("the ConfigMap of the user is %+v", taken)
		}
		w.pods("with a ConfigMap in the way", "web:2", 0, 0, 0)
	})
}

func TestTheHubReleasesAChangeOfAConfigMap(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		w.strategy("autoStart: {}\n" + versioned)
		var want []releasev1alpha1.ReleasePhase
		for i, value := range []string{"1", "2", "1"} {
			if i > 0 {
				w.configure(value)
			}
			w.pass(20 * time.Second)
			want = append(want, releasev1alpha1.ReleaseSucceeded)
			when := fmt.Sprintf("with the value %s (change %d)", value, i)
			w.expectPhases(when, want...)
			w.reads(when, "web", w.version(value).Name)
		}
	})
}

// Otherwise the first release of each new workload would replace all pods.
func TestANewWorkloadReadsVersionsFromTheStart(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		w.strategy(versioned)
		api := parsed(t, controllertest.CloneSet, "api", `replicas: 3, template: {spec: {containers: [{name: main,
			image: "api:1", envFrom: [{configMapRef: {name: absent}}]}], volumes: [{name: c, configMap: {name: settings}}]}}`)
		api.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "gray"})
		w.Make(claimed(api, policy("shop", "apps.kruise.io/v1alpha1", "CloneSet")))
		w.pass(10 * time.Second)
		w.reads("at the start", "api", w.version("1").Name)
		w.ownedBy(w.version("1"), "ReleaseRevision")
		waits := func() bool {
			b := &workv1alpha2.ResourceBinding{}
			if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "api-cloneset"}, b); err != nil {
				t.Fatal(err)
			}
			return meta.IsStatusConditionTrue(b.Status.Conditions, corefleet.ChangeAwaitsRelease)
		}
		if waits() {
			t.Error("a change waits at the start")
		}
		absent := settings("1")
		absent.Name = "absent"
		w.Make(absent)
		w.pass(5 * time.Second)
		if !waits() {
			t.Error("a ConfigMap that the pods lacked does not wait for a release")
		}
		w.reads("before a release", "api", w.version("1").Name)
	})
}

// condition returns the message of a condition of the binding of a workload if it has a status; empty if not.
func (w *releaseWorld) condition(workload, kind string, bad metav1.ConditionStatus) string {
	w.t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: workload + "-cloneset"}, b); err != nil {
		w.t.Fatal(err)
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, kind); c != nil && c.Status == bad {
		return c.Message
	}
	return ""
}

// apiReads creates a workload whose pods read the ConfigMap from the start.
func (w *releaseWorld) apiReads() {
	w.t.Helper()
	api := parsed(w.t, controllertest.CloneSet, "api", `replicas: 3, template: {spec: {containers: [{name: main,
		image: "api:1"}], volumes: [{name: c, configMap: {name: settings}}]}}`)
	api.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "gray"})
	w.Make(claimed(api, policy("shop", "apps.kruise.io/v1alpha1", "CloneSet")))
}

func TestANewWorkloadStartsWhenTheConfigMapInItsWayIsGone(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		w.strategy(versioned)
		taken := settings("of a user")
		taken.Name = versionName("1")
		w.Make(taken)
		w.apiReads()
		w.pass(10 * time.Second)
		if got := w.condition("api", workv1alpha2.WorksWritten, metav1.ConditionFalse); !strings.Contains(got,
			"ConfigMap shop/"+taken.Name) {
			t.Errorf("with a ConfigMap in the way, the binding reports %q", got)
		}
		if w.members[0].server.Object(controllertest.CloneSet, "shop", "api") != nil {
			t.Error("with a ConfigMap in the way, a member has the workload")
		}
		w.Gone(taken)
		w.pass(70 * time.Second)
		w.reads("without the ConfigMap", "api", w.version("1").Name)
		if got := w.condition("api", workv1alpha2.WorksWritten, metav1.ConditionFalse); got != "" {
			t.Errorf("without the ConfigMap, the binding reports %q", got)
		}
	})
}

func TestWorkloadsWaitForVersionsThatAreRefused(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		w.strategy(versioned)
		const path = "/api/v1/namespaces/shop/configmaps"
		w.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || r.URL.Path != path {
				return false
			}
			http.Error(rw, "exceeded quota", http.StatusForbidden)
			return true
		})
		before := len(w.Server.Requests("POST " + path))
		r := w.release("r1", versioned)
		w.apiReads()
		w.pass(5 * time.Minute)
		w.expect("with a quota", r, releasev1alpha1.ReleasePending, releasev1alpha1.ReasonConfigMapRefused)
		if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseProgressing); c == nil ||
			!strings.Contains(c.Message, "create ConfigMap") {
			t.Errorf("with a quota, the release reports %+v", c)
		}
		if got := w.condition("api", workv1alpha2.WorksWritten, metav1.ConditionFalse); !strings.Contains(got,
			"create ConfigMap") {
			t.Errorf("with a quota, the binding reports %q", got)
		}
		if n := len(w.Server.Requests("POST "+path)) - before; n > 40 {
			t.Errorf("the hub has tried %d times in 5 minutes", n)
		}
		w.pods("with a quota", "web:2", 0, 0, 0)
		w.Server.Behave(nil)
		w.pass(3 * time.Minute)
		w.expect("without a quota", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		w.reads("without a quota", "web", w.version("1").Name)
		w.reads("without a quota", "api", w.version("1").Name)
		if got := w.condition("api", workv1alpha2.WorksWritten, metav1.ConditionFalse); got != "" {
			t.Errorf("without a quota, the binding reports %q", got)
		}
	})
}

func TestAVersionThatWasDeletedIsMadeAgainOrReported(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleasedConfigWorld(t)
		missing := func() string { return w.condition("web", corefleet.ConfigMapMissing, metav1.ConditionTrue) }
		one := w.version("1")
		w.Gone(one)
		w.pass(10 * time.Second)
		w.reads("after it was deleted", "web", w.version("1").Name)
		w.ownedBy(w.version("1"), "ReleaseRevision")
		if got := missing(); got != "" {
			t.Errorf("after it was made again, the binding reports %q", got)
		}

		w.configure("2")
		w.Gone(w.version("1"))
		w.pass(10 * time.Second)
		if got := missing(); !strings.Contains(got, "shop/"+one.Name) {
			t.Errorf("while its content is gone, the binding reports %q", got)
		}
		w.Quiet()
		w.pass(time.Minute)
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("written while its content is gone: %q", writes)
		}
		w.configure("1")
		w.pass(10 * time.Second)
		w.reads("after its content is back", "web", w.version("1").Name)
		if got := missing(); got != "" {
			t.Errorf("after its content is back, the binding reports %q", got)
		}
	})
}

// The pods that exist keep what they read, and a new number of them or another image must reach the members.
func TestAWorkloadIsWrittenThoughALostVersionIsRefused(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleasedConfigWorld(t)
		const path = "/api/v1/namespaces/shop/configmaps"
		w.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || r.URL.Path != path {
				return false
			}
			http.Error(rw, "exceeded quota", http.StatusForbidden)
			return true
		})
		w.Gone(w.version("1"))
		w.pass(10 * time.Second)
		web := &unstructured.Unstructured{}
		web.SetGroupVersionKind(controllertest.CloneSet.GroupVersionKind)
		web.SetNamespace("shop")
		web.SetName("web")
		controllertest.Change(w.Hub, web, func(u *unstructured.Unstructured) {
			fields.Object(u.Object, "spec")["minReadySeconds"] = int64(7)
		})
		w.pass(5 * time.Minute)
		for _, m := range w.members {
			u := m.server.Object(controllertest.CloneSet, "shop", "web")
			if got := fields.Object(u.Object, "spec")["minReadySeconds"]; got != int64(7) {
				t.Errorf("with a quota, %s has the minReadySeconds %v", m.name, got)
			}
		}
		missing := func() string { return w.condition("web", corefleet.ConfigMapMissing, metav1.ConditionTrue) }
		if got := missing(); !strings.Contains(got, "create ConfigMap") {
			t.Errorf("with a quota, the binding reports %q", got)
		}
		events := 0
		for _, e := range w.Events() {
			if strings.Contains(e, "create ConfigMap") {
				events++
			}
		}
		if events != 2 {
			t.Errorf("with a quota, %d events are recorded, want one for the workload and one for its binding", events)
		}
		w.Server.Behave(nil)
		w.pass(70 * time.Second)
		if got := missing(); got != "" {
			t.Errorf("without a quota, the binding reports %q", got)
		}
		w.reads("without a quota", "web", w.version("1").Name)
	})
}

// A ConfigMap that an override policy selects has no versions, so its pods would change.
func TestAnOverridePolicyOfAConfigMapWaitsForARelease(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleasedConfigWorld(t)
		waits := func() bool { return w.condition("web", corefleet.ChangeAwaitsRelease, metav1.ConditionTrue) != "" }
		if waits() {
			t.Fatal("after the release, a change waits")
		}
		o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}}
		o.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap",
			Namespace: "shop", Name: "settings"}}
		o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{}}
		w.Make(o)
		w.pass(3 * time.Second)
		if !waits() {
			t.Error("with the policy, no change waits for a release")
		}
		w.reads("with the policy", "web", w.version("1").Name)
		w.Gone(o)
		w.pass(3 * time.Second)
		if waits() {
			t.Error("without the policy, a change waits")
		}
	})
}
