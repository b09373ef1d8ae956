package peers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// injectsAndUpdates is the story of a SidecarSet: OpenKruise's webhook injects it into the pods of a CloneSet, and the
// image of its container is updated in place.
func (k *kruise) injectsAndUpdates(t *testing.T) {
	ns := fleet.Namespace(t)
	set := workload{"apps.kruise.io/v1beta1", "SidecarSet", "", "logs-" + ns, "matchedPods", "readyPods", "updatedPods"}
	fleet.Hub.Apply(t, everywhere(set.apiVersion, set.kind, "", set.name)+fmt.Sprintf(`
---
{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {name: %s}, spec: {
 namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}, selector: {matchLabels: {app: web}},
 updateStrategy: {type: RollingUpdate, maxUnavailable: 100%%},
 containers: [{name: logs, image: "logs:1", podInjectPolicy: BeforeAppContainer, shareVolumePolicy: {type: disabled}}]}}`,
		set.name, ns))
	web := replicated("apps.kruise.io/v1beta1", "CloneSet", ns, "web")
	fleet.Hub.Apply(t, weighted(web.apiVersion, web.kind, ns, web.name)+"\n---\n"+
		cloneSet("v1beta1", ns, web.name, 6, "nginx:1", 0))
	want := map[string]running{"k1": {4, 4, 4}, "k2": {2, 2, 2}}
	k.settles(t, "6 pods run their own container", web, "nginx:1", want)
	k.injected(t, "6 pods have the sidecar", set, ns, web.name, "logs:1", want)
	before := k.uids(t, ns, web.name)

	setsImage(t, set, "logs:2", "spec", "containers")
	k.injected(t, "6 pods have the new sidecar", set, ns, web.name, "logs:2", want)
	if is := k.uids(t, ns, web.name); !maps.Equal(is, before) {
		t.Errorf("the pods were %v and are %v: the sidecar was not updated in place", before, is)
	}
	k.settles(t, "the pods are of the same revision of the CloneSet", web, "nginx:1", want)
}

// injected waits until the pods of an app run the image of a SidecarSet, and the hub shows exactly that.
func (k *kruise) injected(t *testing.T, what string, set workload, ns, app, image string, want map[string]running) {
	t.Helper()
	kit.Eventually(t, what, func() string {
		if is := k.counts(t, ns, app, image); !maps.Equal(is, want) {
			return fmt.Sprintf("the pods are %v, want %v", is, want)
		}
		template, byCluster, health := set.shown(t)
		if sum := want["k1"].add(want["k2"]); template != sum || !maps.Equal(byCluster, want) ||
			health["k1"] != "Healthy" || health["k2"] != "Healthy" {
			return fmt.Sprintf("the pods are %v, the hub shows %v and in the template %v, and the health %v", want, byCluster,
				template, health)
		}
		return ""
	})
}

// keepsOrdinals is the story of an Advanced StatefulSet whose pods have different names in the whole fleet.
func (k *kruise) keepsOrdinals(t *testing.T) {
	ns := fleet.Namespace(t)
	w := replicated("apps.kruise.io/v1beta1", "StatefulSet", ns, "db")
	fleet.Hub.Apply(t, weighted(w.apiVersion, w.kind, ns, w.name)+"\n---\n"+everywhere("v1", "Service", ns, w.name)+
		fmt.Sprintf(`
---
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: %[1]s}, spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}}
---
{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: db, namespace: %[1]s, annotations: {argosy.io/unique-ordinals: "true"}},
 spec: {serviceName: db, replicas: 3, podManagementPolicy: Parallel, selector: {matchLabels: {app: db}},
 updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 100%%, partition: 0}},
 template: {metadata: {labels: {app: db}}, spec: {readinessGates: [{conditionType: InPlaceUpdateReady}],
  containers: [{name: main, image: "db:1", volumeMounts: [{name: data, mountPath: /data}]}]}},
 volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`, ns))
	k.settles(t, "3 pods are divided 2 to 1", w, "db:1", map[string]running{"k1": {2, 2, 2}, "k2": {1, 1, 1}})
	k.ordinals(t, ns, w.name, 3)
	three := k.uids(t, ns, w.name)

	sets(t, w, map[string]any{"spec.replicas": int64(6)})
	k.settles(t, "6 pods are divided 2 to 1", w, "db:1", map[string]running{"k1": {4, 4, 4}, "k2": {2, 2, 2}})
	k.ordinals(t, ns, w.name, 6)
	six := k.uids(t, ns, w.name)
	for name, uid := range three {
		if six[name] != uid {
			t.Errorf("pod %s was recreated", name)
		}
	}

	sets(t, w, map[string]any{"spec.updateStrategy.rollingUpdate.partition": int64(3)})
	setsImage(t, w, "db:2", podContainers...)
	k.settles(t, "a canary of 3 pods is updated", w, "db:2", map[string]running{"k1": {4, 4, 2}, "k2": {2, 2, 1}})
	sets(t, w, map[string]any{"spec.updateStrategy.rollingUpdate.partition": int64(0)})
	k.settles(t, "all pods are updated", w, "db:2", map[string]running{"k1": {4, 4, 4}, "k2": {2, 2, 2}})
	if is := k.uids(t, ns, w.name); !maps.Equal(is, six) {
		t.Errorf("the pods were %v and are %v: they were not updated in place", six, is)
	}

	sets(t, w, map[string]any{"spec.replicas": int64(3)})
	k.settles(t, "3 pods are left", w, "db:2", map[string]running{"k1": {2, 2, 2}, "k2": {1, 1, 1}})
	for name, uid := range k.uids(t, ns, w.name) {
		if six[name] != uid {
			t.Errorf("pod %s was recreated", name)
		}
	}
}

// ordinals checks that the pods of a StatefulSet in all members have the lowest ordinals, each once.
func (k *kruise) ordinals(t *testing.T, ns, name string, n int) {
	t.Helper()
	var is, want []string
	for key := range k.uids(t, ns, name) {
		_, pod, _ := strings.Cut(key, "/")
		is = append(is, pod)
	}
	slices.Sort(is)
	for i := range n {
		want = append(want, fmt.Sprintf("%s-%d", name, i))
	}
	if !slices.Equal(is, want) {
		t.Errorf("the pods are %v, want %v", is, want)
	}
}

// dividesSubsets is the story of a UnitedDeployment whose subsets are divided with it.
func (k *kruise) dividesSubsets(t *testing.T) {
	const template = `metadata: {labels: {app: edge}}, spec: {selector: {matchLabels: {app: edge}}, %s
  template: {metadata: {labels: {app: edge}}, spec: {containers: [{name: main, image: "edge:1"}]}}}`
	for name, workloads := range map[string]struct{ field, strategy string }{
		"Deployments": {"deploymentTemplate", ""},
		"CloneSets": {"cloneSetTemplate",
			"updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 100%}},"},
		"Advanced StatefulSets": {"advancedStatefulSetTemplate",
			"podManagementPolicy: Parallel, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 100%}},"},
	} {
		t.Run(name, func(t *testing.T) {
			ns := fleet.Namespace(t)
			w := replicated("apps.kruise.io/v1beta1", "UnitedDeployment", ns, "edge")
			const subset = "{name: %[1]s, replicas: 50%%, nodeSelectorTerm: {matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}}"
			fleet.Hub.Apply(t, weighted(w.apiVersion, w.kind, ns, w.name)+fmt.Sprintf(`
---
{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {name: edge, namespace: %s}, spec: {replicas: 6,
 selector: {matchLabels: {app: edge}}, template: {%s: {%s}}, topology: {subsets: [%s, %s]}}}`, ns, workloads.field,
				fmt.Sprintf(template, workloads.strategy), fmt.Sprintf(subset, "a"), fmt.Sprintf(subset, "b")))
			k.settles(t, "6 pods are divided 2 to 1", w, "edge:1", map[string]running{"k1": {4, 4, 4}, "k2": {2, 2, 2}})
			k.subsets(t, ns, w.name, map[string]int{"k1/a": 2, "k1/b": 2, "k2/a": 1, "k2/b": 1})
			sets(t, w, map[string]any{"spec.replicas": int64(9)})
			k.settles(t, "9 pods are divided 2 to 1", w, "edge:1", map[string]running{"k1": {6, 6, 6}, "k2": {3, 3, 3}})
			setsImage(t, w, "edge:2", append([]string{"spec", "template", workloads.field}, podContainers...)...)
			k.settles(t, "all pods are updated", w, "edge:2", map[string]running{"k1": {6, 6, 6}, "k2": {3, 3, 3}})
		})
	}
}

// subsets checks how many pods each subset of a UnitedDeployment has, by member and name.
func (k *kruise) subsets(t *testing.T, ns, app string, want map[string]int) {
	t.Helper()
	is := map[string]int{}
	for name, c := range k.members {
		for _, p := range pods(t, c, ns, app) {
			is[name+"/"+p.Labels["apps.kruise.io/subset-name"]]++
		}
	}
	if !maps.Equal(is, want) {
		t.Errorf("the subsets have %v pods, want %v", is, want)
	}
}

// runsOnAllNodes is the story of an Advanced DaemonSet: a pod on each of the two nodes of both members.
func (k *kruise) runsOnAllNodes(t *testing.T) {
	ns := fleet.Namespace(t)
	w := workload{"apps.kruise.io/v1beta1", "DaemonSet", ns, "agent", "currentNumberScheduled", "numberReady",
		"updatedNumberScheduled"}
	fleet.Hub.Apply(t, everywhere(w.apiVersion, w.kind, ns, w.name)+fmt.Sprintf(`
---
{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, metadata: {name: agent, namespace: %s},
 spec: {selector: {matchLabels: {app: agent}}, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0, maxUnavailable: 1}},
 template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: "agent:1"}]}}}}`, ns))
	k.settles(t, "each node has a pod", w, "agent:1", map[string]running{"k1": {2, 2, 2}, "k2": {2, 2, 2}})
	sets(t, w, map[string]any{"spec.updateStrategy.rollingUpdate.partition": int64(1)})
	setsImage(t, w, "agent:2", podContainers...)
	k.settles(t, "one pod of each member is updated", w, "agent:2", map[string]running{"k1": {2, 2, 1}, "k2": {2, 2, 1}})
	sets(t, w, map[string]any{"spec.updateStrategy.rollingUpdate.partition": int64(0)})
	k.settles(t, "all pods are updated", w, "agent:2", map[string]running{"k1": {2, 2, 2}, "k2": {2, 2, 2}})
}

// completesOnAllNodes is the story of a BroadcastJob: a pod completes on each of the two nodes of both members.
func (k *kruise) completesOnAllNodes(t *testing.T) {
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, everywhere("apps.kruise.io/v1beta1", "BroadcastJob", ns, "warm")+fmt.Sprintf(`
---
{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, metadata: {name: warm, namespace: %s}, spec: {completionPolicy: {type: Always},
 template: {metadata: {labels: {app: warm}}, spec: {restartPolicy: Never, containers: [{name: main, image: "warm:1"}]}}}}`, ns))
	kit.Eventually(t, "a pod has completed on each node, as the hub shows", func() string {
		for name, c := range k.members {
			done := 0
			for _, p := range pods(t, c, ns, "warm") {
				if p.Status.Phase == "Succeeded" {
					done++
				}
			}
			if done != 2 {
				return fmt.Sprintf("%d pods in %s have completed", done, name)
			}
		}
		u := fleet.Hub.Find(t, "apps.kruise.io/v1beta1", "BroadcastJob", ns, "warm")
		status, _ := kit.Field(u, "status").(map[string]any)
		if number(status, "desired") != 4 || number(status, "succeeded") != 4 || number(status, "active") != 0 {
			return fmt.Sprintf("the status is %v", status)
		}
		for _, item := range items(t, ns, "warm-broadcastjob") {
			if item.Health != "Healthy" {
				return fmt.Sprintf("the health in %s is %s", item.ClusterName, item.Health)
			}
		}
		return ""
	})
}
