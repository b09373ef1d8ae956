package override_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/override"
)

func TestOverrideNeverChangesIdentity(t *testing.T) {
	const grant = `{path: /apiVersion, operator: replace, value: rbac.authorization.k8s.io/v1}, {path: /kind, operator: replace, value: ClusterRoleBinding}`
	for _, c := range []struct{ what, overriders, want string }{
		{"another group", "plaintext: [" + grant + "]",
			`plaintext[0]: replace "/apiVersion": apiVersion of Deployment.apps shop/web would become "rbac.authorization.k8s.io/v1"`},
		{"another kind", "plaintext: [{path: /spec/replicas, operator: replace, value: 1}, {path: /kind, operator: add, value: DaemonSet}]", `plaintext[1]: add "/kind": kind of Deployment.apps shop/web would become "DaemonSet"`},
		{"another name", "plaintext: [{path: /metadata/name, operator: replace, value: db}]",
			`metadata.name of Deployment.apps shop/web would become "db"`},
		{"another namespace", "plaintext: [{path: /metadata/namespace, operator: replace, value: bank}]",
			`metadata.namespace of Deployment.apps shop/web would become "bank"`},
		{"no namespace", "plaintext: [{path: /metadata/namespace, operator: remove}]",
			`metadata.namespace of Deployment.apps shop/web would become empty`},
		{"other metadata", "plaintext: [{path: /metadata, operator: replace, value: {name: web, namespace: bank}}]",
			`metadata.namespace of Deployment.apps shop/web would become "bank"`},
		{"another document", `plaintext: [{path: "", operator: replace, value: {apiVersion: v1, kind: Secret, metadata: {name: x}}}]`, `apiVersion of Deployment.apps shop/web would become "v1"`},
		{"away and back", "plaintext: [{path: /metadata/name, operator: replace, value: db}, {path: /metadata/name, operator: replace, value: web}]", `plaintext[0]: replace "/metadata/name"`},
		{"a kind by an image", "imageOverrider: [{predicate: {path: /kind}, component: Repository, operator: replace, value: DaemonSet}]", `imageOverrider[0]: kind of Deployment.apps shop/web would become "DaemonSet"`},
		{"a group by an image", "imageOverrider: [{predicate: {path: /apiVersion}, component: Repository, operator: replace, value: x/v1}]", `imageOverrider[0]: apiVersion of Deployment.apps shop/web would become "x/v1"`},
		{"a name by an image", "imageOverrider: [{predicate: {path: /metadata/name}, component: Tag, operator: add, value: x}]", `imageOverrider[0]: metadata.name of Deployment.apps shop/web would become "web:x"`},
		{"a name by a field", "fieldOverrider: [{fieldPath: /metadata/name, yaml: [{subPath: '', operator: replace, value: db}]}]", `fieldOverrider[0]: metadata.name of Deployment.apps shop/web would become "db\n"`},
	} {
		for _, namespace := range []string{"", "shop"} {
			_, _, err := override.Apply(object(t, deployment), cluster("eu"),
				[]policyv1alpha1.Override{op(t, namespace, "p", rule(c.overriders))})
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "spec.overrideRules[0].overriders.") {
				t.Errorf("%s, in namespace %q: got %v, want %s", c.what, namespace, err, c.want)
			}
		}
	}
	got, _, err := override.Apply(object(t, deployment), cluster("eu"),
		[]policyv1alpha1.Override{op(t, "shop", "p",
			rule("plaintext: [{path: /apiVersion, operator: replace, value: apps/v1beta2}]"))})
	if err != nil || got.GetAPIVersion() != "apps/v1beta2" {
		t.Errorf("another version of the same group: %v, %v", got, err)
	}
}

func TestReaches(t *testing.T) {
	for path, reaches := range map[string]bool{
		"": true, "/apiVersion": true, "/apiVersion/": true, "/kind": true, "/kind/x": true, "/metadata": true,
		"/metadata/": true, "/metadata/name": true,
		"/metadata/name/": true, "/metadata/namespace": true, "/metadata/namespace/x": true,
		"/": false, "//kind": false, "kind": false, "/~0kind": false, "/meta~1data/name": false, "/metadata/labels": false,
		"/metadata/annotations": false,
		"/metadata/labels/name": false, "/metadata/generateName": false, "/spec/metadata/name": false, "/spec": false,
		"/kinds": false, "/metadata//name": false,
	} {
		if got := override.Reaches(path); (got != "") != reaches {
			t.Errorf("%q reaches %q, want something: %v", path, got, reaches)
		}
	}
}

var templates = []string{
	deployment,
	`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {a.yaml: "b: {c: 1}", a.json: '{"b": [1]}'}}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:reader", labels: {a: b}, annotations: {c: d}}, rules: []}`,
	`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: shop}, spec: {template: {spec: {containers: [{name: main, image: "a:1"}]}}}}`,
}

// identityOf is what makes an object this one, read apart from the code that is tested.
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

// Each kind of overrider must have a number below, or it is not tested.
func TestEveryKindOfOverriderIsTested(t *testing.T) {
	tried := map[string]bool{"OverridersDialect": true} // other spellings of these
	for kind := range uint8(11) {
		o := reflect.ValueOf(overrider(kind, policyv1alpha1.OverriderOpAdd, "/a", "b", "c"))
		for i := range o.NumField() {
			if !o.Field(i).IsZero() {
				tried[o.Type().Field(i).Name] = true
			}
		}
	}
	for i := range reflect.TypeFor[policyv1alpha1.Overriders]().NumField() {
		if name := reflect.TypeFor[policyv1alpha1.Overriders]().Field(i).Name; !tried[name] {
			t.Errorf("%s is not tried", name)
		}
	}
}

// overrider returns an overrider of the kind with the number, with possible user input.
func overrider(kind uint8, operator policyv1alpha1.OverriderOperator, path, key,
	value string) policyv1alpha1.Overriders {
	raw := apiextensionsv1.JSON{Raw: []byte(value)}
	if operator == policyv1alpha1.OverriderOpRemove {
		raw = apiextensionsv1.JSON{}
	}
	words := policyv1alpha1.CommandArgsOverrider{ContainerName: key, Operator: operator, Value: []string{value}}
	keys := policyv1alpha1.LabelAnnotationOverrider{Operator: operator, Value: map[string]string{key: value}}
	patch := []policyv1alpha1.FieldPatchOperation{{SubPath: key, Operator: operator, Value: raw}}
	switch kind % 11 {
	case 0:
		return policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{
			Predicate: &policyv1alpha1.ImagePredicate{Path: path}, Component: policyv1alpha1.Repository,
			Operator: operator, Value: value}}}
	case 1:
		return policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: policyv1alpha1.Tag,
			Operator: operator, Value: value}}}
	case 2:
		return policyv1alpha1.Overriders{CommandOverrider: []policyv1alpha1.CommandArgsOverrider{words}}
	case 3:
		return policyv1alpha1.Overriders{ArgsOverrider: []policyv1alpha1.CommandArgsOverrider{words}}
	case 4:
		return policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{keys}}
	case 5:
		return policyv1alpha1.Overriders{AnnotationsOverrider: []policyv1alpha1.LabelAnnotationOverrider{keys}}
	case 6:
		return policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: path, JSON: patch}}}
	case 7:
		return policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: path, YAML: patch}}}
	case 8:
		return policyv1alpha1.Overriders{ResourcesOverrider: []policyv1alpha1.ResourcesOverrider{{ContainerName: key,
			Value: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceName(value): resource.MustParse("1")}}}}}
	}
	return policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: path, Operator: operator,
		Value: raw}}}
}

// keepsTheObject checks that an override keeps the identity, and that Apply never rejects what admission accepted.
func keepsTheObject(t testing.TB, template string, policies ...policyv1alpha1.Override) {
	t.Helper()
	m := object(t, template)
	before, err := json.Marshal(m.Object)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := override.Apply(m, cluster("eu"), policies)
	if after, _ := json.Marshal(m.Object); string(after) != string(before) {
		t.Fatalf("the template was changed to %s", after)
	}
	if err == nil && identityOf(got) != identityOf(m) {
		t.Fatalf("%s became %s", identityOf(m), identityOf(got))
	}
	admitted := true
	for _, p := range policies {
		admitted = admitted && len(validate.Override(p)) == 0
	}
	if changed := (*identity.ChangedError)(nil); admitted && errors.As(err, &changed) {
		t.Fatalf("admission lets pass what makes another object: %v", err)
	}
}

// paths and values that an attacker would try.
var (
	paths = []string{"", "/", "/apiVersion", "/kind", "/kind/", "/metadata", "/metadata/", "/metadata/name",
		"/metadata/namespace", "/metadata/labels", "/metadata/annotations",
		"/metadata/labels/name", "/metadata/annotations/work.karmada.io~1name", "/metadata/generateName",
		"/metadata/finalizers", "/spec", "/spec/replicas", "/spec/template/spec/containers/0/image",
		"/spec/template/spec/containers/-", "/data/a.yaml", "/data/a.json", "/status", "/~01", "kind", "/metadata/~0name",
		"/rules/-1"}
	values = []string{`"ClusterRoleBinding"`, `"rbac.authorization.k8s.io/v1"`, `"apps/v1"`, `"v1"`, `"a/b/c"`,
		`"kube-system"`, `""`, `null`, `5`, `[]`, `{}`, `{"name":"web","namespace":"bank"}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`, `x`, `{"name":"web","namespace":"shop"}`, "db", "v1"}
	operators = []policyv1alpha1.OverriderOperator{policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace,
		policyv1alpha1.OverriderOpRemove, policyv1alpha1.OverriderOpAddIfAbsent}
)

func policyOf(namespace string, selecting *unstructured.Unstructured,
	rules ...policyv1alpha1.Overriders) policyv1alpha1.Override {
	spec := policyv1alpha1.OverrideSpec{}
	if selecting != nil {
		spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: selecting.GetAPIVersion(),
			Kind: selecting.GetKind(), Namespace: selecting.GetNamespace()}}
	}
	for _, o := range rules {
		spec.OverrideRules = append(spec.OverrideRules, policyv1alpha1.RuleWithCluster{Overriders: o})
	}
	if namespace == "" {
		p := &policyv1alpha1.ClusterOverridePolicy{Spec: spec}
		p.Name = "p"
		return p
	}
	p := &policyv1alpha1.OverridePolicy{Spec: spec}
	p.Namespace, p.Name = namespace, "p"
	return p
}

func TestRandomOverridesKeepTheObject(t *testing.T) {
	cases := 20000
	if testing.Short() {
		cases = 2000
	}
	r := rand.New(rand.NewSource(1))
	pick := func(list []string) string { return list[r.Intn(len(list))] }
	for range cases {
		template := pick(templates)
		var policies []policyv1alpha1.Override
		for range 1 + r.Intn(3) {
			var rules []policyv1alpha1.Overriders
			for range 1 + r.Intn(3) {
				rules = append(rules, overrider(uint8(r.Intn(11)), operators[r.Intn(len(operators))], pick(paths),
					pick([]string{"main", "karmada.io/managed", "/b", "", "a"}), pick(values)))
			}
			var selecting *unstructured.Unstructured
			if r.Intn(2) == 0 {
				selecting = object(t, template)
			}
			policies = append(policies, policyOf(pick([]string{"", "shop"}), selecting, rules...))
		}
		keepsTheObject(t, template, policies...)
	}
}

func FuzzOverridesKeepTheObject(f *testing.F) {
	for i, path := range paths {
		f.Add(uint8(i), uint8(9), uint8(i), path, "main", values[i%len(values)], i%2 == 0)
	}
	for i, value := range values {
		f.Add(uint8(i), uint8(i), uint8(1), paths[i%len(paths)], "/b", value, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, template, kind, operator uint8, path, key, value string, selects bool) {
		text := templates[int(template)%len(templates)]
		var selecting *unstructured.Unstructured
		if selects {
			selecting = object(t, text)
		}
		o := overrider(kind, operators[int(operator)%len(operators)], path, key, value)
		keepsTheObject(t, text, policyOf("shop", selecting, o), policyOf("", selecting, o))
	})
}
