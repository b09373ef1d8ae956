package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// The replicas that an autoscaler in a member sets are its own while it is there, of workloads of Kubernetes and of
// OpenKruise, and the hub says whose they are.
func TestAnAutoscalerInAMemberKeepsItsReplicas(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	for _, k := range []struct{ apiVersion, kind string }{
		{"apps/v1", "Deployment"}, {"apps/v1", "StatefulSet"}, {"apps.kruise.io/v1alpha1", "CloneSet"},
		{"apps.kruise.io/v1beta1", "StatefulSet"},
	} {
		t.Run(k.apiVersion+" "+k.kind, func(t *testing.T) {
			t.Parallel()
			ns := fleet.Namespace(t)
			m1 := fleet.Members["m1"]
			fleet.Hub.Apply(t, propagation(ns, "p",
				fmt.Sprintf("{resourceSelectors: [{apiVersion: %s, kind: %s}], placement: %s}", k.apiVersion, k.kind,
					placedOn("m1"))))
			fleet.Hub.Apply(t, anyWorkload(k.apiVersion, k.kind, ns, "shop:1"))
			current := func() int64 {
				n, _ := inMember(t, "m1", k.apiVersion, k.kind, ns, "shop", "spec", "replicas").(int64)
				return n
			}
			replicas := func(what string, want int64) {
				t.Helper()
				waitFor(t, what, want, current)
			}
			scale := func(n int64) {
				t.Helper()
				obj := m1.Find(t, k.apiVersion, k.kind, ns, "shop")
				body := kit.Object(t, fmt.Sprintf(
					`{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: shop, namespace: %s}, spec: {replicas: %d}}`, ns, n))
				if err := m1.SubResource("scale").Update(t.Context(), obj, client.WithSubResourceBody(body),
					client.FieldOwner("kube-controller-manager")); err != nil {
					t.Fatal(err)
				}
			}
			replicas("the hub's", 2)
			m1.Apply(t, fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: by-load, namespace: %s},
				spec: {scaleTargetRef: {apiVersion: %s, kind: %s, name: shop}, minReplicas: 1, maxReplicas: 9}}`, ns, k.apiVersion, k.kind))
			resource := strings.ToLower(k.kind)
			if group, _, _ := strings.Cut(k.apiVersion, "/"); group != "apps" {
				resource += "." + group
			}
			kit.Eventually(t, "why says whose they are", func() string {
				// The hub puts right what is set before it sees the autoscaler, so the number is read again after why knows it:
				// autoscalers set their number again and again.
				if current() != 4 {
					scale(4)
				}
				out, err := command(t, "why", resource, "shop", "-n", ns, "--cluster", "m1")
				if err != nil || !strings.Contains(out, "HorizontalPodAutoscaler by-load") {
					return fmt.Sprint(out, err)
				}
				if n := current(); n != 4 {
					return fmt.Sprintf("%d replicas", n)
				}
				return ""
			})
			fleet.Hub.Change(t, k.apiVersion, k.kind, ns, "shop", func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{"changed": "elsewhere"})
				_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
			})
			waitFor(t, "another change goes out", "elsewhere", func() string {
				v, _ := inMember(t, "m1", k.apiVersion, k.kind, ns, "shop", "metadata", "labels", "changed").(string)
				return v
			})
			replicas("the autoscaler's, as before", 4)
			scale(5)
			replicas("the autoscaler's, anew", 5)
			m1.Remove(t, "autoscaling/v2", "HorizontalPodAutoscaler", ns, "by-load")
			replicas("the hub's again", 3)
		})
	}
}
