package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
)

// identityOf returns what identifies an object. It does not use the code under test.
func identityOf(u *unstructured.Unstructured) string {
	group, _, grouped := strings.Cut(fmt.Sprint(u.Object["apiVersion"]), "/")
	if !grouped {
		group = ""
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	namespace := metadata["namespace"]
	if namespace == "" {
		namespace = nil // the same to everybody
	}
	return fmt.Sprintf("%q %q %#v %#v", group, u.Object["kind"], namespace, metadata["name"])
}

// anything is a tier of scripts and webhooks that answer as they like.
type anything struct {
	revise, retain, aggregate func(*unstructured.Unstructured) *unstructured.Unstructured
}

func (a anything) Find(_ schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpret.Implementation {
	hooks := &interpret.Hooks{
		Revise: func(_ context.Context, obj *unstructured.Unstructured, _ int32) (*unstructured.Unstructured, error) {
			return a.revise(obj.DeepCopy()), nil
		},
		Retain: func(_ context.Context, desired, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return a.retain(desired.DeepCopy()), nil
		},
		Aggregate: func(_ context.Context, template *unstructured.Unstructured,
			_ []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			return a.aggregate(template.DeepCopy()), nil
		},
	}
	return interpret.Implementation{Evaluate: hooks.Evaluate(operation)}
}

const divided = "replicas: 5\nplacement: {replicaScheduling: {replicaSchedulingType: Divided}}\nclusters: [{name: eu, replicas: 5}]"

func TestOverridesCannotReachAnotherObject(t *testing.T) {
	other := func(field ...string) func(*unstructured.Unstructured) *unstructured.Unstructured {
		return func(u *unstructured.Unstructured) *unstructured.Unstructured {
			_ = unstructured.SetNestedField(u.Object, "other", field...)
			return u
		}
	}
	for _, field := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		change, named := other(field...), strings.Join(field, ".")
		i := interpret.New(anything{change, change, change})

		results := dispatch.Works(t.Context(), input(t, deployment, divided), i)
		if len(results) != 1 || results[0].Err == nil || results[0].Work != nil ||
			!strings.Contains(results[0].Err.Error(), `create the work of Deployment shop/web for cluster "eu"`) ||
			!strings.Contains(results[0].Err.Error(), named) {
			t.Errorf("revised to another %s: %+v", named, results)
		}
		in := input(t, deployment, divided)
		in.Convert = func(m *unstructured.Unstructured, _ []string) (*unstructured.Unstructured, error) {
			return change(m.DeepCopy()), nil
		}
		in.Clusters["eu"].Status = serving("apps/v1", "Deployment")
		results = dispatch.Works(t.Context(), in, interpret.New(builtin.Tier()))
		if len(results) != 1 || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), named) {
			t.Errorf("converted to another %s: %+v", named, results)
		}
		if got, err := i.Aggregate(t.Context(), object(t, deployment), nil); err == nil || got != nil ||
			!strings.Contains(err.Error(), "Deployment shop/web") {
			t.Errorf("a status aggregated onto another %s: %v, %v", named, got, err)
		}
		w := works(t, input(t, deployment, divided))["eu"]
		observed := manifest(t, w)
		if got, err := execute.Desired(w, observed, func(desired, _ *unstructured.Unstructured) (*unstructured.Unstructured,
			error) {
			return change(desired.DeepCopy()), nil
		}); err == nil || got != nil || !strings.Contains(err.Error(), named) {
			t.Errorf("retained as another %s: %v, %v", named, got, err)
		}
	}
}

func TestTemplateCannotSetOwnershipInMember(t *testing.T) {
	foreign := map[string]string{
		"work.karmada.io/namespace": "karmada-es-us", "work.karmada.io/name": "other",
		"work.karmada.io/permanent-id": "w-other", "karmada.io/managed": "false",
		"resourcebinding.karmada.io/namespace": "bank", "resourcebinding.karmada.io/name": "other",
		"resourcebinding.karmada.io/permanent-id": "b-other",
		"clusterresourcebinding.karmada.io/name":  "other", "clusterresourcebinding.karmada.io/permanent-id": "b-other",
		"resourcetemplate.karmada.io/uid": "u-other", "resourcetemplate.karmada.io/generation": "99",
		"resourcetemplate.karmada.io/managed-annotations": "a", "resourcetemplate.karmada.io/managed-labels": "a",
		"argosy.io/manifest-work": "other", "argosy.io/template-suspends": "true",
	}
	clean := manifest(t, works(t, input(t, configMap, "clusters: [{name: eu}]"))["eu"])
	var patch []policyv1alpha1.PlaintextOverrider
	for _, in := range []string{"labels", "annotations"} {
		raw, err := json.Marshal(foreign)
		if err != nil {
			t.Fatal(err)
		}
		patch = append(patch, addition("/metadata/"+in, string(raw)))
	}
	stored := plaintext(patch...)

	byTemplate := input(t, configMap, "clusters: [{name: eu}]")
	labels := map[string]string{"app": "web"}
	for key, value := range foreign {
		labels[key] = value
	}
	byTemplate.Template.SetLabels(labels)
	byTemplate.Template.SetAnnotations(foreign)
	byOverride := input(t, configMap, "clusters: [{name: eu}]")
	byOverride.Overrides = []policyv1alpha1.Override{stored}
	for what, in := range map[string]dispatch.Input{"a template": byTemplate, "an override": byOverride} {
		w := works(t, in)["eu"]
		got := manifest(t, w)
		for key := range foreign {
			if is, want := got.GetLabels()[key], clean.GetLabels()[key]; is != want {
				t.Errorf("%s has label %s=%q, want %q", what, key, is, want)
			}
			if key == "resourcetemplate.karmada.io/managed-labels" {
				continue // lists what came along, app of the template
			}
			if is, want := got.GetAnnotations()[key], clean.GetAnnotations()[key]; is != want {
				t.Errorf("%s has annotation %s=%q, want %q", what, key, is, want)
			}
		}
		for key := range foreign {
			if strings.Contains(w.Annotations[key]+w.Labels[key], "other") {
				t.Errorf("%s marks its Work with %s", what, key)
			}
		}
	}
}

// sent returns a template on its way: divided by what somebody wrote, overridden, converted, and merged with what the
// member has.
func sent(t testing.TB, template string, policy policyv1alpha1.Override,
	change func(*unstructured.Unstructured) *unstructured.Unstructured) (*unstructured.Unstructured,
	*unstructured.Unstructured) {
	t.Helper()
	in := input(t, template, divided)
	in.Clusters["eu"].Status = serving("apps/v1", "Deployment")
	in.Convert = func(m *unstructured.Unstructured, _ []string) (*unstructured.Unstructured, error) {
		return change(m.DeepCopy()), nil
	}
	in.Overrides = []policyv1alpha1.Override{policy}
	wanted := in.Template
	if m := fields.Object(in.Template.Object, "spec", "manifest"); in.Template.GetKind() == "EnclosedManifest" &&
		m != nil {
		wanted = &unstructured.Unstructured{Object: m}
	}
	i := interpret.New(anything{change, change, change})
	for _, r := range dispatch.Works(context.Background(), in, i) {
		if r.Err != nil {
			continue
		}
		desired, err := execute.Desired(r.Work, manifest(t, r.Work),
			func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return i.Retain(context.Background(), desired, observed)
			})
		if err == nil {
			return wanted, desired
		}
	}
	return wanted, nil
}

// plaintext returns a policy with the operations, as it may have been stored before admission refused some.
func plaintext(operations ...policyv1alpha1.PlaintextOverrider) policyv1alpha1.Override {
	p := &policyv1alpha1.ClusterOverridePolicy{}
	p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{
		{Overriders: policyv1alpha1.Overriders{Plaintext: operations}},
	}
	return p
}

func addition(path, value string) policyv1alpha1.PlaintextOverrider {
	return policyv1alpha1.PlaintextOverrider{Path: path, Operator: policyv1alpha1.OverriderOpAdd,
		Value: apiextensionsv1.JSON{Raw: []byte(value)}}
}

// serving returns the status of a cluster that serves one kind.
func serving(groupVersion, kind string) clusterv1alpha1.ClusterStatus {
	return clusterv1alpha1.ClusterStatus{APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: groupVersion,
		Resources: []clusterv1alpha1.APIResource{{Kind: kind}}}}}
}

// reachesAsItself holds what is promised of all doors: what reaches a member is the template, marked as the Work's.
func reachesAsItself(t testing.TB, template string, policy policyv1alpha1.Override,
	change func(*unstructured.Unstructured) *unstructured.Unstructured) bool {
	t.Helper()
	wanted, got := sent(t, template, policy, change)
	if got == nil {
		return false
	}
	if identityOf(got) != identityOf(wanted) {
		t.Fatalf("%s reached the member as %s", identityOf(wanted), identityOf(got))
	}
	w := workOf(got)
	if !execute.Owns(w, got) || got.GetOwnerReferences() != nil || got.GetFinalizers() != nil || got.GetUID() != "" {
		t.Fatalf("what reached the member is marked as %v", got.Object["metadata"])
	}
	return true
}

// workOf returns the Work that the object's template has in cluster eu, as far as marks go.
func workOf(u *unstructured.Unstructured) *workv1alpha1.Work {
	w := &workv1alpha1.Work{}
	w.Namespace, w.Name = "karmada-es-eu", u.GetAnnotations()[workv1alpha2.WorkNameAnnotation]
	return w
}

var (
	onTheirWay = []string{configMap, deployment, enclosing,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:reader"}, rules: []}`}
	places = []string{"", "/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace", "/metadata/labels",
		"/metadata/annotations", "/metadata/ownerReferences",
		"/metadata/finalizers", "/metadata/labels/karmada.io~1managed", "/metadata/annotations/work.karmada.io~1name",
		"/spec", "/data", "/status", "/spec/manifest/kind"}
	words = []string{`"other"`, `"kube-system"`, `"v1"`, `"apps/v1beta1"`, `"rbac.authorization.k8s.io/v1"`,
		`"ClusterRoleBinding"`, `null`, `1`, `{}`, `[]`, `{"name":"web"}`,
		`{"work.karmada.io/name":"other","karmada.io/managed":"false"}`,
		`[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"y"}]`, `["f"]`}
)

// patched changes an object as a script, a webhook or a conversion may: it sets one place to a value.
func patched(place, word string) func(*unstructured.Unstructured) *unstructured.Unstructured {
	return func(u *unstructured.Unstructured) *unstructured.Unstructured {
		var value any
		if utiljson.Unmarshal([]byte(word), &value) != nil {
			return u
		}
		var at []string
		for _, key := range strings.Split(strings.TrimPrefix(place, "/"), "/") {
			at = append(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
		}
		_ = unstructured.SetNestedField(u.Object, value, at...)
		return u
	}
}

func TestOverridesKeepIdentityOfTemplate(t *testing.T) {
	cases := 5000
	if testing.Short() {
		cases = 500
	}
	r := rand.New(rand.NewSource(2))
	pick := func(list []string) string { return list[r.Intn(len(list))] }
	reached := 0
	for range cases {
		if reachesAsItself(t, pick(onTheirWay), plaintext(addition(pick(places), pick(words))),
			patched(pick(places), pick(words))) {
			reached++
		}
	}
	if reached < cases/50 {
		t.Errorf("only %d of %d reached a member: this test looks at too little", reached, cases)
	}
}

func FuzzWhateverUsersSayATemplateReachesAMemberAsItself(f *testing.F) {
	for i, place := range places {
		f.Add(uint8(i), place, words[i%len(words)], "/spec", "{}")
		f.Add(uint8(i), "/metadata/labels/a", `"b"`, place, words[(i+3)%len(words)])
	}
	f.Fuzz(func(t *testing.T, template uint8, place, word, changed, to string) {
		reachesAsItself(t, onTheirWay[int(template)%len(onTheirWay)], plaintext(addition(place, word)),
			patched(changed, to))
	})
}
