package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

func configuration(t *testing.T, name, webhooks string) *configv1alpha1.ResourceInterpreterWebhookConfiguration {
	t.Helper()
	c := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	c.Name = name
	if err := yaml.UnmarshalStrict([]byte(webhooks), &c.Webhooks); err != nil {
		t.Fatal(err)
	}
	return c
}

func shop(t *testing.T, rest string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("{apiVersion: example.com/v1, kind: Shop, metadata: {name: s, namespace: space}, " +
		rest + "}"))
	if err != nil {
		t.Fatalf("%v in %s", err, rest)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

const every = `[{name: a.b.c, rules: [{operations: ["*"], apiGroups: [example.com], apiVersions: [v1], kinds: [Shop]}]}]`

// answering returns an interpreter by one webhook for every operation, which answers in text, with UID for the
// request's uid. asked is the last question.
func answering(t *testing.T, text string) (i interpret.Interpreter, asked *configv1alpha1.ResourceInterpreterContext) {
	t.Helper()
	asked = &configv1alpha1.ResourceInterpreterContext{}
	n := 0
	tier := webhook.New([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration(t, "conf", every)},
		webhook.Options{Call: func(_ context.Context, _ webhook.Hook, body []byte) ([]byte, error) {
			*asked = configv1alpha1.ResourceInterpreterContext{}
			if err := json.Unmarshal(body, asked); err != nil {
				t.Errorf("the request is no JSON: %v", err)
			}
			if text == "no answer" {
				return nil, errors.New("nobody is there")
			}
			return []byte(strings.ReplaceAll(text, "UID", string(asked.Request.UID))), nil
		}, NewID: func() types.UID { n++; return types.UID(fmt.Sprintf("id-%d", n)) }})
	return interpret.New(tier), asked
}

// send asks an operation, and gives what was answered as YAML shows it.
func send(t *testing.T, i interpret.Interpreter, operation configv1alpha1.InterpreterOperation,
	obj *unstructured.Unstructured) (any, error) {
	t.Helper()
	ctx := t.Context()
	switch operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		n, req, _, err := i.Replicas(ctx, obj)
		if req != nil {
			return fmt.Sprintf("%d of %s", n, req.ResourceRequest.Cpu()), err
		}
		return n, err
	case configv1alpha1.InterpreterOperationInterpretComponent:
		c, err := i.Components(ctx, obj)
		return fmt.Sprint(len(c)), err
	case configv1alpha1.InterpreterOperationReviseReplica:
		out, err := i.Revise(ctx, obj, 7)
		return content(out), err
	case configv1alpha1.InterpreterOperationRetain:
		out, err := i.Retain(ctx, obj, shop(t, "spec: {observed: true}"))
		return content(out), err
	case configv1alpha1.InterpreterOperationAggregateStatus:
		out, err := i.Aggregate(ctx, obj, []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1"}})
		return content(out), err
	case configv1alpha1.InterpreterOperationInterpretStatus:
		status, err := i.Reflect(ctx, obj)
		return any(status), err
	case configv1alpha1.InterpreterOperationInterpretHealth:
		h, err := i.Health(ctx, obj)
		return string(h), err
	case configv1alpha1.InterpreterOperationInterpretDependency:
		d, err := i.Dependencies(ctx, obj)
		var names []string
		for _, one := range d {
			names = append(names, one.Kind+"/"+one.Name)
		}
		return strings.Join(names, " "), err
	}
	t.Fatalf("no operation %s", operation)
	return nil, nil
}

func content(u *unstructured.Unstructured) any {
	if u == nil {
		return nil
	}
	return u.Object
}

const (
	replica    = configv1alpha1.InterpreterOperationInterpretReplica
	component  = configv1alpha1.InterpreterOperationInterpretComponent
	revise     = configv1alpha1.InterpreterOperationReviseReplica
	retain     = configv1alpha1.InterpreterOperationRetain
	aggregate  = configv1alpha1.InterpreterOperationAggregateStatus
	reflection = configv1alpha1.InterpreterOperationInterpretStatus
	health     = configv1alpha1.InterpreterOperationInterpretHealth
	dependency = configv1alpha1.InterpreterOperationInterpretDependency
)

func response(rest string) string {
	return `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","response":{"uid":"UID","successful":true` + rest + `}}`
}

// patch returns a patch as the wire has it.
func patch(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return `,"patchType":"JSONPatch","patch":` + string(raw)
}

func TestWebhookResponses(t *testing.T) {
	for _, c := range []struct {
		operation configv1alpha1.InterpreterOperation
		answer    string
		want      any
	}{
		{replica, response(`,"replicas":3,"replicaRequirements":{"resourceRequest":{"cpu":"2"}}`), "3 of 2"},
		{replica, response(`,"replicas":0`), int32(0)},
		{component, response(`,"components":[{"name":"b","replicas":1},{"name":"a","replicas":2}]`), "2"},
		{revise, response(patch(t, `[{"op":"replace","path":"/spec/replicas","value":7}]`)),
			shop(t, "spec: {replicas: 7}").Object},
		{retain, response(patch(t, `[{"op":"add","path":"/spec/kept","value":"x"}]`)),
			shop(t, "spec: {replicas: 1, kept: x}").Object},
		{aggregate, response(patch(t, `[{"op":"add","path":"/status","value":{"ready":4,"share":0.5}}]`)),
			shop(t, "spec: {replicas: 1}, status: {ready: 4, share: 0.5}").Object},
		{revise, response(``), shop(t, "spec: {replicas: 1}").Object},
		{reflection, response(`,"rawStatus":{"a":1}`), map[string]any{"a": int64(1)}},
		{reflection, response(``), map[string]any(nil)},
		{health, response(`,"healthy":true`), "Healthy"},
		{health, response(`,"healthy":false`), "Degraded"},
		{dependency, response(`,"dependencies":[{"apiVersion":"v1","kind":"Secret","namespace":"space","name":"b"},{"apiVersion":"v1","kind":"ConfigMap","namespace":"space","name":"a"}]`), "ConfigMap/a Secret/b"},
		{health, strings.NewReplacer(`"apiVersion":"config.karmada.io/v1alpha1",`, ``, `"kind":"ResourceInterpreterContext",`,
			``).Replace(response(`,"healthy":true`)), "Healthy"},
	} {
		i, _ := answering(t, c.answer)
		got, err := send(t, i, c.operation, shop(t, "spec: {replicas: 1}"))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s of %s: %v (-want +got):\n%s", c.operation, c.answer, err, diff)
		}
	}
}

func TestInvalidResponseNamesWebhookAndReason(t *testing.T) {
	for _, c := range []struct {
		operation    configv1alpha1.InterpreterOperation
		answer, want string
	}{
		{replica, "no answer", "ask it: nobody is there"},
		{replica, "<html>oops", `is not a ResourceInterpreterContext in JSON: invalid character '<' looking for beginning of value: it begins with "<html>oops"`},
		{replica, "\n", "is empty, but must be a ResourceInterpreterContext in JSON"},
		{replica, `{"kind":"Foo"}`, "is a Foo of no apiVersion, not a ResourceInterpreterContext"},
		{replica, "{}", `has no response: it begins with "{}"`},
		{replica, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"UID"}}`,
			"is a AdmissionReview of admission.k8s.io/v1, not a ResourceInterpreterContext of config.karmada.io/v1alpha1"},
		{replica, strings.ReplaceAll(response(`,"replicas":1`), "UID", "another"),
			"belongs to another request: response.uid must equal request.uid"},
		{replica, strings.ReplaceAll(response(`,"status":{"message":"the database is away","code":503}`), "true", "false"),
			"it returned a failure: the database is away (code 503)"},
		{replica, strings.ReplaceAll(response(``), "true", "false"), "it returned a failure: no reason given (code 0)"},
		{replica, response(``), "has no replicas"},
		{replica, response(`,"replicas":-1`), "has -1 replicas"},
		{replica, response(`,"replicas":"3"`), "is not a ResourceInterpreterContext in JSON"},
		{component, response(`,"components":[{"name":"","replicas":1}]`), "has a component without a name"},
		{component, response(`,"components":[{"name":"a","replicas":1},{"name":"a","replicas":1}]`),
			`has two components named "a"`},
		{component, response(`,"components":[{"name":"a","replicas":-1}]`), `has -1 replicas for component "a"`},
		{revise, response(`,"patch":"W10="`), "has a patch whose patchType is not given; it must be JSONPatch"},
		{revise, response(`,"patch":"W10=","patchType":"MergePatch"`), "patchType is MergePatch"},
		{revise, response(patch(t, `no patch`)), "has a patch that does not apply: it is not a JSON patch"},
		{revise, response(patch(t, `[{"op":"remove","path":"/spec/absent"}]`)), "has a patch that does not apply"},
		{revise, response(patch(t, `[{"op":"test","path":"/spec/replicas","value":2}]`)), "has a patch that does not apply"},
		{revise, response(patch(t, `[{"op":"replace","path":"/metadata/name","value":"z"}]`)),
			"changes the identity of the object: example.com/v1, Kind=Shop space/z"},
		{retain, response(patch(t, `[{"op":"replace","path":"","value":[]}]`)), "has a patch that does not apply"},
		{aggregate, response(patch(t, `[`+
			strings.Repeat(`{"op":"copy","from":"/spec","path":"/spec/more"},{"op":"move","from":"/spec/more","path":"/spec/x"},{"op":"copy","from":"/spec","path":"/more"},{"op":"copy","from":"/more","path":"/spec/y"},`, 30)+`{"op":"test","path":"/kind","value":"Shop"}]`)),
			"the resulting object is larger than 4194304 bytes"},
		{reflection, response(`,"rawStatus":[1]`), "has a rawStatus that is not an object: it begins with \"[1]\""},
		{health, response(``), "does not set healthy to true or false"},
		{dependency, response(`,"dependencies":[{"apiVersion":"v1","kind":"Secret"}]`),
			"has a dependency without apiVersion, kind, and one of name and labelSelector"},
	} {
		i, _ := answering(t, c.answer)
		_, err := send(t, i, c.operation, shop(t, "spec: {replicas: 1, pad: "+strings.Repeat("x", 100)+"}"))
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "interpreter webhook conf/a.b.c, "+string(c.operation)) {
			t.Errorf("%s of %.200s:\n  %v\ndoes not say\n  %s", c.operation, c.answer, err, c.want)
		}
	}
}

func TestRequestHasArgumentsOfOperation(t *testing.T) {
	i, asked := answering(t, response(`,"replicas":1,"healthy":true`))
	obj := shop(t, "spec: {replicas: 1}")
	for _, o := range []configv1alpha1.InterpreterOperation{replica, component, revise, retain, aggregate, reflection,
		health, dependency} {
		if _, err := send(t, i, o, obj); err != nil {
			t.Fatalf("%s: %v", o, err)
		}
		r := asked.Request
		if asked.Kind != "ResourceInterpreterContext" || asked.APIVersion != "config.karmada.io/v1alpha1" ||
			r.Operation != o || r.UID == "" ||
			r.Name != "s" || r.Namespace != "space" || r.Kind.Kind != "Shop" || r.Kind.Group != "example.com" ||
			r.Kind.Version != "v1" || asked.Response != nil {
			t.Errorf("%s: asked as %+v of %s %s/%s uid %q", o, asked.TypeMeta, r.Kind, r.Namespace, r.Name, r.UID)
		}
		var sent map[string]any
		if err := yaml.Unmarshal(r.Object.Raw, &sent); err != nil || sent["kind"] != "Shop" {
			t.Errorf("%s: object %s, %v", o, r.Object.Raw, err)
		}
		if (r.DesiredReplicas != nil && *r.DesiredReplicas == 7) != (o == revise) {
			t.Errorf("%s: replicas %v", o, r.DesiredReplicas)
		}
		if (r.ObservedObject != nil && strings.Contains(string(r.ObservedObject.Raw), "observed")) != (o == retain) {
			t.Errorf("%s: observed %v", o, r.ObservedObject)
		}
		if (len(r.AggregatedStatus) == 1) != (o == aggregate) {
			t.Errorf("%s: statuses %v", o, r.AggregatedStatus)
		}
	}
}

func TestFirstWebhookWithMatchingRuleIsCalled(t *testing.T) {
	all := []*configv1alpha1.ResourceInterpreterWebhookConfiguration{
		configuration(t, "b", `[
			{name: first.b, rules: [{operations: [InterpretHealth], apiGroups: [example.com], apiVersions: [v1, v2], kinds: [Shop]}]},
			{name: second.b, rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: [v1], kinds: ["*"]}]}]`),
		configuration(t, "a", `[{name: first.a, rules: [{operations: [InterpretReplica], apiGroups: [example.com], apiVersions: ["*"], kinds: [Shop, Stall]}, {operations: [Retain], apiGroups: [""], apiVersions: [v1], kinds: [Pod]}]}]`),
	}
	tier := webhook.New(all, webhook.Options{})
	for _, c := range []struct {
		group, version, kind string
		operation            configv1alpha1.InterpreterOperation
		want                 string
	}{
		{"example.com", "v1", "Shop", replica, "a/first.a"},
		{"example.com", "v9", "Stall", replica, "a/first.a"},
		{"example.com", "v1", "Shop", health, "b/first.b"},
		{"example.com", "v2", "Shop", health, "b/first.b"},
		{"example.com", "v3", "Shop", health, ""},
		{"example.com", "v1", "Shop", retain, "b/second.b"},
		{"", "v1", "Pod", retain, "a/first.a"},
		{"", "v1", "Pod", health, "b/second.b"},
		{"other.com", "v1beta1", "Pod", health, ""},
	} {
		kind := schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind}
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if diff := cmp.Diff(want, tier.Find(kind, c.operation).By); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.operation, kind, diff)
		}
		answers := interpret.Explain(kind, []interpret.Source{{Name: "webhook", Tier: tier}})
		for _, a := range answers {
			if a.Operation == c.operation && (a.Tier == "webhook") != (c.want != "") {
				t.Errorf("%s of %s is answered by %q", c.operation, kind, a.Tier)
			}
		}
	}
	if webhook.Concerns(all[1], schema.GroupKind{Group: "apps", Kind: "Deployment"}) ||
		!webhook.Concerns(all[1], schema.GroupKind{Kind: "Pod"}) ||
		!webhook.Concerns(all[0], schema.GroupKind{Group: "apps", Kind: "Deployment"}) {
		t.Error("the kinds that a configuration concerns are wrong")
	}
}

// versions converts between v1, with spec.replicas, and v2, with spec.size; of others nothing is known.
func versions(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	from, to, is := "replicas", "size", obj.GroupVersionKind().Version
	if version == "v1" {
		from, to = to, from
	}
	if is != "v1" && is != "v2" || version != "v1" && version != "v2" {
		return nil, nil
	}
	out := obj.DeepCopy()
	out.SetAPIVersion("example.com/" + version)
	if spec, ok := out.Object["spec"].(map[string]any); ok {
		if v, ok := spec[from]; ok {
			spec[to] = v
			delete(spec, from)
		}
	}
	return out, nil
}

func TestWebhookGetsVersionInItsRule(t *testing.T) {
	var asked configv1alpha1.ResourceInterpreterContext
	answer := ""
	tier := webhook.New([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{
		configuration(t, "a", `[{name: old.a, rules: [{operations: ["*"], apiGroups: [example.com], apiVersions: [v7, v2], kinds: [Shop]}]}]`),
		configuration(t, "b", `[{name: own.b, rules: [{operations: [InterpretHealth], apiGroups: [example.com], apiVersions: [v1], kinds: [Shop]}]}]`),
	}, webhook.Options{Convert: versions, NewID: func() types.UID { return "1" },
		Call: func(_ context.Context, _ webhook.Hook, body []byte) ([]byte, error) {
			asked = configv1alpha1.ResourceInterpreterContext{}
			if err := json.Unmarshal(body, &asked); err != nil {
				t.Errorf("the request is no JSON: %v", err)
			}
			return []byte(strings.ReplaceAll(answer, "UID", "1")), nil
		}})
	i := interpret.New(tier)

	answer = response(patch(t, `[{"op":"replace","path":"/spec/size","value":7}]`))
	revised, err := i.Revise(t.Context(), shop(t, "spec: {replicas: 1}"), 7)
	if diff := cmp.Diff(shop(t, "spec: {replicas: 7}").Object, content(revised)); diff != "" || err != nil {
		t.Errorf("%v; the answer is not in the version of the object (-want +got):\n%s", err, diff)
	}
	if r := asked.Request; r.Kind.Version != "v2" ||
		!strings.Contains(string(r.Object.Raw), `"apiVersion":"example.com/v2"`) ||
		!strings.Contains(string(r.Object.Raw), `"size":1`) {
		t.Errorf("it was asked about %v, %s", r.Kind, r.Object.Raw)
	}

	answer = response(patch(t, `[{"op":"replace","path":"/spec/size","value":4}]`))
	retained, err := i.Retain(t.Context(), shop(t, "spec: {replicas: 1}"), shop(t, "spec: {replicas: 4}"))
	if diff := cmp.Diff(shop(t, "spec: {replicas: 4}").Object, content(retained)); diff != "" || err != nil ||
		!strings.Contains(string(asked.Request.ObservedObject.Raw), `"size":4`) {
		t.Errorf("retained: %v, member's object %s (-want +got):\n%s", err, asked.Request.ObservedObject.Raw, diff)
	}
	unknown := shop(t, "spec: {replicas: 4}")
	unknown.SetAPIVersion("example.com/v9")
	_, err = i.Retain(t.Context(), shop(t, "spec: {replicas: 1}"), unknown)
	if err == nil || !strings.Contains(err.Error(),
		"the member's object: there is no conversion between Shop v9 and v2; list v9 in the rule's apiVersions if the webhook understands it") {
		t.Errorf("a member's object of a version that nobody knows: %v", err)
	}

	answer = response(`,"healthy":true`)
	if _, err := i.Health(t.Context(), shop(t, "spec: {}")); err != nil || asked.Request.Kind.Version != "v1" {
		t.Errorf("though a webhook has a rule for the version, it is asked in %s: %v", asked.Request.Kind.Version, err)
	}
	if _, err := i.Health(t.Context(), unknown); err != nil {
		t.Errorf("a version that nobody has a rule for is left to the next tier: %v", err)
	}
	if diff := cmp.Diff([]string{"a/old.a (asked in v2)"},
		tier.Find(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}, revise).By); diff != "" {
		t.Errorf("who answers (-want +got):\n%s", diff)
	}
}

func TestEmptyPatchIsReported(t *testing.T) {
	var messages []string
	tier := webhook.New([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration(t, "conf", every)},
		webhook.Options{
			NewID: func() types.UID { return "1" },
			Call: func(context.Context, webhook.Hook, []byte) ([]byte, error) {
				return []byte(strings.ReplaceAll(response(`,"healthy":true,"replicas":1`), "UID", "1")), nil
			},
			Unchanged: func(_ context.Context, u webhook.Unchanged) {
				messages = append(messages, fmt.Sprintf("%s %s of %s: %d replicas, %d items", u.Hook, u.Operation,
					u.Object.GetName(),
					u.Replicas, len(u.Items)))
			},
		})
	for _, o := range []configv1alpha1.InterpreterOperation{replica, revise, retain, aggregate, reflection, health} {
		if _, err := send(t, interpret.New(tier), o, shop(t, "spec: {replicas: 1}")); err != nil {
			t.Errorf("%s: %v", o, err)
		}
	}
	if diff := cmp.Diff([]string{"conf/a.b.c ReviseReplica of s: 7 replicas, 0 items",
		"conf/a.b.c Retain of s: 0 replicas, 0 items", "conf/a.b.c AggregateStatus of s: 0 replicas, 1 items"},
		messages); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
