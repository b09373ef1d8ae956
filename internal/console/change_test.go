package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/simulate"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/rollout"
	"github.com/argosy-io/argosy/internal/why"
)

// changing returns an API whose users read and write hub, unless refused is a verb that they lack.
func changing(t *testing.T, g grants, refused string, objs ...client.Object) (*API, client.Client) {
	t.Helper()
	hub := fake.NewClientBuilder().WithScheme(why.Scheme()).WithObjects(objs...).Build()
	forbidden := func(verb string, obj client.Object) error {
		if verb != refused {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Group: obj.GetObjectKind().GroupVersionKind().Group,
			Resource: strings.ToLower(obj.GetObjectKind().GroupVersionKind().Kind) + "s"}, obj.GetName(), errors.New("no"))
	}
	a := newTestAPI(t, g)
	a.connect = func(config *rest.Config, _ meta.RESTMapper) (client.Client, error) {
		if config.Impersonate.UserName != "alice" {
			t.Errorf("the API acts as %q", config.Impersonate.UserName)
		}
		return interceptor.NewClient(hub, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
				opts ...client.GetOption) error {
				if err := forbidden("get", obj); err != nil {
					return err
				}
				return c.Get(ctx, key, obj, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if err := forbidden("create", obj); err != nil {
					return err
				}
				return c.Create(ctx, obj, opts...)
			}}), nil
	}
	return a, hub
}

func deployment() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"replicas": int64(2)}}}
	u.SetNamespace("shop")
	u.SetName("web")
	return u
}

func TestActionsNameTheRightThatIsMissing(t *testing.T) {
	a, _ := changing(t, grants{"patch deployments shop": true}, "", deployment())
	w := a.request(t, alice, "GET", actionsPath+"?kind=Deployment.apps&namespace=shop&name=web", "")
	var got []action
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got) != 3 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	scale := got[0]
	if scale.Missing == nil || scale.Missing.Error() != "you may not patch deployments.apps/scale in namespace shop" ||
		scale.Path != "k8s/apis/apps/v1/namespaces/shop/deployments/web/scale" || *scale.Replicas != 2 {
		t.Errorf("scale is %+v", scale)
	}
	for _, one := range got[1:] {
		if one.Missing != nil || one.Path != "k8s/apis/apps/v1/namespaces/shop/deployments/web" {
			t.Errorf("%s is %+v", one.Name, one)
		}
	}
	a, _ = changing(t, grants{}, "get", deployment())
	w = a.request(t, alice, "GET", actionsPath+"?kind=Deployment.apps&namespace=shop&name=web", "")
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"missing":{"verb":"get"`) {
		t.Errorf("a user who may not get it got %d %s", w.Code, w.Body)
	}
}

// A text without an end costs about as much as a few reads of it: each line of it is tried in none.
func TestInvalidTextIsRefusedSoon(t *testing.T) {
	for head, wantLine := range map[string]string{"{": "line 29", "k: [": "line 29", "k: {": "line 29", "- [": "line 29"} {
		text := head + "\n" + strings.Repeat(strings.Repeat("a: b, ", 128<<10/6/297)+"\n", 297)
		start := time.Now()
		_, err := parse(text)
		took := time.Since(start)
		if err == nil || !strings.HasPrefix(err.Error(), wantLine) {
			t.Errorf("%q gave %v", head, err)
		}
		start = time.Now()
		_, _ = yaml.YAMLToJSONStrict([]byte(text))
		if once := time.Since(start); took > 10*once+time.Second {
			t.Errorf("%q took %v, and %v to read once", head, took, once)
		}
	}
}

// A stage, or the steps of a Kruise Rollout, that wait for a person are approved for the revision that was read.
func TestActionsApproveWhatWaits(t *testing.T) {
	const query = "?kind=Deployment.apps&namespace=shop&name=web"
	staged := deployment()
	staged.SetGeneration(7)
	staged.SetAnnotations(map[string]string{wellknown.RolloutOrderAnnotation: "Stages"})
	waiting := binding("Deployment", "shop", "web", "c1")
	waiting.Status.Conditions = []metav1.Condition{{Type: fleet.StagesCompleted, Status: metav1.ConditionFalse,
		Reason: "Stage1Of3WaitingForApproval", ObservedGeneration: 7}}
	approve := func(a *API) *action {
		t.Helper()
		var all []action
		w := a.request(t, alice, "GET", actionsPath+query, "")
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		if i := slices.IndexFunc(all, func(one action) bool { return one.Name == "approve" }); i >= 0 {
			return &all[i]
		}
		return nil
	}
	a, hub := changing(t, grants{"patch deployments shop": true}, "", staged, waiting)
	stored := deployment()
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(staged), stored); err != nil {
		t.Fatal(err)
	}
	revision := fleet.RevisionOf(stored)
	one := approve(a)
	if one == nil || one.Missing != nil || one.Command != "argosy rollout approve deployment web -n shop" ||
		one.About != "stage 1 of 3 is complete and waits for an approval" {
		t.Fatalf("the action is %+v", one)
	}
	raw, _ := json.Marshal(one.Patch)
	want := `"annotations":{"argosy.io/rollout-stage":"{\"stage\":1,\"revision\":\"` + revision + `\"}"}`
	if !strings.Contains(string(raw), want) || !strings.Contains(string(raw), `"resourceVersion":"999"`) {
		t.Errorf("the patch is %s", raw)
	}
	a, _ = changing(t, grants{}, "", staged, waiting)
	if one = approve(a); one == nil || one.Missing == nil || one.Missing.Verb != "patch" {
		t.Errorf("without the right to patch, the action is %+v", one)
	}
	older := waiting.DeepCopy()
	older.Status.Conditions[0].ObservedGeneration = 6
	for name, b := range map[string]*workv1alpha2.ResourceBinding{"of an older template": older,
		"of a binding without stages": binding("Deployment", "shop", "web", "c1")} {
		if a, _ = changing(t, grants{}, "", staged, b); approve(a) != nil {
			t.Errorf("the stage %s can be approved", name)
		}
	}

	steps := &unstructured.Unstructured{}
	steps.SetGroupVersionKind(rollout.Kind.WithVersion("v1beta1"))
	b := binding("Rollout", "shop", "web", "c1")
	b.Status.AggregatedStatus[0].Status = &runtime.RawExtension{Raw: []byte(
		`{"canaryStatus":{"currentStepIndex":2,"currentStepState":"StepPaused","canaryRevision":"abc"}}`)}
	got := approval(steps, b)
	if got == nil || got.About != "c1" {
		t.Fatalf("the steps that wait are %+v", got)
	}
	if raw, _ := json.Marshal(got.Patch); !strings.Contains(string(raw), `{\"c1\":{\"step\":2,\"revision\":\"abc\"}}`) {
		t.Errorf("the patch is %s", raw)
	}
	b.Status.AggregatedStatus[0].Status.Raw = []byte(`{"canaryStatus":{"currentStepState":"StepUpgrade"}}`)
	if got := approval(steps, b); got != nil {
		t.Errorf("steps that do not wait can be approved: %+v", got)
	}
}

// send sends a change and returns the answer.
func (a *API) sendChange(t *testing.T, yaml string, apply bool) (outcome, int) {
	t.Helper()
	body, _ := json.Marshal(changeRequest{yaml, apply})
	w := a.request(t, alice, "POST", changePath, string(body))
	var out outcome
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return out, w.Code
}

func TestChangeIsCheckedSimulatedAndThenMade(t *testing.T) {
	a, hub := changing(t, grants{}, "")
	a.Simulate = func(_ context.Context, hub *rest.Config, objects []*unstructured.Unstructured) (simulate.Report, error) {
		if hub.Impersonate.UserName != "alice" || len(objects) != 1 || objects[0].GetName() != "settings" {
			t.Errorf("%q simulates %v", hub.Impersonate.UserName, objects)
		}
		return simulate.Report{Summary: simulate.Summary{Unplaced: 1}, Warnings: []string{"another is lost"},
			Workloads: []simulate.Workload{{Name: "same"}, {Name: "another", Problem: "it does not fit", Unplaced: 1},
				{Name: "new", After: simulate.Placed{Replicas: 1}}}}, nil
	}
	const text = "apiVersion: v1\nkind: Secret\nmetadata: {name: settings, namespace: shop}\nstringData: {color: blue}\n"
	out, _ := a.sendChange(t, text, false)
	if o := out.Objects[0]; o.Result != "created" || len(o.Diff) == 0 ||
		strings.Contains(strings.Join(o.Diff, " "), "blue") || out.Applied || out.WhatIf == nil ||
		len(out.WhatIf.Workloads) != 1 || out.WhatIf.Summary.Unplaced > 0 || len(out.WhatIf.Warnings) > 0 {
		t.Errorf("the check gives %+v", out)
	}
	key := client.ObjectKey{Namespace: "shop", Name: "settings"}
	if err := hub.Get(t.Context(), key, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the check wrote the object: %v", err)
	}
	if out, _ = a.sendChange(t, text, true); !out.Applied {
		t.Errorf("applying gives %+v", out)
	}
	if err := hub.Get(t.Context(), key, &corev1.Secret{}); err != nil {
		t.Error(err)
	}
	out, _ = a.sendChange(t, text, true)
	if out.Applied || out.Objects[0].Error != "an object of this name exists: open that object to edit it" {
		t.Errorf("creating it again gives %+v", out)
	}
}

// The warnings of the API server are shown with the object that they are about.
func TestCheckShowsTheWarningsOfTheAPIServer(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Query().Get("dryRun") == "All" {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"old"`)) {
				w.Header().Add("Warning", `299 - "this field is deprecated"`)
				w.Header().Add("Warning", `299 - "spec.selector: not set; stored as the labels"`)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}
	}))
	defer hub.Close()
	a := newTestAPI(t, grants{})
	a.Config = &rest.Config{Host: hub.URL}
	a.connect = func(config *rest.Config, mapper meta.RESTMapper) (client.Client, error) {
		return client.New(config, client.Options{Scheme: why.Scheme(), Mapper: mapper})
	}
	a.Simulate = func(context.Context, *rest.Config, []*unstructured.Unstructured) (simulate.Report, error) {
		return simulate.Report{}, nil
	}
	out, _ := a.sendChange(t, "{apiVersion: v1, kind: Secret, metadata: {name: old, namespace: shop}}\n---\n"+
		"{apiVersion: v1, kind: Secret, metadata: {name: new, namespace: shop}}", false)
	if len(out.Objects) != 2 || !slices.Equal(out.Objects[0].Warnings, []string{"this field is deprecated",
		"spec.selector: not set; stored as the labels"}) || len(out.Objects[1].Warnings) > 0 {
		t.Errorf("the check gives %+v", out.Objects)
	}
}

func TestChangeDoesNotOverwriteThatOfSomebodyElse(t *testing.T) {
	stored := deployment()
	stored.SetAnnotations(map[string]string{wellknown.ChangedByAnnotation: "bob"})
	a, hub := changing(t, grants{}, "", stored)
	w := a.request(t, alice, "GET", objectPath+"?kind=Deployment.apps&namespace=shop&name=web", "")
	var opened struct{ YAML string }
	if err := json.Unmarshal(w.Body.Bytes(), &opened); err != nil || !strings.Contains(opened.YAML, "resourceVersion") ||
		strings.Contains(opened.YAML, wellknown.ChangedByAnnotation) {
		t.Fatalf("%v: %s", err, w.Body)
	}
	edited := strings.Replace(opened.YAML, "replicas: 2", "replicas: 5", 1)
	out, _ := a.sendChange(t, edited, false)
	if o := out.Objects[0]; o.Result != "updated" || len(o.Diff) != 1 || o.Diff[0] != "spec.replicas: 2 → 5" {
		t.Errorf("the check gives %+v", out)
	}
	other := deployment()
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Fatal(err)
	}
	other.SetLabels(map[string]string{"by": "bob"})
	if err := hub.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	out, _ = a.sendChange(t, edited, true)
	if o := out.Objects[0]; out.Applied || !strings.Contains(o.Error, "another user") {
		t.Errorf("the update gives %+v", out)
	}
}

func cloneSet(replicas int64, podsToDelete ...any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
		"spec": map[string]any{"replicas": replicas}}}
	u.SetNamespace("shop")
	u.SetName("web")
	if len(podsToDelete) > 0 {
		u.Object["spec"].(map[string]any)["scaleStrategy"] = map[string]any{"podsToDelete": podsToDelete}
	}
	return u
}

func TestNameThatIsAPathIsRefused(t *testing.T) {
	a, _ := changing(t, grants{}, "", deployment())
	for _, query := range []string{"namespace=shop&name=../x", "namespace=shop&name=..", "namespace=a/b&name=web"} {
		for _, at := range []string{objectPath, whyPath, pastPath, releasePath} {
			if w := a.request(t, alice, "GET", at+"?kind=Deployment.apps&"+query, ""); w.Code != 400 {
				t.Errorf("%s?%s: %d %s", at, query, w.Code, w.Body)
			}
		}
	}
}

func TestCloneSetIsOpenedWithoutAPod(t *testing.T) {
	a, hub := changing(t, grants{}, "", cloneSet(3, "web-a"), deployment())
	open := func(kind, query string) (code int, yaml string) {
		w := a.request(t, alice, "GET", objectPath+"?kind="+kind+"&namespace=shop&name=web"+query, "")
		var opened struct{ YAML string }
		if err := json.Unmarshal(w.Body.Bytes(), &opened); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		return w.Code, opened.YAML
	}
	_, text := open("CloneSet.apps.kruise.io", "&deletePod=web-b&fewer=1")
	out, _ := a.sendChange(t, text, false)
	if got := strings.Join(out.Objects[0].Diff, "; "); !strings.Contains(got, "spec.replicas: 3 → 2") ||
		!strings.Contains(got, "web-b") {
		t.Errorf("the change is %s (%+v)", got, out)
	}
	stored := cloneSet(0)
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(stored.Object, "spec", "replicas"); n != 3 {
		t.Errorf("the stored object has %d replicas", n)
	}
	_, replaced := open("CloneSet.apps.kruise.io", "&deletePod=web-b")
	if !strings.Contains(replaced, "replicas: 3") || !strings.Contains(replaced, "- web-a\n    - web-b") {
		t.Errorf("to be replaced, the pod is named in\n%s", replaced)
	}
	for kind, pod := range map[string]string{"CloneSet.apps.kruise.io": "a:b", "Deployment.apps": "web-b"} {
		if code, text := open(kind, "&deletePod="+pod); code != http.StatusBadRequest || text != "" {
			t.Errorf("%s with pod %s: %d %s", kind, pod, code, text)
		}
	}
}

func TestChangeShowsTheManifestsThatOverridesMakeDifferent(t *testing.T) {
	over := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "more"},
		Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu"}},
			Overriders: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/replicas",
				Operator: policyv1alpha1.OverriderOpReplace, Value: apiextensionsv1.JSON{Raw: []byte("7")}}}}}}}}
	a, _ := changing(t, grants{}, "", deployment(), over,
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "us"}})
	a.Simulate = func(context.Context, *rest.Config, []*unstructured.Unstructured) (simulate.Report, error) {
		return simulate.Report{Workloads: []simulate.Workload{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
			Name: "web", After: simulate.Placed{Clusters: []workv1alpha2.TargetCluster{{Name: "eu"}, {Name: "us"}}}}}}, nil
	}
	w := a.request(t, alice, "GET", objectPath+"?kind=Deployment.apps&namespace=shop&name=web", "")
	var opened struct{ YAML string }
	if err := json.Unmarshal(w.Body.Bytes(), &opened); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(opened.YAML, "replicas: 2", "paused: true\n  replicas: 5", 1)
	out, _ := a.sendChange(t, text, false)
	got := out.Objects[0].Clusters
	if len(got) != 1 || got[0].Cluster != "eu" || !slices.Equal(got[0].Diff, []string{"spec.paused: none → true"}) {
		t.Errorf("eu, where replicas are overridden, gets %+v; all: %q", got, out.Objects[0].Diff)
	}
}

func TestChangeNeedsTheUsersRights(t *testing.T) {
	a, _ := changing(t, grants{}, "create")
	out, _ := a.sendChange(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop}}", true)
	if o := out.Objects[0]; out.Applied || o.Missing == nil || o.Missing.Verb != "create" || o.Error !=
		"you may not create secrets in namespace shop" {
		t.Errorf("it gives %+v", out)
	}
}

func TestInvalidChangeIsRefused(t *testing.T) {
	a, _ := changing(t, grants{}, "")
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	for text, want := range map[string]string{
		"": "no object", "# only a comment\n---\n": "no object",
		"{kind: Secret, kind: Pod}":                                              `line 1 is not valid YAML: key "kind" already set`,
		"\n---\n# a\n{apiVersion: v1, kind: Secret}":                             "begins at line 4 has no metadata.name",
		"kind: Secret":                                                           "begins at line 1 has no apiVersion",
		secret + strings.Repeat("a: [b,\n c]\n", 1) + "d: e: f\ng: h\n":          "line 6 is not valid YAML: mapping",
		strings.Repeat("# more than is searched\n", 1000) + secret + "a: b: c\n": "line 1004 is not valid YAML",
		secret + strings.Repeat("# more\n", 400) + "a:\n- b: [c,\n   d]\n- 'e\n": "line 407 is not valid YAML",
		"just words": "line 1 begins no object",
		"{apiVersion: v1, kind: List, items: []}":                                                  "line 1 begins a list",
		secret + "---\n" + secret + "---\na: [":                                                    "line 9 is not valid YAML: did not find",
		secret + "---\n" + secret + "data:\n\ta: eA==\n":                                           "line 9 is not valid YAML: found character",
		secret + "--- # next\nkind: Pod\na: b: c\n":                                                "line 6 is not valid YAML: mapping values are not allowed",
		"kind: Pod\nmetadata:\n  name: a\n wrong: true\n":                                          "line 4 is not valid YAML: did not find expected key",
		strings.Repeat("{apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\n", maxObjects+1): "up to 20",
	} {
		body, _ := json.Marshal(changeRequest{YAML: text})
		w := a.request(t, alice, "POST", changePath, string(body))
		var status metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil || w.Code != http.StatusUnprocessableEntity ||
			!strings.Contains(status.Message, want) {
			t.Errorf("%.60q gave %d %s, want %q", text, w.Code, w.Body, want)
		}
	}
	out, _ := a.sendChange(t, "{apiVersion: example.com/v1, kind: Unknown, metadata: {name: a}}", false)
	if out.Objects[0].Error != "the hub does not serve Unknown of example.com/v1" || out.WhatIf != nil {
		t.Errorf("an unknown kind gives %+v", out)
	}
}
