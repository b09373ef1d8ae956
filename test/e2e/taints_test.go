package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/test/kit"
)

// Users cordon a cluster, policies and outages taint it, and nothing that is placed there moves.
func TestTaintsOfACommandAPolicyAndAnOutage(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	m, _ := startMember(t, "tainted")
	joined(t, m)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", "{clusterAffinity: {clusterNames: [tainted, m1]}}"))
	stored := fleet.Hub.Find(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, "p")
	if text := fmt.Sprint(kit.Field(stored, "spec", "placement", "clusterTolerations")); strings.Count(text,
		"tolerationSeconds:300") != 2 {
		t.Errorf("the policy tolerates %s, want the two defaults", text)
	}
	fleet.Hub.Apply(t, configMap(ns, "before", "1"))
	kit.Eventually(t, "both clusters hold it", func() string { return placed(t, ns, "before-configmap", "m1", "tainted") })

	if out := argosy(t, "cordon", "tainted"); out != "tainted cluster cordoned\n" {
		t.Errorf("cordon says %q", out)
	}
	fleet.Hub.Apply(t, configMap(ns, "during", "1"))
	kit.Eventually(t, "what is new avoids the cluster", func() string { return placed(t, ns, "during-configmap", "m1") })
	argosy(t, "uncordon", "tainted")
	kit.Eventually(t, "it goes there after all", func() string {
		return placed(t, ns, "during-configmap", "m1", "tainted")
	})

	taintPolicy := func(effect string) string {
		return `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterTaintPolicy, metadata: {name: ` + ns + `}, spec: {
  targetClusters: {clusterNames: [tainted]}, taints: [{key: outage, effect: ` + effect + `}],
  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ["True"]}], removeOnConditions: [{conditionType: Ready, operator: In, statusValues: ["True"]}]}}`
	}
	if err := fleet.Hub.Create(t.Context(), kit.Object(t, taintPolicy("NoExecute"))); err == nil ||
		!strings.Contains(err.Error(), "--allow-no-execute-taint-policy") {
		t.Errorf("a NoExecute policy: %v, want a refusal that names the flag", err)
	}
	byOutage := kit.Object(t, taintPolicy("NoSchedule"))
	if err := fleet.Hub.Create(t.Context(), byOutage); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Hub.Delete(context.Background(), byOutage); err != nil {
			t.Log(err)
		}
	})

	has := func(want ...string) func() string {
		return func() string {
			var got []string
			for _, taint := range clusterOf(t, "tainted").Spec.Taints {
				got = append(got, taint.ToString())
				if taint.Effect == "NoExecute" && taint.TimeAdded == nil {
					return taint.ToString() + " has no time"
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				return fmt.Sprintf("it has %v, want %v", got, want)
			}
			return ""
		}
	}
	signal(t, m, syscall.SIGSTOP)
	defer signal(t, m, syscall.SIGCONT)
	kit.Eventually(t, "it is lost", func() string { return ready(t, "tainted", metav1.ConditionFalse) })
	kit.Eventually(t, "it is tainted",
		has("cluster.karmada.io/not-ready:NoExecute", "cluster.karmada.io/not-ready:NoSchedule", "outage:NoSchedule"))
	if b := binding(t, ns, "before-configmap"); len(b.Spec.Clusters) != 2 || len(b.Spec.GracefulEvictionTasks) > 0 {
		t.Errorf("the outage moved the binding to %v with %v", b.Spec.Clusters, b.Spec.GracefulEvictionTasks)
	}
	signal(t, m, syscall.SIGCONT)
	kit.Eventually(t, "it is back", func() string { return ready(t, "tainted", metav1.ConditionTrue) })
	kit.Eventually(t, "its taints are gone", has())
	kit.Eventually(t, "both clusters hold it", func() string { return placed(t, ns, "before-configmap", "m1", "tainted") })
}
