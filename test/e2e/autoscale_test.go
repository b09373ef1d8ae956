package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/test/kit"
)

// loaded is a workload whose pods request 100m of CPU, two replicas divided between m1 and m2.
func loaded(t *testing.T, apiVersion, kind, ns string) {
	t.Helper()
	fleet.Hub.Apply(t, propagation(ns, "p", fmt.Sprintf(`{resourceSelectors: [{apiVersion: %s, kind: %s}], placement: {clusterAffinity: {clusterNames: [m1, m2]},
		replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}}`, apiVersion, kind)))
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: shop, namespace: %s}, spec: {replicas: 2, selector: {matchLabels: {app: shop}},
		template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: main, image: "example.com/shop:1", resources: {requests: {cpu: 100m}}}]}}}}`, apiVersion, kind, ns))
}

// scaler is a FederatedHPA of that workload that keeps its pods at half of the CPU that they request.
func scaler(t *testing.T, apiVersion, kind, ns, annotations string, lowest, highest int) {
	t.Helper()
	for _, u := range fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: autoscaling.karmada.io/v1alpha1, kind: FederatedHPA, metadata: {name: by-load, namespace: %s, annotations: {%s}},
		spec: {scaleTargetRef: {apiVersion: %s, kind: %s, name: shop}, minReplicas: %d, maxReplicas: %d,
		metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}],
		behavior: {scaleDown: {stabilizationWindowSeconds: 0}}}}`, ns, annotations, apiVersion, kind, lowest, highest)) {
		fleet.Hub.RemoveAtEnd(t, u)
	}
}

// use has every pod of the workload in a member use that much CPU, also those that came since the last call.
func use(t *testing.T, member, ns, cpu string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"annotations": {"kwok.x-k8s.io/usage-cpu": %q}}}`, cpu))
	for _, p := range pods(t, member, ns, "shop") {
		if p.Annotations["kwok.x-k8s.io/usage-cpu"] == cpu {
			continue
		}
		if err := fleet.Members[member].Patch(t.Context(), &p, patch); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// autoscaling is what a FederatedHPA says of itself.
func autoscaling(t *testing.T, ns string) autoscalingv1alpha1.FederatedHPAStatus {
	t.Helper()
	f := &autoscalingv1alpha1.FederatedHPA{}
	if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "by-load"},
		f); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return f.Status
}

// scales waits until the workload has the shares, with the load kept up.
func scales(t *testing.T, what, ns, kind, want string, keep func()) {
	t.Helper()
	kit.Eventually(t, what, func() string {
		keep()
		if got := shares(t, ns, "shop-"+strings.ToLower(kind)); got != want {
			s := autoscaling(t, ns)
			return fmt.Sprintf("the shares are %s, want %s; %d replicas of %d desired, metrics %v, conditions %v", got, want,
				s.CurrentReplicas, s.DesiredReplicas, s.CurrentMetrics, s.Conditions)
		}
		return ""
	})
}

// The load of the pods of all clusters decides how many replicas there are, and the policy where.
func TestReplicasFollowTheLoadOfTheFleet(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ apiVersion, kind string }{{"apps/v1", "Deployment"},
		{"apps.kruise.io/v1alpha1", "CloneSet"}, {"apps.kruise.io/v1beta1", "StatefulSet"}} {
		t.Run(k.kind, func(t *testing.T) {
			if k.kind != "CloneSet" {
				kit.Long(t)
			}
			t.Parallel()
			ns := fleet.Namespace(t)
			loaded(t, k.apiVersion, k.kind, ns)
			scaler(t, k.apiVersion, k.kind, ns, "", 2, 6)
			scales(t, "it begins with the minimum", ns, k.kind, "m1:1 m2:1", func() {})
			busy := func() { use(t, "m1", ns, "100m"); use(t, "m2", ns, "100m") }
			scales(t, "under load it grows to the maximum", ns, k.kind, "m1:3 m2:3", busy)
			for _, m := range []string{"m1", "m2"} {
				waitFor(t, "the pods run in "+m, 3, func() int { busy(); return len(pods(t, m, ns, "shop")) })
			}
			kit.Eventually(t, "it says that it would go on", func() string {
				busy()
				s := autoscaling(t, ns)
				for _, c := range s.Conditions {
					if c.Reason == "TooManyReplicas" && c.Status == corev1.ConditionTrue && s.CurrentReplicas == 6 &&
						len(s.CurrentMetrics) == 1 {
						return ""
					}
				}
				return fmt.Sprintf("%+v", s)
			})
			kit.Eventually(t, "an event tells it", func() string {
				if messages := fleet.Hub.Messages(t, "FederatedHPA", ns, "by-load", "SuccessfulRescale"); len(messages) == 0 {
					return "none does"
				}
				return ""
			})
			scales(t, "idle it shrinks to the minimum", ns, k.kind, "m1:1 m2:1",
				func() { use(t, "m1", ns, "1m"); use(t, "m2", ns, "1m") })
		})
	}
}

// Each cluster has an autoscaler of its own with a share of the bounds, and the hub follows what they make.
func TestBoundsAreSplitBetweenTheMembersAutoscalers(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	const apiVersion, kind = "apps.kruise.io/v1alpha1", "CloneSet"
	loaded(t, apiVersion, kind, ns)
	scales(t, "it is placed", ns, kind, "m1:1 m2:1", func() {})
	scaler(t, apiVersion, kind, ns, "argosy.io/autoscaling-mode: Distributed", 2, 8)
	for _, m := range []string{"m1", "m2"} {
		waitFor(t, "the bounds in "+m, "1 to 4", func() string {
			hpa := fleet.Members[m].Find(t, "autoscaling/v2", "HorizontalPodAutoscaler", ns, "by-load")
			return fmt.Sprintf("%v to %v", kit.Field(hpa, "spec", "minReplicas"), kit.Field(hpa, "spec", "maxReplicas"))
		})
	}
	kit.Eventually(t, "both have taken theirs", func() string {
		s := autoscaling(t, ns)
		for _, c := range s.Conditions {
			if c.Type == autoscalingv1alpha1.BoundsSplit && c.Status == corev1.ConditionTrue {
				return ""
			}
		}
		return fmt.Sprintf("%+v", s.Conditions)
	})
	// m1 alone is busy: it alone grows, to its share of the maximum, and the template follows.
	scales(t, "m1 grows, and the placement with it", ns, kind, "m1:4 m2:1", func() { use(t, "m1", ns, "100m") })
	waitFor(t, "the template has as many as there are", int64(5), func() int64 {
		n, _ := kit.Field(fleet.Hub.Find(t, apiVersion, kind, ns, "shop"), "spec", "replicas").(int64)
		return n
	})
	waitFor(t, "the sum is in the status", int32(5), func() int32 { return autoscaling(t, ns).CurrentReplicas })
	waitFor(t, "the pods run in m1", 4, func() int { return len(pods(t, "m1", ns, "shop")) })

	fleet.Hub.Remove(t, "autoscaling.karmada.io/v1alpha1", "FederatedHPA", ns, "by-load")
	for _, m := range []string{"m1", "m2"} {
		waitFor(t, "the autoscaler of "+m+" goes with it", true, func() bool {
			return fleet.Members[m].Find(t, "autoscaling/v2", "HorizontalPodAutoscaler", ns, "by-load") == nil
		})
	}
	if got := shares(t, ns, "shop-cloneset"); got != "m1:4 m2:1" {
		t.Errorf("without autoscalers the shares become %s", got)
	}
}

// What users of a cluster's metrics look for, such as kubectl top, is there through the hub.
func TestMetricsOfMembersAreReadThroughTheHub(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	loaded(t, "apps/v1", "Deployment", ns)
	waitFor(t, "a pod runs", 1, func() int { return len(pods(t, "m1", ns, "shop")) })
	c := through(t, "m1", "")
	groups, err := c.Discovery().ServerGroups()
	if err != nil || !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == "metrics.k8s.io"
	}) {
		t.Errorf("m1 does not list metrics.k8s.io: %v", err)
	}
	kit.Eventually(t, "its CPU is known", func() string {
		raw, err := c.CoreV1().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces/"+ns+
			"/pods").Param("labelSelector", "app=shop").DoRaw(t.Context())
		if err != nil {
			return err.Error()
		}
		var list unstructured.UnstructuredList
		if err := json.Unmarshal(raw, &list); err != nil {
			return err.Error()
		}
		if len(list.Items) != 1 || !strings.Contains(fmt.Sprint(list.Items[0].Object["containers"]), "cpu:20m") {
			return string(raw)
		}
		return ""
	})
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("there is no kubectl here")
		return
	}
	for _, what := range [][]string{{"pods", "-n", ns}, {"nodes"}} {
		out, err := exec.CommandContext(t.Context(), kubectl,
			append([]string{"--kubeconfig", fleet.Lab.Hub.Kubeconfig(), "--server", fleet.Hub.Config.Host + proxy.Path("m1"),
				"top"}, what...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "CPU") {
			t.Errorf("kubectl top %v: %v, it printed %s", what, err, out)
		}
	}
}
