package admission

import (
	"fmt"
	"github.com/argosy-io/argosy/test/kit/membertest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Role that an administrator wrote gives in a member what an override makes of it.
func TestOverrideCannotEscalateRights(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.mayCreateCPP["developer"] = true
		policy := func(kind, namespace, selectors, overriders string) *unstructured.Unstructured {
			p := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: `+kind+
				`, metadata: {name: o}, spec: {resourceSelectors: [`+selectors+`], overrideRules: [{overriders: {`+overriders+
				`}}]}}`)
			p.SetNamespace(namespace)
			return p
		}
		const role, binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: b}`
		const rules = `plaintext: [{path: /rules, operator: replace, value: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}]`
		for _, c := range []struct{ selectors, overriders, path string }{
			{role, rules, "/rules"},
			{"", rules, "/rules"},
			{`{apiVersion: v1, kind: ConfigMap}, ` + role, rules, "/rules"},
			{role, `plaintext: [{path: /rules/0/verbs/-, operator: add, value: "*"}]`, "/rules/0/verbs/-"},
			{binding, `plaintext: [{path: /metadata/labels/a, operator: add, value: b}, {path: /subjects/0/name, operator: replace, value: developer}]`, "/subjects/0/name"},
			{binding, `plaintext: [{path: /roleRef, operator: replace, value: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}]`, "/roleRef"},
			{binding, `imageOverrider: [{predicate: {path: /roleRef/name}, component: Repository, operator: replace, value: cluster-admin}]`, "/roleRef/name"},
			{binding, `fieldOverrider: [{fieldPath: /subjects/0/name, yaml: [{subPath: /a, operator: replace, value: developer}]}]`, "/subjects/0/name"},
			{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}`,
				`plaintext: [{path: /aggregationRule/clusterRoleSelectors, operator: add, value: []}]`,
				"/aggregationRule/clusterRoleSelectors"},
			{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}`,
				`labelsOverrider: [{operator: add, value: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}]`,
				"/metadata/labels/rbac.authorization.k8s.io~1aggregate-to-view"},
			{`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}`,
				`plaintext: [{path: /metadata/labels, operator: add, value: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}]`, "/metadata/labels"},
		} {
			for kind, namespace := range map[string]string{"OverridePolicy": "shop", "ClusterOverridePolicy": ""} {
				p := policy(kind, namespace, c.selectors, c.overriders)
				which := "clusterroles.rbac.authorization.k8s.io in the cluster"
				if namespace != "" {
					which = `roles.rbac.authorization.k8s.io in namespace "shop"`
				}
				h.refuses("developer", p, nil, fmt.Sprintf(
					"an overrider of %q changes permissions in members, for which you need permission to escalate %s", c.path, which))
				if _, _, err := h.write("admin", p, nil); err != nil {
					t.Errorf("who may give any right is refused: %v", err)
				}
			}
		}
		half := policy("OverridePolicy", "shop", role, rules)
		h.may = map[string]bool{"developer escalate roles shop": true}
		h.refuses("developer", half, nil, "permission to bind roles")
		h.may["developer bind roles shop"] = true
		if _, _, err := h.write("developer", half, nil); err != nil {
			t.Errorf("who may give any right in the namespace is refused there: %v", err)
		}
		h.may = nil
		for what, p := range map[string]*unstructured.Unstructured{
			"rules of another kind": policy("OverridePolicy", "shop", `{apiVersion: networking.k8s.io/v1, kind: Ingress}`,
				rules),
			"a label": policy("OverridePolicy", "shop", role,
				`labelsOverrider: [{operator: add, value: {a: b}}]`),
			"whatever has no such way": policy("OverridePolicy", "shop", "",
				`plaintext: [{path: /metadata/labels, operator: add, value: {a: b}}, {path: /spec/rules, operator: add, value: []}]`),
		} {
			if _, _, err := h.write("developer", p, nil); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		stored, _, err := h.write("admin", half, nil)
		if err != nil {
			t.Fatal(err)
		}
		labelled := stored.DeepCopy()
		labelled.SetAnnotations(map[string]string{"a": "b"})
		if _, _, err := h.write("developer", labelled, stored); err != nil {
			t.Errorf("an update of something else: %v", err)
		}
		h.refuses("developer", policy("OverridePolicy", "shop", "", rules), stored, "changes permissions in members")
	})
}

// A member has other readers than the hub: who may not read a Secret does not say where it goes.
func TestSendingSecretsNeedsRightToReadThem(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.mayCreateCPP["developer"] = true
		policy := func(kind, namespace, rest string) *unstructured.Unstructured {
			p := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: `+kind+`, metadata: {name: p}, spec: {`+rest+`}}`)
			p.SetNamespace(namespace)
			return p
		}
		to := func(cluster string) string {
			return ", placement: {clusterAffinity: {clusterNames: [" + cluster + "]}}"
		}
		const one, all, deployment = `{apiVersion: v1, kind: Secret, name: tls}`, `{apiVersion: v1, kind: Secret}`,
			`{apiVersion: apps/v1, kind: Deployment, name: web}`
		for _, c := range []struct{ rest, why string }{
			{"resourceSelectors: [" + one + "]" + to("eu"), "[0]: it selects Secret tls"},
			{"resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, " + all + "]" + to("eu"), "[1]: it selects Secrets"},
			{"propagateDeps: true, resourceSelectors: [" + deployment + "]" + to("eu"),
				"[0]: with propagateDeps, the Secrets that a Deployment refers to are propagated with it"},
			{"propagateDeps: true, resourceSelectors: [{apiVersion: example.com/v1, kind: Unknown}]" + to("eu"),
				"[0]: with propagateDeps, the Secrets that a Unknown refers to are propagated with it"},
		} {
			h.refuses("developer", policy("PropagationPolicy", "shop", c.rest), nil, c.why+
				` into the clusters of the placement, for which you need permission to read secrets in namespace "shop"`)
			h.refuses("developer", policy("ClusterPropagationPolicy", "", c.rest), nil, c.why+
				` into the clusters of the placement, for which you need permission to read secrets in all namespaces`)
			inOne := strings.NewReplacer("kind: Secret", "kind: Secret, namespace: bank", "kind: Deployment",
				"kind: Deployment, namespace: bank", "kind: Unknown", "kind: Unknown, namespace: bank").Replace(c.rest)
			h.refuses("developer", policy("ClusterPropagationPolicy", "", inOne), nil,
				`permission to read secrets in namespace "bank"`)
			for kind, namespace := range map[string]string{"PropagationPolicy": "shop", "ClusterPropagationPolicy": ""} {
				if _, _, err := h.write("admin", policy(kind, namespace, c.rest), nil); err != nil {
					t.Errorf("who may read all: %v", err)
				}
			}
		}

		// Nor what holds Secrets: an operator may write ClusterPropagationPolicies, and reads none of these.
		for _, c := range []struct{ selector, why string }{
			{"{apiVersion: release.argosy.io/v1alpha1, kind: EnclosedManifest}",
				"it selects EnclosedManifests into the clusters of the placement, for which you need permission to read enclosedmanifests in all namespaces"},
			{"{apiVersion: release.argosy.io/v1alpha1, kind: EnclosedManifest, name: e}", "it selects EnclosedManifest e"},
			{"{apiVersion: apps.kruise.io/v1alpha1, kind: ResourceDistribution}", "it selects ResourceDistributions"},
		} {
			p := policy("ClusterPropagationPolicy", "", "resourceSelectors: ["+c.selector+"]"+to("eu"))
			h.refuses("developer", p, nil, c.why)
			stored, _, err := h.write("admin", p, nil)
			if err != nil {
				t.Fatalf("who may read all: %v", err)
			}
			kept := stored.DeepCopy()
			_ = unstructured.SetNestedField(kept.Object, true, "spec", "preserveResourcesOnDeletion")
			h.refuses("developer", kept, stored, "preserveResourcesOnDeletion decides whether that stays in clusters")
			if _, _, err := h.write("admin", kept, stored); err != nil {
				t.Errorf("who may read all: %v", err)
			}
		}

		// Whoever may read them, or could write what names them, sends them.
		h.reads = map[string]bool{"developer /secrets shop/tls": true}
		h.may = map[string]bool{"developer create deployments shop": true}
		for _, rest := range []string{"resourceSelectors: [" + one + "]", "propagateDeps: true, resourceSelectors: [" +
			deployment + "]", "resourceSelectors: [" + deployment + "]"} {
			if _, _, err := h.write("developer", policy("PropagationPolicy", "shop", rest+to("eu")), nil); err != nil {
				t.Errorf("%s: %v", rest, err)
			}
		}
		h.refuses("developer", policy("PropagationPolicy", "shop", "resourceSelectors: ["+all+"]"), nil, "it selects Secrets")

		// One that somebody else wrote goes on, and goes nowhere else.
		h.reads, h.may = nil, nil
		stored, _, err := h.write("admin", policy("PropagationPolicy", "shop", "resourceSelectors: ["+one+"]"+to("eu")), nil)
		if err != nil {
			t.Fatal(err)
		}
		again := func(rest string) *unstructured.Unstructured {
			p := policy("PropagationPolicy", "shop", rest)
			p.SetLabels(stored.GetLabels())
			p.SetFinalizers(stored.GetFinalizers())
			return p
		}
		paused := again("resourceSelectors: [" + one + "], suspension: {dispatching: true}" + to("eu"))
		if _, _, err := h.write("developer", paused, stored); err != nil {
			t.Errorf("a pause sends nothing: %v", err)
		}
		h.refuses("developer", again("preserveResourcesOnDeletion: true, resourceSelectors: ["+one+"]"+to("eu")), stored,
			"it selects Secret tls and preserveResourcesOnDeletion decides whether that stays in clusters, for which you need")
		h.refuses("developer", again("resourceSelectors: ["+one+"]"+to("us")), stored, "it selects Secret tls")
		h.refuses("developer", again("resourceSelectors: ["+all+"]"+to("eu")), stored, "it selects Secrets")
	})
}
