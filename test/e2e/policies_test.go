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

func holderOf(t *testing.T, namespace, name string) func() string {
	return func() string {
		template := fleet.Hub.Find(t, "v1", "ConfigMap", namespace, name)
		b := binding(t, namespace, name+"-configmap")
		if b == nil {
			return claimedBy(template) + " without a binding"
		}
		asClaimed := b.Annotations[policyv1alpha1.PropagationPolicyNameAnnotation] + b.Annotations[policyv1alpha1.ClusterPropagationPolicyNameAnnotation]
		if got := claimedBy(template); got != asClaimed {
			return fmt.Sprintf("%s, but the binding says %s", got, asClaimed)
		}
		return asClaimed
	}
}

func TestTheBestPolicyClaimsATemplateAndTheNextBestFollowsWhenItGoes(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	all := "resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]"
	byLabel := "resourceSelectors: [{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {app: c}}}]"
	byName := "resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c}]"
	inNS := fmt.Sprintf("resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: %s}]", ns)
	ranking := []struct{ namespace, name, spec string }{
		{ns, "z-priority", "{priority: 1, " + all},
		{ns, "z-name", "{" + byName},
		{ns, "z-label", "{" + byLabel},
		{ns, "a-all", "{" + all},
		{ns, "b-all", "{" + all},
		{ns, "a-low", "{priority: -1, " + byName},
		{"", ns + "-z", "{priority: 9, " + inNS},
		{"", ns + "-a", "{" + inNS},
		{"", ns + "-b", "{" + inNS},
	}
	for i := range ranking {
		p := ranking[len(ranking)-1-i]
		fleet.Hub.Apply(t, propagation(p.namespace, p.name, p.spec+", placement: "+to("m1")+"}"))
	}
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	for i, p := range ranking {
		is(t, fmt.Sprintf("rank %d holds it", i), p.name, holderOf(t, ns, "c"))
		kind := "PropagationPolicy"
		if p.namespace == "" {
			kind = "ClusterPropagationPolicy"
		}
		fleet.Hub.Remove(t, "policy.karmada.io/v1alpha1", kind, p.namespace, p.name)
	}
	is(t, "nobody holds it", "", holderOf(t, ns, "c"))
	if wrong := holds(t, "v1", "ConfigMap", ns, "c", "m1"); wrong != "" {
		t.Errorf("the workload runs on without a policy: %s", wrong)
	}
}

func TestAClaimStaysUnlessAPolicyOfHigherPriorityPreempts(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	selector := "resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c}]"
	fleet.Hub.Apply(t, propagation("", ns, fmt.Sprintf("{priority: 50, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: %s}], placement: %s}", ns, to("m3"))))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	is(t, "the cluster policy holds it", ns, holderOf(t, ns, "c"))

	fleet.Hub.Apply(t, propagation(ns, "better", "{priority: 9, "+selector+", placement: "+to("m1")+"}"))
	kit.Stays(t, "a claim stays", quiet, func() string {
		if got := holderOf(t, ns, "c")(); got != ns {
			return got + " holds it"
		}
		return ""
	})
	fleet.Hub.Apply(t, propagation(ns, "any", "{priority: -3, preemption: Always, "+selector+", placement: "+to("m2")+"}"))
	is(t, "any namespaced policy preempts a cluster one", "any", holderOf(t, ns, "c"))
	fleet.Hub.Apply(t, propagation(ns, "higher", "{priority: 4, preemption: Always, "+selector+", placement: "+to("m1")+"}"))
	is(t, "a higher priority preempts", "higher", holderOf(t, ns, "c"))
	kit.Eventually(t, "the template moves", func() string { return holds(t, "v1", "ConfigMap", ns, "c", "m1") })
	fleet.Hub.Apply(t, propagation(ns, "same", "{priority: 4, preemption: Always, "+selector+", placement: "+to("m3")+"}"))
	kit.Stays(t, "the same priority does not preempt", quiet, func() string {
		if got := holderOf(t, ns, "c")(); got != "higher" {
			return got + " holds it"
		}
		return ""
	})
	kit.Eventually(t, "the template's users are told", func() string {
		if told := fleet.Hub.Told(t, "ConfigMap", ns, "c", workv1alpha2.EventPreemptPolicySucceed); len(told) != 2 {
			return fmt.Sprintf("they are told %q", told)
		}
		return ""
	})
	changeSpec(t, "PropagationPolicy", ns, "higher", int64(-9), "priority")
	is(t, "who waits takes over when the holder's priority sinks", "same", holderOf(t, ns, "c"))
}

func TestALazyPolicyTakesEffectWithItsUsersNextChange(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	fleet.Hub.Apply(t, propagation(ns, "lazy", "{activationPreference: Lazy, resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c}], placement: "+to("m1")+"}"))
	kit.Stays(t, "a policy alone activates nothing", quiet, func() string { return holds(t, "v1", "ConfigMap", ns, "c") })
	setData(t, ns, "c", "2")
	kit.Eventually(t, "the user's change activates it", func() string { return holds(t, "v1", "ConfigMap", ns, "c", "m1") })

	changeSpec(t, "PropagationPolicy", ns, "lazy", []any{"m2"}, "placement", "clusterAffinity", "clusterNames")
	kit.Stays(t, "a change of the policy moves nothing", quiet, func() string { return holds(t, "v1", "ConfigMap", ns, "c", "m1") })
	setData(t, ns, "c", "3")
	kit.Eventually(t, "the user's next change does", func() string { return holds(t, "v1", "ConfigMap", ns, "c", "m2") })
}

func TestAPolicyWaitsForTheOverridesThatItDependsOn(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"policy first", "template first"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			ns := fleet.Namespace(t)
			p := propagation(ns, "p", "{dependentOverrides: [o], resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: c}], placement: "+to("m1")+"}")
			c := configMap(ns, "c", "1")
			if order == "policy first" {
				fleet.Hub.Apply(t, p)
				fleet.Hub.Apply(t, c)
			} else {
				fleet.Hub.Apply(t, c)
				fleet.Hub.Apply(t, p)
			}
			kit.Stays(t, "nothing is sent without the override", quiet, func() string {
				if binding(t, ns, "c-configmap") != nil {
					return "there is a binding"
				}
				return ""
			})
			fleet.Hub.Apply(t, override(ns, "o", `{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {from: o}}]}}]}`))
			is[any](t, "with it, it is sent with what the override says", "o", func() any {
				return inMember(t, "m1", "v1", "ConfigMap", ns, "c", "metadata", "labels", "from")
			})
		})
	}
}

func TestASelectorThatGrowsTakesAndOneThatShrinksLetsGo(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, configMap(ns, "a", "1"))
	fleet.Hub.Apply(t, configMap(ns, "b", "1"))
	fleet.Hub.Apply(t, propagation(ns, "p", "{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: a}], placement: "+to("m1")+"}"))
	is(t, "a is held", "p", holderOf(t, ns, "a"))
	selects := func(names ...string) {
		var all []any
		for _, n := range names {
			all = append(all, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": n})
		}
		changeSpec(t, "PropagationPolicy", ns, "p", all, "resourceSelectors")
	}
	selects("a", "b")
	is(t, "b is held too", "p", holderOf(t, ns, "b"))
	kit.Eventually(t, "b is sent", func() string { return applied(t, ns, "b-configmap", "m1") })
	selects("b")
	is(t, "a is let go", "", holderOf(t, ns, "a"))
	kit.Stays(t, "a stays where it is", quiet, func() string { return holds(t, "v1", "ConfigMap", ns, "a", "m1") })
}

func TestATemplateRunsOnWithoutItsPolicyUntilTheNextTakesOver(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "first", "apps/v1", "Deployment", to("m1")))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/web:1"))
	kit.Eventually(t, "it runs in m1", func() string { return holds(t, "apps/v1", "Deployment", ns, "web", "m1") })
	before := fleet.Members["m1"].Find(t, "apps/v1", "Deployment", ns, "web").GetUID()
	fleet.Hub.Remove(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "first")
	is(t, "the policy goes", false, func() bool {
		return fleet.Hub.Find(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "first") != nil
	})
	kit.Stays(t, "it runs on", quiet, func() string { return holds(t, "apps/v1", "Deployment", ns, "web", "m1") })

	fleet.Hub.Apply(t, policy(ns, "second", "apps/v1", "Deployment", to("m1", "m2")))
	kit.Eventually(t, "the next policy sends it further", func() string { return applied(t, ns, "web-deployment", "m1", "m2") })
	if after := fleet.Members["m1"].Find(t, "apps/v1", "Deployment", ns, "web").GetUID(); after != before {
		t.Error("the Deployment in m1 was made anew between the policies")
	}
	fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "second", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(u.Object, []string{"m2"}, "spec", "placement", "clusterAffinity", "clusterNames")
	})
	kit.Eventually(t, "a changed placement takes it out of m1", func() string { return holds(t, "apps/v1", "Deployment", ns, "web", "m2") })
}

// Two policies of the same rank: one has the template, says so, and nothing flaps.
func TestTwoPoliciesThatSelectTheSameTemplateDoNotFight(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	for _, p := range []struct{ name, member string }{{"beta", "m2"}, {"alpha", "m1"}} {
		fleet.Hub.Apply(t, policy(ns, p.name, "v1", "ConfigMap", to(p.member)))
		// The first has to hold it before the second comes: of two that are new alike, the name decides.
		is(t, "who came first holds it", "beta", holderOf(t, ns, "c"))
	}
	kit.Eventually(t, "it is sent by its placement", func() string { return applied(t, ns, "c-configmap", "m2") })
	kit.Eventually(t, "its users are told who took it", func() string {
		if told := fleet.Hub.Told(t, "ConfigMap", ns, "c", workv1alpha2.EventApplyPolicySucceed); len(told) != 1 {
			return fmt.Sprintf("they are told %q", told)
		}
		return ""
	})
	generation := binding(t, ns, "c-configmap").Generation
	version := fleet.Hub.Find(t, "v1", "ConfigMap", ns, "c").GetResourceVersion()
	for _, member := range []string{"m1", "m3", "m1"} {
		changeSpec(t, "PropagationPolicy", ns, "alpha", []any{member}, "placement", "clusterAffinity", "clusterNames")
	}
	kit.Stays(t, "the other policy's changes move nothing", quiet, func() string {
		if got := binding(t, ns, "c-configmap").Generation; got != generation {
			return fmt.Sprintf("the binding is at generation %d, was %d", got, generation)
		}
		if fleet.Hub.Find(t, "v1", "ConfigMap", ns, "c").GetResourceVersion() != version {
			return "the template was written"
		}
		return holds(t, "v1", "ConfigMap", ns, "c", "m2")
	})
}

func TestClusterScopedTemplatesGoByClusterPolicies(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation("", ns, "{resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "+ns+"}], placement: "+to("m1", "m2")+"}"))
	fleet.Hub.Apply(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+ns+`}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]`)
	const group = "rbac.authorization.k8s.io/v1"
	kit.Eventually(t, "it is in m1 and m2", func() string { return holds(t, group, "ClusterRole", "", ns, "m1", "m2") })
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
	fleet.Members["m1"].Change(t, group, "ClusterRole", "", ns, func(u *unstructured.Unstructured) { u.Object["rules"] = []any{} })
	kit.Eventually(t, "drift the hub corrects it", func() string {
		if rules, _ := inMember(t, "m1", group, "ClusterRole", "", ns, "rules").([]any); len(rules) != 1 {
			return fmt.Sprintf("rules are %v", rules)
		}
		return ""
	})
	fleet.Hub.Remove(t, group, "ClusterRole", "", ns)
	kit.Eventually(t, "deletion goes all the way down", func() string { return holds(t, group, "ClusterRole", "", ns) })
	is(t, "the binding goes", false, func() bool {
		return fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ClusterResourceBinding", "", ns+"-clusterrole") != nil
	})
}
