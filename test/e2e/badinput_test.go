package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// A ConfigMap may hold 1 MiB; etcd takes 1.5 MiB. In a Work it is JSON in JSON.
func TestBigObjectArrivesOrIsReported(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1", "m2")))
	const mib = 1 << 20
	for name, data := range map[string]string{
		"plain":  strings.Repeat("x", mib-100),
		"quotes": strings.Repeat(`"`, mib-100), // each is two bytes in JSON
		"breaks": strings.Repeat("\n", mib-100),
	} {
		u := kit.Object(t, configMap(ns, name, ""))
		u.Object["data"] = map[string]any{"k": data}
		if err := fleet.Hub.Create(t.Context(), u); err != nil {
			if !strings.Contains(err.Error(), "too large") {
				t.Errorf("the hub refuses %s: %v", name, err)
			}
			continue
		}
		fleet.Hub.RemoveAtEnd(t, u)
		kit.Eventually(t, name+" arrives, or its users get an event", func() string {
			if applied(t, ns, name+"-configmap", "m1", "m2") == "" {
				return ""
			}
			for _, messages := range fleet.Hub.Messages(t, "ConfigMap", ns, name, workv1alpha2.EventSyncWorkFailed) {
				if strings.Contains(messages, "too large") {
					t.Logf("%s is reported: %s", name, messages)
					b := binding(t, ns, name+"-configmap")
					if b == nil {
						return "there is no binding"
					}
					c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.WorksWritten)
					if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "too large") {
						return fmt.Sprintf("it is no condition of the binding: %+v", c)
					}
					return ""
				}
			}
			return fmt.Sprintf("neither; they are reported: %q",
				fleet.Hub.Messages(t, "ConfigMap", ns, name, workv1alpha2.EventSyncWorkFailed))
		})
	}
	// The hub is well.
	fleet.Hub.Apply(t, configMap(ns, "small", "1"))
	kit.Eventually(t, "others go on", func() string { return applied(t, ns, "small-configmap", "m1", "m2") })
}

// definition is a kind of its own for a test, with a status.
func definition(plural, kind string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.e2e.example.com}
spec:
  group: e2e.example.com
  names: {plural: %[1]s, singular: %[3]s, kind: %[2]s}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`, plural, kind, strings.ToLower(kind))
}

// serves waits until a cluster serves a kind that was just defined.
func serves(t *testing.T, c kit.Cluster, kind string) {
	t.Helper()
	kit.Eventually(t, c.Name+" serves "+kind, func() string {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("e2e.example.com/v1")
		list.SetKind(kind + "List")
		if err := c.List(t.Context(), list); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestUnservedKindWaits(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, definition("boats", "Boat"))
	serves(t, fleet.Hub, "Boat")
	fleet.Hub.Apply(t, policy(ns, "p", "e2e.example.com/v1", "Boat", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, fmt.Sprintf("{apiVersion: e2e.example.com/v1, kind: Boat, metadata: {name: b, namespace: %s}, spec: {sails: 2}}", ns))
	kit.Eventually(t, "nowhere is room for it, and it says why", func() string {
		b := binding(t, ns, "b-boat")
		if b == nil {
			return "there is no binding"
		}
		c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
		if c == nil || c.Reason != "NoClusterFit" ||
			!strings.Contains(c.Message, "2 cluster(s) did not have the API resource") {
			return fmt.Sprintf("the condition is %+v", c)
		}
		return ""
	})
	fleet.Members["m1"].Apply(t, definition("boats", "Boat"))
	kit.Eventually(t, "it goes where the kind appears", func() string { return applied(t, ns, "b-boat", "m1") })
	fleet.Members["m2"].Apply(t, definition("boats", "Boat"))
	kit.Eventually(t, "and to the next", func() string { return applied(t, ns, "b-boat", "m1", "m2") })

	// The member loses the kind, and with it the object: that is reported, and repaired when the kind is back.
	fleet.Members["m2"].Remove(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "boats.e2e.example.com")
	fleet.Hub.Change(t, "e2e.example.com/v1", "Boat", ns, "b", func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{"sails": int64(3)}
	})
	waitFor[any](t, "m1 follows", int64(3), func() any {
		return inMember(t, "m1", "e2e.example.com/v1", "Boat", ns, "b", "spec", "sails")
	})
	kit.Eventually(t, "m2 is told to lack the kind", func() string {
		if w := work(t, "m2", "Boat", ns, "b"); w == nil {
			return "" // it left with the kind
		}
		return notApplied(t, "m2", "Boat", ns, "b", `"m2"`)
	})
	waitFor(t, "the definition is gone", true, func() bool {
		return fleet.Members["m2"].Find(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "",
			"boats.e2e.example.com") == nil
	})
	fleet.Members["m2"].Apply(t, definition("boats", "Boat"))
	serves(t, fleet.Members["m2"], "Boat")
	kit.Eventually(t, "it is back with the kind", func() string { return applied(t, ns, "b-boat", "m1", "m2") })
	waitFor[any](t, "as it is now", int64(3), func() any {
		return inMember(t, "m2", "e2e.example.com/v1", "Boat", ns, "b", "spec", "sails")
	})
}

func TestObjectRefusedByOneMemberGoesToTheOthers(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	// The member's own rule.
	fleet.Members["m1"].Apply(t, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  validations: [{expression: "!has(object.data) || !('forbidden' in object.data)", message: "forbidden data"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}`, ns))
	kit.Eventually(t, "the namespace is in m1", func() string {
		if fleet.Members["m1"].Find(t, "v1", "Namespace", "", ns) == nil {
			return "it is not"
		}
		return ""
	})
	kit.Eventually(t, "the member enforces it", func() string {
		probe := kit.Object(t, configMap(ns, "probe", ""))
		probe.Object["data"] = map[string]any{"forbidden": "x"}
		err := fleet.Members["m1"].Create(t.Context(), probe)
		if err != nil && strings.Contains(err.Error(), "forbidden data") {
			return ""
		}
		if err == nil {
			_ = fleet.Members["m1"].Delete(context.Background(), probe)
		}
		return fmt.Sprint("not yet: ", err)
	})
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", placedOn("m1", "m2", "m3")))
	u := kit.Object(t, configMap(ns, "c", ""))
	u.Object["data"] = map[string]any{"forbidden": "x"}
	if err := fleet.Hub.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	fleet.Hub.RemoveAtEnd(t, u)
	kit.Eventually(t, "the refusal is reported", func() string {
		return notApplied(t, "m1", "ConfigMap", ns, "c", "forbidden data")
	})
	kit.Eventually(t, "the others have it", func() string { return lacks(t, "v1", "ConfigMap", ns, "c", "m2", "m3") })
	if messages := fleet.Hub.Messages(t, "Work", "karmada-es-m1", work(t, "m1", "ConfigMap", ns, "c").Name,
		workv1alpha2.EventSyncFailed); len(messages) != 1 {
		t.Errorf("a lasting failure was reported: %d times: %q", len(messages), messages)
	}

	setData(t, ns, "c", "allowed")
	kit.Eventually(t, "mended, it goes to all", func() string { return applied(t, ns, "c-configmap", "m1", "m2", "m3") })

	// A change that is refused leaves what is there.
	fleet.Hub.Change(t, "v1", "ConfigMap", ns, "c", func(u *unstructured.Unstructured) {
		u.Object["data"] = map[string]any{"forbidden": "y"}
	})
	kit.Eventually(t, "a refused change is reported", func() string {
		return notApplied(t, "m1", "ConfigMap", ns, "c", "forbidden data")
	})
	if got := inMember(t, "m1", "v1", "ConfigMap", ns, "c", "data", "key"); got != "allowed" {
		t.Errorf("m1 has %v", got)
	}
	waitFor[any](t, "m2 follows", "y",
		func() any { return inMember(t, "m2", "v1", "ConfigMap", ns, "c", "data", "forbidden") })
}
