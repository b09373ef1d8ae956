package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// An autoscaler that a policy propagates with its workload scales it in the members, and the template follows.
func TestTemplateFollowsAnAutoscalerThatAPolicyPropagates(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	for _, k := range []struct{ apiVersion, kind string }{{"apps/v1", "Deployment"},
		{"apps.kruise.io/v1alpha1", "CloneSet"}, {"apps.kruise.io/v1beta1", "StatefulSet"}} {
		t.Run(k.apiVersion+" "+k.kind, func(t *testing.T) {
			t.Parallel()
			ns := fleet.Namespace(t)
			fleet.Hub.Apply(t, propagation(ns, "p", fmt.Sprintf(`{resourceSelectors: [{apiVersion: %s, kind: %s},
				{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}], placement: {clusterAffinity: {clusterNames: [m1, m2]},
				replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}`, k.apiVersion, k.kind)))
			fleet.Hub.Apply(t, anyWorkload(k.apiVersion, k.kind, ns, "shop:1"))
			fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: by-load, namespace: %s},
				spec: {scaleTargetRef: {apiVersion: %s, kind: %s, name: shop}, minReplicas: 1, maxReplicas: 9}}`, ns, k.apiVersion, k.kind))
			template := func(path ...string) any {
				v, _, _ := unstructured.NestedFieldNoCopy(fleet.Hub.Find(t, k.apiVersion, k.kind, ns, "shop").Object, path...)
				return v
			}
			current := func(member string) int64 {
				n, _ := inMember(t, member, k.apiVersion, k.kind, ns, "shop", "spec", "replicas").(int64)
				return n
			}
			waitFor(t, "the label", "true", func() string {
				v, _ := template("metadata", "labels", "resourcetemplate.karmada.io/retain-replicas").(string)
				return v
			})
			waitFor(t, "the label in m1", "true", func() string {
				v, _ := inMember(t, "m1", k.apiVersion, k.kind, ns, "shop", "metadata", "labels",
					"resourcetemplate.karmada.io/retain-replicas").(string)
				return v
			})
			obj := fleet.Members["m1"].Find(t, k.apiVersion, k.kind, ns, "shop")
			body := kit.Object(t, fmt.Sprintf(
				`{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: shop, namespace: %s}, spec: {replicas: 4}}`, ns))
			if err := fleet.Members["m1"].SubResource("scale").Update(t.Context(), obj, client.WithSubResourceBody(body),
				client.FieldOwner("kube-controller-manager")); err != nil {
				t.Fatal(err)
			}
			kit.Eventually(t, "the template has the sum", func() string {
				n, _ := template("spec", "replicas").(int64)
				if in1, in2 := current("m1"), current("m2"); in1 != 4 || n != in1+in2 {
					return fmt.Sprintf("%d: %d and %d", n, in1, in2)
				}
				return ""
			})
			fleet.Hub.Remove(t, "autoscaling/v2", "HorizontalPodAutoscaler", ns, "by-load")
			waitFor(t, "the label is gone", "", func() string {
				v, _ := template("metadata", "labels", "resourcetemplate.karmada.io/retain-replicas").(string)
				return v
			})
		})
	}
}
