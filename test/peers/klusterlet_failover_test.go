package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// spread has a CloneSet over three clusters, which move its pods elsewhere half a minute after they are lost, the least
// that the hub allows. An override gives the klusterlet's pods a registry of their own.
const spread = `
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: web, namespace: %[1]s}, spec: {
 resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}], placement: {
  clusterAffinity: {clusterNames: [%[2]s]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted},
  clusterTolerations: [{key: cluster.karmada.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30},
   {key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]}}}
---
{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: web, namespace: %[1]s}, spec: {
 resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}], overrideRules: [{targetCluster: {clusterNames: [%[3]s]},
  overriders: {imageOverrider: [{component: Registry, operator: add, value: registry.edge}]}}]}}
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web, namespace: %[1]s, annotations: {argosy.io/release-strategy: any}},
 spec: {replicas: 6, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "nginx:1"}]}}}}
`

// pulled starts a member in Pull mode. agent runs the agent of the hub there, again if it has ended, as its Deployment
// does.
func pulled(t *testing.T, name string) (m *kit.Member, c kit.Cluster, agent func()) {
	t.Helper()
	m, c = fleet.StartMember(t, name)
	out := run(t, fleet.Lab.Hub.Binary, "token", "create", "--print-register-command")
	args := append(strings.Fields(out)[1:7:7], "--cluster-name", name, "--cluster-kubeconfig", m.Kubeconfig, "--apply")
	run(t, fleet.Lab.Hub.Binary, args...)
	var p *kit.Process
	agent = func() {
		if p == nil || p.Ended() {
			p = m.Run(t, nil, fleet.Lab.Hub.Binary, "agent", "--cluster-name", name, "--cluster-kubeconfig", m.Kubeconfig,
				"--cluster-status-update-frequency", "2s")
		}
	}
	agent()
	ready(t, name, "True")
	return m, c, agent
}

// A CloneSet runs over a cluster in Push mode, one in Pull mode, and one with a klusterlet: it is released in stages,
// and moves between them when one is lost.
func TestCloneSetOverPushPullAndKlusterlet(t *testing.T) {
	k := newKlusterletIn(t, sim.Member{Name: "klu", Nodes: 2})
	k.register(t)
	k.accept(t)
	ready(t, "klu", "True")
	k.apply(t)
	p, pull, agent := pulled(t, "pul")
	members := map[string]kit.Cluster{"home": fleet.Members["home"], "pul": pull, "klu": k.Cluster}
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(spread, ns, "home, pul, klu", "klu"))

	// images returns how many ready pods of the members that run have each image.
	images := func() string {
		var all []string
		for name, c := range members {
			count := map[string]int{}
			for _, pod := range pods(t, c, ns, "web") {
				if isReady(pod) {
					count[pod.Spec.Containers[0].Image]++
				}
			}
			for image, n := range count {
				all = append(all, fmt.Sprintf("%s: %d %s", name, n, image))
			}
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	becomes := func(what, want string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			if got := images(); got != want {
				return got
			}
			u := fleet.Hub.Find(t, "apps.kruise.io/v1alpha1", "CloneSet", ns, "web")
			if text := fmt.Sprint(kit.Field(u, "status", "readyReplicas")); text != "6" {
				return "the template has " + text
			}
			return ""
		})
	}
	becomes("two pods run in each cluster", "home: 2 nginx:1, klu: 2 registry.edge/nginx:1, pul: 2 nginx:1")

	kit.Eventually(t, "the revision before the change is stored", func() string {
		var list releasev1alpha1.ReleaseRevisionList
		if err := fleet.Hub.List(t.Context(), &list, client.InNamespace(ns)); err != nil || len(list.Items) != 1 {
			return fmt.Sprintf("there are %d revisions: %v", len(list.Items), err)
		}
		return ""
	})

	// 1. A release reaches the cluster with the klusterlet in its stage, not before.
	setsImage(t, replicated("apps.kruise.io/v1alpha1", "CloneSet", ns, "web"), "nginx:2", podContainers...)
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: release.argosy.io/v1alpha1, kind: Release,
		metadata: {name: web-2, namespace: %s}, spec: {targets: [{name: web, ref: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}}],
		strategy: {stages: [{name: home, clusters: {clusterNames: [home]}}, {name: half, clusters: {clusterNames: [klu]}, to: {percent: 50},
		 before: [{name: go, approval: {count: 1}}]}, {name: rest, before: [{name: go, approval: {count: 1}}]}]}}}`, ns))
	// reaches waits for "phase reason stage" of the release.
	reaches := func(want string) {
		t.Helper()
		kit.Eventually(t, "the release is "+want, func() string {
			r := &releasev1alpha1.Release{}
			err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web-2"}, r)
			if got := fmt.Sprint(r.Status.Phase, " ", r.Status.Reason, " ", r.Status.Stage); err != nil || got != want {
				return fmt.Sprint(got, r.Status.Conditions, err)
			}
			return ""
		})
	}
	reaches("Running WaitingForApproval half")
	becomes("the first stage is home", "home: 2 nginx:2, klu: 2 registry.edge/nginx:1, pul: 2 nginx:1")
	run(t, fleet.Lab.Hub.Binary, "release", "approve", "web-2", "-n", ns, "--yes")
	reaches("Running WaitingForApproval rest")
	becomes("the second stage is one pod of the klusterlet",
		"home: 2 nginx:2, klu: 1 registry.edge/nginx:1, klu: 1 registry.edge/nginx:2, pul: 2 nginx:1")
	run(t, fleet.Lab.Hub.Binary, "release", "approve", "web-2", "-n", ns, "--yes")
	reaches("Succeeded Completed ")
	becomes("all pods are new", "home: 2 nginx:2, klu: 2 registry.edge/nginx:2, pul: 2 nginx:2")

	// 2. The API server of the klusterlet's cluster stops: its pods are replaced elsewhere, and gone when it is back.
	lost := func(m *kit.Member, want, back string) {
		t.Helper()
		c := members[m.Name]
		delete(members, m.Name)
		m.Kill()
		becomes(m.Name+" is lost", want)
		if err := m.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, m.Name+" is ready", func() string {
			agent() // it may end later than its cluster
			var c clusterv1alpha1.Cluster
			if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: m.Name}, &c); err != nil || !meta.IsStatusConditionTrue(
				c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
				return fmt.Sprint(c.Status.Conditions, err)
			}
			return ""
		})
		members[m.Name] = c
		becomes(m.Name+" is back", back)
	}
	lost(k.Member, "home: 3 nginx:2, pul: 3 nginx:2", "home: 3 nginx:2, pul: 3 nginx:2")

	// 3. The cluster in Pull mode is lost: the cluster with the klusterlet takes over, with its override.
	lost(p, "home: 3 nginx:2, klu: 3 registry.edge/nginx:2", "home: 3 nginx:2, klu: 3 registry.edge/nginx:2")
}
