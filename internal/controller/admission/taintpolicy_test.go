package admission

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// tolerated returns the tolerations of a policy as "key=seconds".
func tolerated(p *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(p.Object, "spec", "placement", "clusterTolerations")
	var out []string
	for _, t := range list {
		t := t.(map[string]any)
		out = append(out, fmt.Sprintf("%s=%d", strings.TrimPrefix(fields.Text(t, "key"), "cluster.karmada.io/"),
			fields.Number(t, "tolerationSeconds")))
	}
	return strings.Join(out, " ")
}

func TestPoliciesGetDefaultTolerations(t *testing.T) {
	hub := newHubWith(t, Options{Tolerations: &membership.TolerationDefaults{NotReady: 300, Unreachable: 60}})
	const defaults = "not-ready=300 unreachable=60"
	policy := func(kind, placement string) *unstructured.Unstructured {
		text := `{apiVersion: policy.karmada.io/v1alpha1, kind: ` + kind +
			`, metadata: {name: p, namespace: shop}, spec: {resourceSelectors: [{apiVersion: v1, kind: Secret}], placement: {` +
			placement + `}}}`
		if kind == "ClusterPropagationPolicy" {
			text = strings.Replace(text, ", namespace: shop", "", 1)
		}
		return object(t, text)
	}
	for _, kind := range []string{"PropagationPolicy", "ClusterPropagationPolicy"} {
		for placement, want := range map[string]string{
			"": defaults,
			"clusterTolerations: [{key: gpu, operator: Exists}]":                                                                   "gpu=0 " + defaults,
			"clusterTolerations: [{key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]": "not-ready=5 unreachable=60",
			"clusterTolerations: [{operator: Exists}]":                                                                             "=0",
		} {
			stored, warnings, err := hub.write("admin", policy(kind, placement), nil)
			if err != nil || len(warnings) != 1 || tolerated(stored) != want { // the one is about a selector without a name
				t.Errorf("%s {%s} is stored with %q (%q, %v), want %q", kind, placement, tolerated(stored), warnings, err, want)
			}
		}
	}

	// A policy of an older hub has none until its placement changes: until then its bindings are not written.
	old := policy("PropagationPolicy", "clusterAffinity: {clusterNames: [eu]}")
	older := newHub(t)
	stored, _, err := older.write("admin", old, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := stored.DeepCopy()
	next.SetLabels(map[string]string{"team": "a",
		"propagationpolicy.karmada.io/permanent-id": stored.GetLabels()["propagationpolicy.karmada.io/permanent-id"]})
	if err := unstructured.SetNestedField(next.Object, int64(7), "spec", "priority"); err != nil {
		t.Fatal(err)
	}
	if got, _, err := hub.write("admin", next, stored); err != nil || tolerated(got) != "" {
		t.Errorf("another change of an old policy adds %q (%v)", tolerated(got), err)
	}
	if err := unstructured.SetNestedStringSlice(next.Object, []string{"us"}, "spec", "placement", "clusterAffinity",
		"clusterNames"); err != nil {
		t.Fatal(err)
	}
	if got, _, err := hub.write("admin", next, stored); err != nil || tolerated(got) != defaults {
		t.Errorf("a change of an old policy's placement adds %q (%v)", tolerated(got), err)
	}

	// Whoever writes the manifest again that was stored with defaults changes nothing, and needs no right to what it
	// sends.
	stored, _, err = hub.write("admin", old, nil)
	if err != nil {
		t.Fatal(err)
	}
	again := old.DeepCopy()
	again.SetLabels(stored.GetLabels())
	if got, _, err := hub.write("developer", again, stored); err != nil || tolerated(got) != defaults {
		t.Errorf("the same manifest is stored with %q (%v), want %q", tolerated(got), err, defaults)
	}
}

func TestNoExecuteTaintPoliciesNeedTheFlag(t *testing.T) {
	p := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterTaintPolicy, metadata: {name: p}, spec: {
		addOnConditions: [{conditionType: DiskFull, operator: In, statusValues: ["True"]}], taints: [{key: disk, effect: NoExecute}]}}`)
	eu := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: eu}, spec: {syncMode: Push}, status: {conditions: [{type: DiskFull, status: "True"}]}}`)
	newHub(t, eu).refuses("admin", p, nil, "spec.taints[0].effect", "--allow-no-execute-taint-policy")

	hub := newHubWith(t, Options{NoExecuteTaintPolicies: true}, eu)
	stored, warnings, err := hub.write("admin", p, nil)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "all clusters of the fleet (1) match now") {
		t.Fatalf("warned %q (%v), want that every cluster is tainted", warnings, err)
	}
	if _, warnings, err := hub.write("admin", stored, stored); err != nil || len(warnings) > 0 {
		t.Errorf("a write that changes nothing is warned of: %q (%v)", warnings, err)
	}
}
