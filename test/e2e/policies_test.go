package e2e

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// quiet is how long a test watches for what must not happen.
const quiet = 2 * time.Second

// setData is a user's edit of a ConfigMap on the hub.
func setData(t *testing.T, namespace, name, value string) {
	t.Helper()
	fleet.Hub.Change(t, "v1", "ConfigMap", namespace, name, func(u *unstructured.Unstructured) {
		u.Object["data"] = map[string]any{"key": value}
	})
}

// changeSpec edits one field of a policy's spec, the first path being the kind's name and the last the field.
func changeSpec(t *testing.T, kind, namespace, name string, value any, path ...string) {
	t.Helper()
	fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", kind, namespace, name, func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, append([]string{"spec"}, path...)...); err != nil {
			t.Fatal(err)
		}
	})
}

func TestATemplateRunsOnWithoutItsPolicyUntilTheNextTakesOver(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "first", "apps/v1", "Deployment", placedOn("m1")))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	kit.Eventually(t, "it runs in m1", func() string { return lacks(t, "apps/v1", "Deployment", ns, "web", "m1") })
	before := fleet.Members["m1"].Find(t, "apps/v1", "Deployment", ns, "web").GetUID()
	fleet.Hub.Remove(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "first")
	waitFor(t, "the policy goes", false, func() bool {
		return fleet.Hub.Find(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "first") != nil
	})
	waitFor(t, "the hub has let go of the template", "", func() string {
		return fleet.Hub.Find(t, "apps/v1", "Deployment", ns,
			"web").GetAnnotations()[policyv1alpha1.PropagationPolicyNameAnnotation]
	})
	if wrong := lacks(t, "apps/v1", "Deployment", ns, "web", "m1"); wrong != "" {
		t.Errorf("without its policy: %s", wrong)
	}

	fleet.Hub.Apply(t, policy(ns, "second", "apps/v1", "Deployment", placedOn("m1", "m2")))
	kit.Eventually(t, "the next policy sends it further", func() string {
		return applied(t, ns, "web-deployment", "m1", "m2")
	})
	if after := fleet.Members["m1"].Find(t, "apps/v1", "Deployment", ns, "web").GetUID(); after != before {
		t.Error("the Deployment in m1 was made anew between the policies")
	}
	fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "second",
		func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedStringSlice(u.Object, []string{"m2"}, "spec", "placement", "clusterAffinity",
				"clusterNames")
		})
	kit.Eventually(t, "a changed placement takes it out of m1", func() string {
		return lacks(t, "apps/v1", "Deployment", ns, "web", "m2")
	})
}

func TestClusterScopedTemplatesGoByClusterPolicies(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation("", ns,
		"{resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "+ns+"}], placement: "+
			placedOn("m1", "m2")+"}"))
	fleet.Hub.Apply(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+ns+`}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`)
	const group = "rbac.authorization.k8s.io/v1"
	kit.Eventually(t, "it is in m1 and m2", func() string { return lacks(t, group, "ClusterRole", "", ns, "m1", "m2") })
	b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ClusterResourceBinding", "", ns+"-clusterrole")
	if b == nil || b.GetFinalizers()[0] != workv1alpha2.ClusterBindingFinalizer {
		t.Fatalf("its binding is %v", b)
	}
	in := fleet.Members["m1"].Find(t, group, "ClusterRole", "", ns)
	if in.GetAnnotations()[workv1alpha2.ClusterResourceBindingNameAnnotation] != b.GetName() ||
		in.GetLabels()[workv1alpha2.ClusterResourceBindingPermanentIDLabel] == "" ||
		in.GetLabels()[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] == "" {
		t.Errorf("the member's object has labels %v and annotations %v", in.GetLabels(), in.GetAnnotations())
	}
	fleet.Members["m1"].Change(t, group, "ClusterRole", "", ns,
		func(u *unstructured.Unstructured) { u.Object["rules"] = []any{} })
	kit.Eventually(t, "drift the hub corrects it", func() string {
		if rules, _ := inMember(t, "m1", group, "ClusterRole", "", ns, "rules").([]any); len(rules) != 1 {
			return fmt.Sprintf("rules are %v", rules)
		}
		return ""
	})
	fleet.Hub.Remove(t, group, "ClusterRole", "", ns)
	kit.Eventually(t, "deletion goes all the way down", func() string { return lacks(t, group, "ClusterRole", "", ns) })
	waitFor(t, "the binding goes", false, func() bool {
		return fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ClusterResourceBinding", "", ns+"-clusterrole") != nil
	})
}
