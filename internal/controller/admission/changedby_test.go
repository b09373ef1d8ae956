package admission

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestPoliciesNameTheUserOfTheLastChange(t *testing.T) {
	const (
		propagation = `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [eu]}}}`
		override    = `spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], overrideRules: [{overriders: {plaintext: [{path: /data/a, operator: add, value: b}]}}]}`
	)
	for kind, spec := range map[string]string{"PropagationPolicy": "namespace: shop}, " + propagation,
		"ClusterPropagationPolicy": "}, " + propagation, "OverridePolicy": "namespace: shop}, " + override,
		"ClusterOverridePolicy": "}, " + override} {
		t.Run(kind, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				h := newHub(t)
				// write checks whom the stored policy names.
				write := func(username, want string, obj, old *unstructured.Unstructured) *unstructured.Unstructured {
					t.Helper()
					stored, _, err := h.write(username, obj, old)
					if err != nil {
						t.Fatal(err)
					}
					if by := stored.GetAnnotations()[wellknown.ChangedByAnnotation]; by != want {
						t.Errorf("after a write of %s the policy names %q, want %q", username, by, want)
					}
					return stored
				}
				// claiming returns a copy of a policy that names another user.
				claiming := func(p *unstructured.Unstructured, name string) *unstructured.Unstructured {
					p = p.DeepCopy()
					p.SetAnnotations(map[string]string{wellknown.ChangedByAnnotation: name, "note": name})
					return p
				}
				fresh := object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: `+kind+`, metadata: {name: p, `+spec+`}`)
				stored := write("admin", "admin", claiming(fresh, "boss"), nil)

				t.Log("a write that keeps the spec keeps the name, also if the client sends another one or none")
				write("mallory", "admin", claiming(stored, "boss"), stored)
				without := stored.DeepCopy()
				without.SetAnnotations(nil)
				write("mallory", "admin", without, stored)

				t.Log("a change of the spec names its user")
				changed := claiming(stored, "boss")
				if err := unstructured.SetNestedSlice(changed.Object, []any{map[string]any{"apiVersion": "v1",
					"kind": "ConfigMap", "name": "a"}}, "spec", "resourceSelectors"); err != nil {
					t.Fatal(err)
				}
				changed = write("ann", "ann", changed, stored)

				t.Log("a policy of an older hub names nobody until its spec changes")
				older := changed.DeepCopy()
				older.SetAnnotations(nil)
				write("mallory", "", claiming(older, "boss"), older)

				t.Log("a long name is cut")
				long := strings.Repeat("x", 2*longestUser)
				write(long, long[:longestUser-len("…")]+"…", changed, stored)
			})
		})
	}
}
