package override

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// The hub has the template in v1beta1, whatever version its author and the policies use.
func TestPathsAreOfTheVersionInSelectors(t *testing.T) {
	const stored = `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: c, namespace: shop}, spec: {updateStrategy: {type: OnDelete, rollingUpdate: {podUpdatePolicy: InPlaceOnly, partition: 1}}}}`
	const both = `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}, {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet}`
	for _, tc := range []struct{ name, selectors, path, err string }{
		{"v1alpha1", `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}`, "/spec/updateStrategy/partition", ""},
		{"v1beta1", `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet}`, "/spec/updateStrategy/rollingUpdate/partition",
			""},
		{"both, which is the template's", both, "/spec/updateStrategy/rollingUpdate/partition", ""},
		{"an unknown version", `{apiVersion: apps.kruise.io/v7, kind: CloneSet}`, "/spec/x",
			"OverridePolicy shop/o speaks of apps.kruise.io/v7: cannot convert CloneSet"},
	} {
		p := &policyv1alpha1.OverridePolicy{}
		text := `{metadata: {name: o, namespace: shop}, spec: {resourceSelectors: [` + tc.selectors +
			`], overrideRules: [{overriders: {plaintext: [{path: ` + tc.path + `, operator: replace, value: 3}]}}]}}`
		if err := yaml.Unmarshal([]byte(text), p); err != nil {
			t.Fatal(err)
		}
		m, before := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		for _, u := range []*unstructured.Unstructured{m, before} {
			data, err := yaml.YAMLToJSON([]byte(stored))
			if err != nil {
				t.Fatal(err)
			}
			if err := u.UnmarshalJSON(data); err != nil {
				t.Fatal(err)
			}
		}
		got, _, err := Apply(m, &clusterv1alpha1.Cluster{}, []policyv1alpha1.Override{p})
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %s", tc.name, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if diff := cmp.Diff(before.Object, m.Object); diff != "" {
			t.Errorf("%s: the template was changed:\n%s", tc.name, diff)
		}
		if err := unstructured.SetNestedField(before.Object, int64(3), "spec", "updateStrategy", "rollingUpdate",
			"partition"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before.Object, got.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
