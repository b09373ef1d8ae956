package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// customization is a ResourceInterpreterCustomization of a kind of definition; rules are YAML.
func customization(name, kind, rules string) string {
	return fmt.Sprintf(`
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: %s}
spec:
  target: {apiVersion: e2e.example.com/v1, kind: %s}
  customizations:
%s`, name, kind, rules)
}

// defined has the hub and the members serve a kind of the test's own.
func defined(t *testing.T, plural, kind string, members ...string) {
	t.Helper()
	for _, c := range append([]kit.Cluster{fleet.Hub}, membersNamed(members)...) {
		c.Apply(t, definition(plural, kind))
		serves(t, c, kind)
	}
	kit.Eventually(t, "the hub knows that the members serve it", func() string {
		for _, m := range members {
			if !clusterOf(t, m).Status.Serves("e2e.example.com/v1", kind) {
				return m + " is not known to"
			}
		}
		return ""
	})
}

func membersNamed(members []string) (all []kit.Cluster) {
	for _, m := range members {
		all = append(all, fleet.Members[m])
	}
	return all
}

// answers plays the controller of a kind in a member: it writes the status of an object once it is there.
func answers(t *testing.T, member, kind, ns, name, status string) {
	t.Helper()
	want := kit.Object(t, status).Object
	kit.Eventually(t, member+" answers", func() string {
		u := fleet.Members[member].Find(t, "e2e.example.com/v1", kind, ns, name)
		if u == nil {
			return "the object is not there"
		}
		u.Object["status"] = want
		if err := fleet.Members[member].Status().Update(t.Context(), u); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestCustomKindFollowsItsCustomization(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	// The customization comes before the kind that it is about.
	fleet.Hub.Apply(t, customization("ferries", "Ferry", `
    replicaResource:
      luaScript: |
        function GetReplicas(obj)
          return obj.spec.boats, {}
        end
    replicaRevision: {jsonPath: .spec.boats}
    statusAggregation:
      luaScript: |
        function AggregateStatus(desiredObj, statusItems)
          local afloat = 0
          for i = 1, #statusItems do
            if statusItems[i].status ~= nil then
              afloat = afloat + (statusItems[i].status.afloat or 0)
            end
          end
          desiredObj.status = {afloat = afloat}
          return desiredObj
        end
    healthInterpretation:
      luaScript: |
        function InterpretHealth(observedObj)
          return observedObj.status ~= nil and observedObj.status.afloat == observedObj.spec.boats
        end`))
	defined(t, "ferries", "Ferry", "m1", "m2")
	fleet.Hub.Apply(t, policy(ns, "p", "e2e.example.com/v1", "Ferry", "{clusterAffinity: {clusterNames: [m1, m2]}, "+
		divided(byStaticWeights)+"}"))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: e2e.example.com/v1, kind: Ferry, metadata: {name: f, namespace: %s}, spec: {boats: 5, ports: [], crew: {}}}", ns))

	waitFor(t, "it is divided", "m1:3 m2:2", func() string { return shares(t, ns, "f-ferry") })
	for member, n := range map[string]int64{"m1": 3, "m2": 2} {
		waitFor[any](t, member+" gets its share", n, func() any {
			return inMember(t, member, "e2e.example.com/v1", "Ferry", ns, "f", "spec", "boats")
		})
		u := fleet.Members[member].Find(t, "e2e.example.com/v1", "Ferry", ns, "f")
		if ports, crew := kit.Field(u, "spec", "ports"),
			kit.Field(u, "spec", "crew"); fmt.Sprintf("%T %T", ports, crew) != "[]interface {} map[string]interface {}" {
			t.Errorf("an empty list and an empty object came to %s as %v and %v", member, ports, crew)
		}
	}
	waitFor(t, "without an answer nobody is well", "m1:Unhealthy m2:Unhealthy", healths(t, ns, "f-ferry"))
	answers(t, "m1", "Ferry", ns, "f", "{afloat: 3}")
	answers(t, "m2", "Ferry", ns, "f", "{afloat: 1}")
	waitFor(t, "health is what the script says", "m1:Healthy m2:Unhealthy", healths(t, ns, "f-ferry"))
	waitFor[any](t, "the status is what the script makes of both", int64(4), func() any {
		return kit.Field(fleet.Hub.Find(t, "e2e.example.com/v1", "Ferry", ns, "f"), "status", "afloat")
	})
	answers(t, "m2", "Ferry", ns, "f", "{afloat: 2}")
	waitFor(t, "and all is well", "m1:Healthy m2:Healthy", healths(t, ns, "f-ferry"))

	// Another customization of the same operation is refused, with the name of the one there is.
	err := fleet.Hub.Create(t.Context(), kit.Object(t, customization("ferries-too", "Ferry", `
    replicaRevision: {jsonPath: .spec.boats}`)))
	refusedWith(t, err, "conflicting with InterpreterOperation(ReviseReplica) of existing ResourceInterpreterCustomization(ferries)", "a second customization")

	// What is said of the kind changes, and what was sent and reported follows without anybody touching it.
	fleet.Hub.Change(t, "config.karmada.io/v1alpha1", "ResourceInterpreterCustomization", "", "ferries",
		func(u *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(u.Object,
				"function InterpretHealth(observedObj) return observedObj.status.afloat == 3 end",
				"spec", "customizations", "healthInterpretation", "luaScript"); err != nil {
				t.Fatal(err)
			}
		})
	waitFor(t, "another script judges otherwise", "m1:Healthy m2:Unhealthy", healths(t, ns, "f-ferry"))

	// Without a customization the next tier answers: the kind is no workload, and each member gets it as it is.
	fleet.Hub.Remove(t, "config.karmada.io/v1alpha1", "ResourceInterpreterCustomization", "", "ferries")
	for _, member := range []string{"m1", "m2"} {
		waitFor[any](t, member+" gets all of it", int64(5), func() any {
			return inMember(t, member, "e2e.example.com/v1", "Ferry", ns, "f", "spec", "boats")
		})
	}
	waitFor(t, "and nobody judges", "m1:Healthy m2:Healthy", healths(t, ns, "f-ferry"))
}

// oracle is an interpreter webhook: a Barge has spec.holds replicas and is healthy, unless the webhook is broken.
type oracle struct{ broken atomic.Bool }

func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c configv1alpha1.ResourceInterpreterContext
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || o.broken.Load() {
		http.Error(w, "the oracle sleeps", http.StatusInternalServerError)
		return
	}
	answer := &configv1alpha1.ResourceInterpreterResponse{UID: c.Request.UID, Successful: true}
	jsonPatch := configv1alpha1.PatchTypeJSONPatch
	switch c.Request.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		var barge struct{ Spec struct{ Holds int32 } }
		_ = json.Unmarshal(c.Request.Object.Raw, &barge)
		answer.Replicas = &barge.Spec.Holds
	case configv1alpha1.InterpreterOperationReviseReplica:
		answer.Patch = fmt.Appendf(nil, `[{"op":"replace","path":"/spec/holds","value":%d}]`, *c.Request.DesiredReplicas)
		answer.PatchType = &jsonPatch
	case configv1alpha1.InterpreterOperationInterpretHealth:
		answer.Healthy = new(false)
	}
	_ = json.NewEncoder(w).Encode(configv1alpha1.ResourceInterpreterContext{TypeMeta: c.TypeMeta, Response: answer})
}

func TestWebhookInterpretsKind(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	o := &oracle{}
	server := httptest.NewTLSServer(o)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	defined(t, "barges", "Barge", "m1", "m2")
	fleet.Hub.Apply(t, policy(ns, "p", "e2e.example.com/v1", "Barge", "{clusterAffinity: {clusterNames: [m1, m2]}, "+
		divided(byStaticWeights)+"}"))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: e2e.example.com/v1, kind: Barge, metadata: {name: b, namespace: %s}, spec: {holds: 5}}", ns))
	for _, member := range []string{"m1", "m2"} {
		waitFor[any](t, member+" gets all of what nobody can divide", int64(5), func() any {
			return inMember(t, member, "e2e.example.com/v1", "Barge", ns, "b", "spec", "holds")
		})
	}
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterWebhookConfiguration
metadata: {name: barges}
webhooks:
- name: oracle.e2e.example.com
  clientConfig: {url: %q, caBundle: %s}
  interpreterContextVersions: [v1alpha1]
  timeoutSeconds: 5
  rules: [{operations: [InterpretReplica, ReviseReplica, InterpretHealth], apiGroups: [e2e.example.com], apiVersions: [v1], kinds: [Barge]}]`,
		server.URL, base64.StdEncoding.EncodeToString(ca)))
	// Nobody touches the template: what is said of its kind is enough.
	waitFor(t, "it is divided", "m1:3 m2:2", func() string { return shares(t, ns, "b-barge") })
	for member, n := range map[string]int64{"m1": 3, "m2": 2} {
		waitFor[any](t, member+" gets its share", n, func() any {
			return inMember(t, member, "e2e.example.com/v1", "Barge", ns, "b", "spec", "holds")
		})
	}
	waitFor(t, "health is what the webhook says", "m1:Unhealthy m2:Unhealthy", healths(t, ns, "b-barge"))

	// The webhook breaks: existing copies stay, and the template's events report it.
	o.broken.Store(true)
	fleet.Hub.Change(t, "e2e.example.com/v1", "Barge", ns, "b", func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{"holds": int64(10)}
	})
	kit.Eventually(t, "the template is reported", func() string {
		for _, text := range fleet.Hub.Messages(t, "Barge", ns, "b", "GetReplicasFailed") {
			if strings.Contains(text, "interpreter webhook barges/oracle.e2e.example.com, InterpretReplica") &&
				strings.Contains(text, "the oracle sleeps") {
				return ""
			}
		}
		return "nothing of the kind"
	})
	kit.Eventually(t, "and the binding says it", func() string {
		c := meta.FindStatusCondition(binding(t, ns, "b-barge").Status.Conditions, "InterpretReplica")
		if c == nil || c.Status != "False" || !strings.Contains(c.Message, "returned 500 Internal Server Error") {
			return fmt.Sprintf("the condition is %+v", c)
		}
		return ""
	})
	if got := shares(t, ns, "b-barge"); got != "m1:3 m2:2" {
		t.Errorf("meanwhile it is divided as %s", got)
	}
	o.broken.Store(false)
	waitFor(t, "when it answers again it goes on", "m1:6 m2:4", func() string { return shares(t, ns, "b-barge") })
}
