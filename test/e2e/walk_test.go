package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// policy sends all objects of a kind in a namespace to some members; placement is more YAML below spec.placement.
func policy(namespace, name, apiVersion, kind, placement string) string {
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s, namespace: %s}
spec:
  resourceSelectors: [{apiVersion: %s, kind: %s}]
  placement: %s`, name, namespace, apiVersion, kind, placement)
}

func configMap(namespace, name, value string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s, labels: {app: %s}}
data: {key: %q}`, name, namespace, name, value)
}

// binding of a template; nil until it is there.
func binding(t *testing.T, namespace, name string) *workv1alpha2.ResourceBinding {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name},
		b); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return b
}

// lacks returns what is wrong unless exactly these members have the object.
func lacks(t *testing.T, apiVersion, kind, namespace, name string, members ...string) string {
	t.Helper()
	want := map[string]bool{}
	for _, m := range members {
		want[m] = true
	}
	for m, c := range fleet.Members {
		if there := c.Find(t, apiVersion, kind, namespace, name) != nil; there != want[m] {
			return fmt.Sprintf("%s holds %s %s: %v, want %v", m, kind, name, there, want[m])
		}
	}
	return ""
}

func TestConfigMapReachesMembersOfItsPolicy(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"policy first", "template first"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			ns := fleet.Namespace(t)
			p, c := policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [m1, m2]}}"),
				configMap(ns, "settings", "1")
			first, second := p, c
			if order == "template first" {
				first, second = c, p
			}
			fleet.Hub.Apply(t, first)
			fleet.Hub.Apply(t, second)
			kit.Eventually(t, "members m1 and m2 hold it", func() string {
				return lacks(t, "v1", "ConfigMap", ns, "settings", "m1", "m2")
			})

			kit.Eventually(t, "the binding says so", func() string {
				b := binding(t, ns, "settings-configmap")
				if b == nil || !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) {
					return fmt.Sprintf("%+v", b)
				}
				if len(b.Status.AggregatedStatus) != 2 || !b.Status.AggregatedStatus[0].Applied {
					return fmt.Sprintf("aggregated status is %+v", b.Status.AggregatedStatus)
				}
				return ""
			})
			template := fleet.Hub.Find(t, "v1", "ConfigMap", ns, "settings")
			if got := template.GetAnnotations()[policyv1alpha1.PropagationPolicyNameAnnotation]; got != "p" {
				t.Errorf("the template says it is claimed by %q", got)
			}
			member := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "settings")
			for _, key := range []string{"work.karmada.io/name", "work.karmada.io/namespace", "resourcebinding.karmada.io/name",
				"resourcetemplate.karmada.io/uid", "resourcetemplate.karmada.io/managed-annotations",
				"propagationpolicy.karmada.io/name"} {
				if member.GetAnnotations()[key] == "" {
					t.Errorf("the member's object lacks annotation %s; it has %v", key, member.GetAnnotations())
				}
			}
		})
	}
}

func TestAChangeOfTheTemplateReachesTheMembersAndDriftIsPutRight(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [m1]}}"))
	template := fleet.Hub.Apply(t, configMap(ns, "c", "1"))[0]
	value := func() any {
		return kit.Field(fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c"), "data", "key")
	}
	is := func(want string) func() string {
		return func() string {
			if got := value(); got != want {
				return fmt.Sprintf("the member has %v, want %s", got, want)
			}
			return ""
		}
	}
	kit.Eventually(t, "the member has the value", is("1"))

	fleet.Hub.Apply(t, configMap(ns, "c", "2"))
	kit.Eventually(t, "the member follows", is("2"))

	in := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c")
	in.Object["data"] = map[string]any{"key": "meddled", "theirs": "kept"}
	if err := fleet.Members["m1"].Update(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "what the template sets the hub corrects it", is("2"))
	if kept := kit.Field(fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c"), "data", "theirs"); kept != "kept" {
		t.Errorf("what the template does not set was %v, want it left to the member", kept)
	}

	if err := fleet.Members["m1"].Delete(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "what was deleted in the member comes back", is("2"))

	// A key that the template drops goes; the member's own stays.
	fresh := fleet.Hub.Find(t, "v1", "ConfigMap", ns, "c")
	fresh.Object["data"] = map[string]any{"other": "3"}
	if err := fleet.Hub.Update(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "a key that the template drops goes", func() string {
		u := fleet.Members["m1"].Find(t, "v1", "ConfigMap", ns, "c")
		if kit.Field(u, "data", "key") != nil || kit.Field(u, "data", "other") != "3" {
			return fmt.Sprintf("data is %v", kit.Field(u, "data"))
		}
		return ""
	})

	if err := fleet.Hub.Delete(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "deletion goes all the way down", func() string { return lacks(t, "v1", "ConfigMap", ns, "c") })
	kit.Eventually(t, "and the binding goes", func() string {
		if binding(t, ns, "c-configmap") != nil {
			return "it is there"
		}
		return ""
	})
}

func deployment(ns, name string, replicas int, image string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s, labels: {app: %[2]s}}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers: [{name: c, image: "%[4]s", resources: {requests: {cpu: 10m, memory: 16Mi}}}]`, ns, name, replicas, image)
}

func scale(t *testing.T, ns, name string, replicas int64) {
	t.Helper()
	u := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, name)
	patch := client.MergeFrom(u.DeepCopy())
	if err := unstructured.SetNestedField(u.Object, replicas, "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := fleet.Hub.Patch(t.Context(), u, patch); err != nil {
		t.Fatal(err)
	}
}
