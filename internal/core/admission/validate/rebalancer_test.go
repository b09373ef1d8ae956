package validate

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
)

func TestRebalancer(t *testing.T) {
	scoped := func(gk schema.GroupKind) (namespaced, known bool) {
		namespaced = gk == schema.GroupKind{Group: "apps", Kind: "Deployment"}
		return namespaced, namespaced || gk == schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	}
	const at = "spec.workloads[0]."
	for _, c := range []refusal{
		{"a workload of each scope", `{workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web},
			{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: view}], ttlSecondsAfterFinished: 0}`, nil},
		{"another version", `{workloads: [{apiVersion: apps/v1beta1, kind: Deployment, namespace: shop, name: web}]}`, nil},
		{"a kind that is not known", `{workloads: [{apiVersion: example.com/v1, kind: Thing, name: a}]}`, nil},
		{"twice the same", `{workloads: [{apiVersion: example.com/v1, kind: Thing, name: a}, {apiVersion: example.com/v1, kind: Thing, name: a}]}`, nil},
		{"nothing named", `{workloads: [{}]}`, []string{at + "apiVersion: Required value", at + "kind: Required value", at +
			"name: Required value"}},
		{"no version", `{workloads: [{apiVersion: a/b/c, kind: Deployment, namespace: shop, name: web}]}`,
			[]string{at + "apiVersion", "such as v1 or apps/v1"}},
		{"no namespace", `{workloads: [{apiVersion: apps/v1, kind: Deployment, name: web}]}`,
			[]string{at + "namespace: Required value: a Deployment is namespaced: specify its namespace"}},
		{"a namespace too many", `{workloads: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, namespace: shop, name: view}]}`,
			[]string{at + "namespace", "a ClusterRole is cluster-scoped: must not be set"}},
		{"a binding in its workload's place",
			`{workloads: [{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, namespace: shop, name: web-deployment}]}`,
			[]string{at + "kind", "specify the workload itself"}},
		{"a time below 0", `{workloads: [{apiVersion: example.com/v1, kind: Thing, name: a}], ttlSecondsAfterFinished: -1}`,
			[]string{"spec.ttlSecondsAfterFinished", "must be greater than or equal to 0"}},
	} {
		r := &appsv1alpha1.WorkloadRebalancer{}
		parse(t, c.spec, &r.Spec)
		check(t, c.name, Rebalancer(r, scoped), c.want)
	}
}
