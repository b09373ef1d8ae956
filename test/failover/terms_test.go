package failover

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/test/kit"
)

// nextTerm has a Deployment without replicaScheduling, and its Service, in the first of two affinity terms. Both move
// to the second when their cluster is drained, and others when it is lost. They do not return with it.
func nextTerm(t *testing.T) {
	v := joined(t, "first-term")
	drained := newWhole(t, v)
	drained.breaks(late, func() { taint(t, v, true) })
	drained.moves(t, v)
	drained.mends(func() { taint(t, v, false) })
	drained.ended(t, v, "drained, with a next affinity term")

	lost := newWhole(t, v)
	lost.breaks(silent, v.Kill)
	lost.noticed()
	lost.moves(t, v)
	lost.mends(func() { v.restart(t) })
	lost.ended(t, v, "lost, with a next affinity term")
}

// whole is a drill with the Deployment and the Service of the same name.
type whole struct{ *drill }

func newWhole(t *testing.T, v *victim) whole {
	t.Helper()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: whole, namespace: %[1]s}
spec: {selector: {app: whole}, ports: [{port: 80}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: whole, namespace: %[1]s}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: whole}
  - {apiVersion: v1, kind: Service, name: whole}
  failover: {cluster: {purgeMode: Gracefully}}
  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [%[2]s]}
    - {affinityName: second, clusterNames: [%[3]s]}`, ns, v.Name, home)+deployment(ns, "whole", 2, "1m", ""))
	d := whole{newDrill(t, fleet, ns, []kit.Cluster{v.client, fleet.Members[home]}, []string{v.Name},
		map[string]int32{"whole": 2})}
	kit.Eventually(t, "the Service is in the first cluster", func() string { return d.serves(t, v.client, true) })
	return d
}

// serves returns what is wrong if the Service is not in a member as it should be.
func (d whole) serves(t *testing.T, c kit.Cluster, want bool) string {
	t.Helper()
	if is := c.Find(t, "v1", "Service", d.ns, "whole") != nil; is != want {
		return fmt.Sprintf("%s has the Service: %v, want %v", c.Name, is, want)
	}
	return ""
}

// moves expects all to be at home, and that nothing was said to prevent it.
func (d whole) moves(t *testing.T, v *victim) {
	t.Helper()
	d.replaced()
	kit.Eventually(t, "the Service is in the second cluster", func() string {
		return d.serves(t, fleet.Members[home], true)
	})
	for _, kind := range []string{"Deployment", "Service"} {
		if said := fleet.Hub.Messages(t, kind, d.ns, "whole", "EvictWorkloadFromClusterFailed"); len(said) > 0 {
			t.Errorf("the %s has events that it stays in %s: %q", kind, v.Name, said)
		}
	}
}

// ended expects all to be at home alone when the member is back.
func (d whole) ended(t *testing.T, v *victim, fault string) {
	t.Helper()
	d.back()
	kit.Eventually(t, "the Service has left its first cluster", func() string { return d.serves(t, v.client, false) })
	d.ends(fault, false)
}

// taint drains a member, or ends that.
func taint(t *testing.T, v *victim, drained bool) {
	t.Helper()
	fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", v.Name, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "taints")
		if drained {
			u.Object["spec"].(map[string]any)["taints"] = []any{map[string]any{"key": "maintenance",
				"effect": string(corev1.TaintEffectNoExecute)}}
		}
	})
}
