package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/test/kit"
)

// everything is one of each sort of thing that a start might write again: a policy for a namespace, overrides,
// dependencies, replicas divided by room, and an unclaimed object.
func everything(name, ns string) string {
	return strings.NewReplacer("NAME", name, "NS", ns).Replace(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: x-NAME-p, namespace: NS}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: x-NAME-divided}]
  placement:
    clusterAffinity: {clusterNames: [f1, f2]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: x-NAME-o, namespace: NS}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: x-NAME-divided}]
  overrideRules:
  - targetCluster: {clusterNames: [f1]}
    overriders: {imageOverrider: [{component: Tag, operator: replace, value: "2"}], labelsOverrider: [{operator: add, value: {where: f1}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: x-NAME-needed, namespace: NS}
data: {a: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: x-NAME-unclaimed, namespace: NS}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: x-NAME-divided, namespace: NS}
spec:
  replicas: 5
  selector: {matchLabels: {app: divided}}
  template:
    metadata: {labels: {app: divided}}
    spec:
      containers: [{name: c, image: "example.com/i:1", resources: {requests: {cpu: 10m}}, envFrom: [{configMapRef: {name: x-NAME-needed}}]}]`)
}

// versions are the resourceVersions of all that belongs to the world: templates, policies, bindings and Works on the
// hub, and the members' objects.
func versions(t *testing.T, w *world) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := map[string]string{}
	add := func(c kit.Cluster, apiVersion string, kinds ...string) {
		for _, kind := range kinds {
			var list unstructured.UnstructuredList
			list.SetAPIVersion(apiVersion)
			list.SetKind(kind + "List")
			if err := c.List(ctx, &list); err != nil {
				t.Fatal(err)
			}
			for _, u := range list.Items {
				if strings.Contains(u.GetName(), w.name) {
					all[fmt.Sprintf("%s: %s %s/%s", c.Name, kind, u.GetNamespace(), u.GetName())] = u.GetResourceVersion()
				}
			}
		}
	}
	add(fleet.Hub, "policy.karmada.io/v1alpha1", "PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy")
	add(fleet.Hub, "work.karmada.io/v1alpha2", "ResourceBinding", "ClusterResourceBinding")
	add(fleet.Hub, "work.karmada.io/v1alpha1", "Work")
	for _, c := range []kit.Cluster{fleet.Hub, fleet.Members["f1"], fleet.Members["f2"]} {
		add(c, "v1", "ConfigMap", "Namespace")
		add(c, "apps/v1", "Deployment")
		add(c, "rbac.authorization.k8s.io/v1", "ClusterRole")
	}
	return all
}

// calm waits until new templates reach the members and nothing else changes meanwhile, twice in a row. It returns the
// versions.
func calm(t *testing.T, w *world, ns string) map[string]string {
	t.Helper()
	before, calms := versions(t, w), 0
	kit.Eventually(t, "nothing changes any more", func() string {
		w.work(ns, 1)
		kit.Eventually(t, "a new template arrives", w.wrong)
		now := versions(t, w)
		wrong := changed(before, now)
		if calms++; wrong != "" {
			calms = 0
		}
		if before = now; calms < 2 {
			return "changed: " + wrong
		}
		return ""
	})
	return before
}

// changed returns what has another version than before, or is gone.
func changed(before, now map[string]string) string {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if now[key] != before[key] {
			wrong = append(wrong, fmt.Sprintf("%s (%s, before %s)", key, now[key], before[key]))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d objects: %s", len(wrong), len(before), strings.Join(wrong[:min(5, len(wrong))], ", "))
}
