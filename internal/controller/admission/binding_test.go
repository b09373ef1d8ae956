package admission

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// bindingOf returns a binding of the namespace shop for a Secret of a namespace.
func bindingOf(t *testing.T, version, namespace, name string) *unstructured.Unstructured {
	return object(t, `{apiVersion: work.karmada.io/`+version+`, kind: ResourceBinding, metadata: {name: db-secret, namespace: shop}, spec: {
  resource: {apiVersion: v1, kind: Secret, namespace: `+namespace+`, name: `+name+`}, clusters: [{name: m1}]}}`)
}

func TestWritingBindingNeedsRightToReadTemplate(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.reads = map[string]bool{"bob /secrets shop/db": true, "bob /secrets treasury/db": true}
		for _, version := range []string{"v1alpha1", "v1alpha2"} {
			h.refuses("alice", bindingOf(t, version, "shop", "db"), nil, "you need permission to get secrets",
				`in the namespace "shop"`)
			h.refuses("alice", bindingOf(t, version, "treasury", "db"), nil,
				"is not in the namespace of the ResourceBinding, shop")
			// No user may, not even one who may read it.
			for _, who := range []string{"bob", "admin"} {
				h.refuses(who, bindingOf(t, version, "treasury", "db"), nil, "spec.resource",
					"is not in the namespace of the ResourceBinding, shop")
				h.refuses(who, bindingOf(t, version, "karmada-cluster", "m1"), nil, "spec.resource")
			}
			for _, who := range []string{"bob", "admin", user.APIServerUser} {
				if _, _, err := h.write(who, bindingOf(t, version, "shop", "db"), nil); err != nil {
					t.Errorf("%s of %s: %v", version, who, err)
				}
			}
		}
		h.refuses("admin", object(t, `{apiVersion: work.karmada.io/v1alpha2, kind: ClusterResourceBinding, metadata: {name: db-secret}, spec: {resource: {apiVersion: v1, kind: Secret, namespace: treasury, name: db}}}`),
			nil, "a ClusterResourceBinding can only refer to cluster-scoped objects")
	})
}

// Whatever a binding says is where its template goes, or how.
func TestEachChangeOfABindingAsksForTheSameRight(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.reads = map[string]bool{"bob /secrets shop/db": true}
		stored := bindingOf(t, "v1alpha2", "shop", "db")
		stored.SetResourceVersion("1")
		for what, change := range map[string]func(b *unstructured.Unstructured){
			"a cluster": func(b *unstructured.Unstructured) {
				_ = unstructured.SetNestedSlice(b.Object, []any{map[string]any{"name": "mine"}}, "spec", "clusters")
			},
			"a binding that requires it": func(b *unstructured.Unstructured) {
				_ = unstructured.SetNestedSlice(b.Object,
					[]any{map[string]any{"name": "x", "namespace": "treasury", "clusters": []any{map[string]any{"name": "mine"}}}},
					"spec", "requiredBy")
			},
			"an eviction": func(b *unstructured.Unstructured) {
				_ = unstructured.SetNestedSlice(b.Object,
					[]any{map[string]any{"fromCluster": "m1", "reason": "a", "producer": "p"}}, "spec", "gracefulEvictionTasks")
			},
			"overwriting": func(b *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(b.Object, "Overwrite", "spec", "conflictResolution")
			},
			"a placement": func(b *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(b.Object, map[string]any{}, "spec", "placement")
			},
			"an annotation": func(b *unstructured.Unstructured) {
				b.SetAnnotations(
					map[string]string{"argosy.io/routed-to": "mine"})
			},
			"a label": func(b *unstructured.Unstructured) {
				b.SetLabels(map[string]string{"binding.karmada.io/managed-by": "me"})
			},
		} {
			changed := stored.DeepCopy()
			change(changed)
			h.refuses("alice", changed, stored, "you need permission to get secrets")
			if _, _, err := h.write("bob", changed, stored); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		elsewhere := bindingOf(t, "v1alpha2", "treasury", "db")
		elsewhere.SetResourceVersion("1")
		h.refuses("bob", elsewhere, stored, "is not in the namespace of the ResourceBinding")
		// One that is older than the rule is not held, and is no way in.
		elsewhere, _, err := h.write(user.APIServerUser, elsewhere, nil)
		if err != nil {
			t.Fatal(err)
		}
		free := elsewhere.DeepCopy()
		free.SetFinalizers([]string{"mine"})
		if _, _, err := h.write("alice", free, elsewhere); err != nil {
			t.Errorf("a finalizer: %v", err)
		}
		wider := elsewhere.DeepCopy()
		_ = unstructured.SetNestedSlice(wider.Object, []any{map[string]any{"name": "mine"}}, "spec", "clusters")
		h.refuses("bob", wider, elsewhere, `in the namespace "treasury"`)
	})
}

func TestChangingMemberAddressNeedsRightToReadCredentials(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.reads = map[string]bool{"bob /secrets karmada-cluster/m1": true}
		cluster := func(endpoint, namespace string) *unstructured.Unstructured {
			c := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m1, resourceVersion: "1"}, spec: {syncMode: Push, apiEndpoint: "`+endpoint+`", secretRef: {namespace: `+namespace+`, name: m1}}}`)
			return c
		}
		stored := cluster("https://m1", "karmada-cluster")
		h.refuses("alice", stored, nil, `you need permission to get secrets "m1" in the namespace "karmada-cluster"`)
		h.refuses("bob", cluster("https://mine", "treasury"), stored, `in the namespace "treasury"`)
		h.refuses("alice", cluster("https://mine", "karmada-cluster"), stored, "the hub sends the credentials of a cluster")
		if _, _, err := h.write("bob", cluster("https://m1.example.com", "karmada-cluster"), stored); err != nil {
			t.Error(err)
		}
		// A user with credentials for one member cannot redirect requests for other clusters to its address.
		h.reads["eve /secrets eve/m1"] = true
		h.refuses("eve", cluster("https://eve", "eve"), stored,
			`you need permission to get secrets "m1" in the namespace "karmada-cluster"`)
		bare := stored.DeepCopy()
		unstructured.RemoveNestedField(bare.Object, "spec", "secretRef")
		h.refuses("eve", bare, stored, `in the namespace "karmada-cluster"`)
		tainted := stored.DeepCopy()
		_ = unstructured.SetNestedSlice(tainted.Object, []any{map[string]any{"key": "a", "effect": "NoSchedule"}}, "spec",
			"taints")
		if _, _, err := h.write("alice", tainted, stored); err != nil {
			t.Errorf("a taint: %v", err)
		}
	})
}

// Who may update Clusters, and has a service account that is let into one, would be in the member who has that account
// there.
func TestLetInSystemNamesOnlyWithImpersonationRights(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		cluster := func(names string) *unstructured.Unstructured {
			c := object(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m1, resourceVersion: "1"}, spec: {syncMode: Push, apiEndpoint: "https://m1"}}`)
			if names != "" {
				c.SetAnnotations(map[string]string{wellknown.SystemNamesAnnotation: names})
			}
			return c
		}
		const robot, nodes = "system:serviceaccount:ci:robot", "system:nodes"
		h.may = map[string]bool{"op impersonate serviceaccounts ci": true, "sys impersonate users ": true,
			"sys impersonate groups ": true, "half impersonate users ": true}
		for _, c := range []struct {
			who, was, is string
			refused      string
		}{
			{"joe", "", robot, `you may not impersonate serviceaccounts "robot" on the hub`},
			{"joe", "", "system:masters", `you may not impersonate users "system:masters"`},
			{"joe", robot, robot + "," + nodes, `you may not impersonate users "system:nodes"`},
			{"half", "", nodes, `you may not impersonate groups "system:nodes"`},
			{"op", "", "system:serviceaccount:kube-system:robot", `you may not impersonate serviceaccounts "robot"`},
			{"op", "", robot, ""},
			{"sys", robot, robot + "," + nodes, ""},
			{"joe", robot, robot, ""},
			{"joe", robot + "," + nodes, nodes, ""},
			{"joe", robot, "", ""},
			{"joe", "", "alice, system:authenticated", ""}, // has no effect
		} {
			_, _, err := h.write(c.who, cluster(c.is), cluster(c.was))
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%s makes %q of %q: %v, want %q", c.who, c.is, c.was, err, c.refused)
			}
		}
		if _, _, err := h.write("joe", cluster(robot), nil); err == nil {
			t.Error("a new Cluster has it")
		}
	})
}
