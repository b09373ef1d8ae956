package pull

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// loadedWeb is a Deployment in p15 that a FederatedHPA scales from 2 to 4 replicas, and its Service, which p15 provides
// to push.
const loadedWeb = `
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: %[1]s}, spec: {
 resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [p15]},
 replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %[1]s}, spec: {replicas: 2,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {
 containers: [{name: main, image: nginx, resources: {requests: {cpu: 100m}}}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: %[1]s}, spec: {
 selector: {app: web}, ports: [{name: http, port: 80}]}}
---
{apiVersion: networking.karmada.io/v1alpha1, kind: MultiClusterService, metadata: {name: web, namespace: %[1]s}, spec: {
 types: [CrossCluster], providerClusters: [{name: p15}], consumerClusters: [{name: push}]}}
---
{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {name: web, namespace: %[1]s}, spec: {
 scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 4,
 metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}}
`

// The hub reads metrics, endpoints and objects of the cluster through the tunnel of its agent.
func TestAutoscalersServicesAndUsersReadAPullCluster(t *testing.T) {
	kit.Long(t)
	m, member := fleet.StartMember(t, "p15")
	register(t, m, "p15")
	startAgent(t, m, "p15")
	becomes(t, "p15", "True")
	ns := fleet.Namespace(t)
	for _, u := range fleet.Hub.Apply(t, fmt.Sprintf(loadedWeb, ns)) {
		if kind := u.GetKind(); kind == "FederatedHPA" || kind == "MultiClusterService" {
			fleet.Hub.RemoveAtEnd(t, u)
		}
	}
	pods := func() []corev1.Pod {
		var list corev1.PodList
		if err := member.List(t.Context(), &list, client.InNamespace(ns), client.MatchingLabels{"app": "web"}); err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
			return p.DeletionTimestamp != nil || p.Status.PodIP == ""
		})
	}

	// 1. The load in the cluster decides how many replicas there are.
	patch := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"kwok.x-k8s.io/usage-cpu": "100m"}}}`))
	kit.Eventually(t, "the load scales the Deployment", func() string {
		for _, p := range pods() {
			if err := member.Patch(t.Context(), &p, patch); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
		if got := inMember(t, member, ns); got != "4" || len(pods()) != 4 {
			u := fleet.Hub.Find(t, "autoscaling.karmada.io/v1alpha1", "FederatedHPA", ns, "web")
			return fmt.Sprintf("%s replicas; the FederatedHPA is %v", got, kit.Field(u, "status"))
		}
		return ""
	})

	// 2. Another cluster knows its pods.
	kit.Eventually(t, "the cluster push has the addresses of the pods", func() string {
		var want, got []string
		for _, p := range pods() {
			want = append(want, p.Status.PodIP)
		}
		var list discoveryv1.EndpointSliceList
		if err := fleet.Members["push"].List(t.Context(), &list, client.InNamespace(ns),
			client.MatchingLabels{discoveryv1.LabelServiceName: "web"}); err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Items {
			if s.Annotations["endpointslice.karmada.io/provision-cluster"] != "p15" {
				continue
			}
			for _, e := range s.Endpoints {
				got = append(got, e.Addresses...)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			return fmt.Sprintf("it has %q, want %q", got, want)
		}
		return ""
	})

	// 3. Users see its objects beside those of other clusters, and the usage of its pods.
	if out := argosy(t, "get", "pods", "-s", "members", "-n", ns, "-o", "name"); strings.Count(out, "pod/web-") != 4 {
		t.Errorf("the pods are %q", out)
	}
	// The pods that the autoscaler added have another load.
	if out := argosy(t, "top", "pods", "-C", "p15", "-n", ns); strings.Count(out, "web-") != 4 ||
		!strings.Contains(out, "100m") {
		t.Errorf("the usage of the pods is\n%s", out)
	}
}
