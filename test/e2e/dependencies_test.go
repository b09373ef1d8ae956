package e2e

import (
	"fmt"
	"strings"
	"testing"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit"
)

// needing is a Deployment that mounts a ConfigMap, reads a Secret, runs as an account and keeps data in a claim; "" for
// none.
func needing(ns, name, config, secret, account, claim string) string {
	var pod, env, volumes, mounts []string
	if config != "" {
		volumes = append(volumes, fmt.Sprintf("{name: config, configMap: {name: %s}}", config))
		mounts = append(mounts, "{name: config, mountPath: /config}")
	}
	if claim != "" {
		volumes = append(volumes, fmt.Sprintf("{name: data, persistentVolumeClaim: {claimName: %s}}", claim))
		mounts = append(mounts, "{name: data, mountPath: /data}")
	}
	if secret != "" {
		env = append(env, fmt.Sprintf("{secretRef: {name: %s}}", secret))
	}
	if account != "" {
		pod = append(pod, "serviceAccountName: "+account)
	}
	pod = append(pod, "volumes: ["+strings.Join(volumes, ", ")+"]",
		fmt.Sprintf("containers: [{name: c, image: example.com/web:1, envFrom: [%s], volumeMounts: [%s], resources: {requests: {cpu: 10m}}}]",
			strings.Join(env, ", "), strings.Join(mounts, ", ")))
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {%[3]s}`, ns, name, strings.Join(pod, ", "))
}

func withDependencies(ns, name, deployment, placement string) string {
	return propagation(ns, name, "{propagateDeps: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: "+deployment+"}], placement: "+placement+"}")
}

func TestDependenciesFollowTheirWorkload(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, withDependencies(ns, "p", "web", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, needing(ns, "web", "config", "keys", "runner", "data"))
	fleet.Hub.Apply(t, configMap(ns, "config", "1")+"\n---"+fmt.Sprintf(`
{apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: %[1]s}, stringData: {key: secret}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner, namespace: %[1]s}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: %[1]s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, ns))
	for kind, name := range map[string]string{"ConfigMap": "config", "Secret": "keys", "ServiceAccount": "runner",
		"PersistentVolumeClaim": "data"} {
		kit.Eventually(t, kind+" follows, though it came later", func() string {
			return lacks(t, "v1", kind, ns, name, "m1", "m2")
		})
	}
	kit.Eventually(t, "so the Deployment becomes ready", func() string {
		if got := kit.Field(fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web"), "status",
			"readyReplicas"); got != int64(4) {
			return fmt.Sprintf("%v are ready", got)
		}
		return ""
	})

	// The attached binding is one of Karmada's.
	independent, attached := binding(t, ns, "web-deployment"), binding(t, ns, "config-configmap")
	label := names.DependedByLabel(workv1alpha2.DependedByLabelPrefix, ns, "web-deployment")
	if attached.Labels[label] != independent.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] ||
		attached.Spec.Placement != nil ||
		len(attached.Spec.RequiredBy) != 1 || attached.Spec.RequiredBy[0].Name != "web-deployment" ||
		len(attached.Spec.RequiredBy[0].Clusters) != 2 {
		t.Errorf("the attached binding has labels %v, requiredBy %+v", attached.Labels, attached.Spec.RequiredBy)
	}
	if got := independent.Annotations[workv1alpha2.DependenciesAnnotation]; !strings.Contains(got, `"name":"keys"`) {
		t.Errorf("the independent binding lists %q", got)
	}

	changeSpec(t, "PropagationPolicy", ns, "p", []any{"m2", "m3"}, "placement", "clusterAffinity", "clusterNames")
	kit.Eventually(t, "they move with the workload", func() string {
		return lacks(t, "v1", "Secret", ns, "keys", "m2", "m3")
	})
	setData(t, ns, "config", "2")
	waitFor[any](t, "their changes follow", "2", func() any {
		return inMember(t, "m3", "v1", "ConfigMap", ns, "config", "data", "key")
	})

	fleet.Hub.Apply(t, needing(ns, "web", "", "keys", "", ""))
	kit.Eventually(t, "what the template needs no more leaves", func() string {
		return lacks(t, "v1", "ConfigMap", ns, "config")
	})
	waitFor(t, "its binding too", true, func() bool { return binding(t, ns, "config-configmap") == nil })
	if wrong := lacks(t, "v1", "Secret", ns, "keys", "m2", "m3"); wrong != "" {
		t.Errorf("what it still needs stays: %s", wrong)
	}
	fleet.Hub.Remove(t, "apps/v1", "Deployment", ns, "web")
	kit.Eventually(t, "the rest leaves with the workload", func() string { return lacks(t, "v1", "Secret", ns, "keys") })
	if fleet.Hub.Find(t, "v1", "Secret", ns, "keys") == nil {
		t.Error("the hub lost the Secret itself")
	}
}

// What points at a workload is of use only where that is: a spread and budgets follow a CloneSet, in the versions that
// members serve.
func TestCompanionsFollowTheirWorkload(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	kruiseServed(t)
	ns := fleet.Namespace(t)
	const budgets = "policy.kruise.io/v1alpha1"
	spread := func(target string) string {
		return fmt.Sprintf(`{apiVersion: %[2]s, kind: WorkloadSpread, metadata: {name: spread, namespace: %[1]s}, spec: {
			targetRef: {apiVersion: %[2]s, kind: CloneSet, name: %[3]s}, subsets: [{name: a, maxReplicas: 1}, {name: b}]}}`, ns, newKruise, target)
	}
	fleet.Hub.Apply(t, spread("shop"))
	fleet.Hub.Apply(t, propagation(ns, "p", "{propagateDeps: true, resourceSelectors: [{apiVersion: "+newKruise+
		", kind: CloneSet, name: shop}], placement: "+placedOn("m1", "m2")+"}"))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 2, "example.com/shop:1", ""))
	fleet.Hub.Apply(t, fmt.Sprintf(`
{apiVersion: %[2]s, kind: PodUnavailableBudget, metadata: {name: budget, namespace: %[1]s}, spec: {selector: {matchLabels: {app: shop}}, maxUnavailable: 1}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: budget, namespace: %[1]s}, spec: {selector: {matchLabels: {app: shop}}, maxUnavailable: 1}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: other, namespace: %[1]s}, spec: {selector: {matchLabels: {app: db}}, maxUnavailable: 1}}`, ns, budgets))
	in := func(what string, members ...string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			for kind, apiVersion := range map[string]string{"CloneSet": oldKruise, "WorkloadSpread": oldKruise,
				"PodUnavailableBudget": budgets, "PodDisruptionBudget": "policy/v1"} {
				name := map[string]string{"CloneSet": "shop", "WorkloadSpread": "spread"}[kind]
				if name == "" {
					name = "budget"
				}
				if wrong := lacks(t, apiVersion, kind, ns, name, members...); wrong != "" {
					return wrong
				}
			}
			return lacks(t, "policy/v1", "PodDisruptionBudget", ns, "other")
		})
	}
	in("they are where the CloneSet is", "m1", "m2")
	// m1 has OpenKruise 1.8, which knows v1alpha1 alone.
	waitFor[any](t, "a member finds the workload in a version that it serves", oldKruise, func() any {
		return inMember(t, "m1", oldKruise, "WorkloadSpread", ns, "spread", "spec", "targetRef", "apiVersion")
	})
	if out, _ := explain(t, "workloadspread", "spread", "-n", ns); !strings.Contains(out,
		"it is propagated with the object that it refers to, CloneSet shop: ResourceBinding "+ns+"/shop-cloneset") {
		t.Errorf("why says\n%s", out)
	}

	changeSpec(t, "PropagationPolicy", ns, "p", []any{"m2", "m3"}, "placement", "clusterAffinity", "clusterNames")
	in("they move with it", "m2", "m3")
	fleet.Hub.Apply(t, spread("other"))
	kit.Eventually(t, "what points elsewhere leaves", func() string {
		return lacks(t, oldKruise, "WorkloadSpread", ns, "spread")
	})
	fleet.Hub.Apply(t, spread("shop"))
	in("and returns", "m2", "m3")
	fleet.Hub.Remove(t, newKruise, "CloneSet", ns, "shop")
	in("they leave with it")
	if fleet.Hub.Find(t, newKruise, "WorkloadSpread", ns, "spread") == nil {
		t.Error("the hub lost the WorkloadSpread itself")
	}
}
