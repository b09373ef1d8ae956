package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/explain/simulate"
	"github.com/argosy-io/argosy/test/kit"
)

// argosySimulate runs the command against the hub, and returns what it printed.
func argosySimulate(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), fleet.Lab.Hub.Binary,
		append([]string{"--kubeconfig=" + kubeconfig, "simulate"}, args...)...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("simulate %v: %v\n%s", args, err, errOut.String())
	}
	return string(out)
}

// ofNamespace are a report's workloads in one namespace: other tests change the rest of the fleet meanwhile.
func ofNamespace(t *testing.T, text, ns string) string {
	t.Helper()
	var r simulate.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var all []simulate.Workload
	for _, w := range r.Workloads {
		if w.Namespace == ns {
			all = append(all, w)
		}
	}
	raw, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Not in parallel: other tests join clusters, so that the hub would have more of them than the file.
func TestSimulationOfFileEqualsHubAndWritesNothing(t *testing.T) {
	const password = "aHVudGVyMg=="
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", "{"+members+", "+
		divided("replicaDivisionPreference: Weighted")+"}"))
	fleet.Hub.Apply(t, policy(ns, "s", "v1", "Secret", "{clusterAffinity: {clusterNames: [m1]}}"))
	fleet.Hub.Apply(t, hungry(ns, "web", 6))
	fleet.Hub.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: %s}\ndata: {password: %s}", ns, password))
	waitFor(t, "it is placed", "m1:2 m2:2 m3:2", func() string { return shares(t, ns, "web-deployment") })
	waitFor(t, "the Secret is placed", "m1:0", func() string { return shares(t, ns, "keys-secret") })
	for _, name := range []string{"web-deployment", "keys-secret"} {
		kit.Eventually(t, name+" is applied in all its members", func() string {
			if b := binding(t, ns, name); len(b.Status.AggregatedStatus) != len(b.Spec.Clusters) {
				return fmt.Sprintf("%d of %d have answered", len(b.Status.AggregatedStatus), len(b.Spec.Clusters))
			}
			return ""
		})
	}
	// A user who may read everything and write nothing.
	reader := newPerson(t, "reader-"+ns, "readers-"+ns)
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: read-%[1]s}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [get, list]}, {nonResourceURLs: ["*"], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: read-%[1]s}
subjects: [{kind: Group, name: readers-%[1]s, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: read-%[1]s, apiGroup: rbac.authorization.k8s.io}`, ns))
	kit.Eventually(t, "the hub knows the reader", func() string {
		return errorText(reader.List(t.Context(), listOf("cluster.karmada.io/v1alpha1", "Cluster")))
	})

	recorded := argosySimulate(t, reader.kubeconfig, "record")
	if strings.Contains(recorded, password) {
		t.Error("the file has the contents of a Secret")
	}
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, []byte(recorded), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][]string{
		nil,
		{"--cluster-removed", "m1"},
		{"--cluster-drained", "m2"},
		{"--scale", ns + "/deployment/web=9", "--cluster-down", "m3"},
	} {
		args := append([]string{"-o", "json"}, change...)
		fromHub := ofNamespace(t, argosySimulate(t, reader.kubeconfig, args...), ns)
		fromFile := ofNamespace(t, argosySimulate(t, reader.kubeconfig, append(args, "--fleet", file)...), ns)
		if fromHub != fromFile {
			t.Errorf("%v: from the hub\n%s\nfrom the file\n%s", change, fromHub, fromFile)
		}
		var found []simulate.Workload
		if err := json.Unmarshal([]byte(fromHub), &found); err != nil || len(found) != 2 {
			t.Fatalf("%v: %d workloads, %v, want the Deployment and the Secret:\n%s", change, len(found), err, fromHub)
		}
		if changed := found[0].Changed(); changed != (change != nil) {
			t.Errorf("%v: the Deployment changes: %v\n%s", change, changed, fromHub)
		}
	}
}

// Not side by side with others: the cluster is tainted, killed and removed.
func TestHubMatchesSimulation(t *testing.T) {
	kit.Long(t)
	const lost = "lost"
	m, _ := startMember(t, lost)
	joined(t, m)
	ns := fleet.Namespace(t)
	placement := "{clusterAffinity: {clusterNames: [m1, m2, " + lost + "]}, %s}"
	fleet.Hub.Apply(t, policy(ns, "divided", "apps/v1", "Deployment",
		fmt.Sprintf(placement, divided("replicaDivisionPreference: Weighted"))))
	fleet.Hub.Apply(t, policy(ns, "whole", "v1", "Service", fmt.Sprintf(placement, "clusterTolerations: []")))
	fleet.Hub.Apply(t, deployment(ns, "web", 9, "example.com/web:1"))
	fleet.Hub.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: %s}\nspec: {selector: {app: web}, ports: [{port: 80}]}", ns))
	placed := func() string { return shares(t, ns, "web-deployment") + ", " + shares(t, ns, "web-service") }
	const whole = "lost:3 m1:3 m2:3, lost:0 m1:0 m2:0"
	waitFor(t, "it is placed", whole, placed)

	predicted := func(change ...string) string {
		t.Helper()
		var found []simulate.Workload
		if err := json.Unmarshal([]byte(ofNamespace(t,
			argosySimulate(t, fleet.Lab.Hub.Kubeconfig(), append(change, "-o", "json")...), ns)), &found); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, w := range found {
			if w.Name != "web" {
				continue
			}
			var at []string
			for _, c := range w.After.Clusters {
				at = append(at, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
			}
			slices.Sort(at)
			all = append(all, strings.Join(at, " "))
		}
		return strings.Join(all, ", ")
	}
	taint := func(all ...any) {
		t.Helper()
		fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", lost,
			func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["taints"] = all })
	}
	rebalance := func(name string) {
		t.Helper()
		// Of two orders within a second, whole seconds tell no order.
		kit.Eventually(t, "the last order is of another second", func() string {
			if asked := binding(t, ns, "web-deployment").Spec.RescheduleTriggeredAt; asked != nil &&
				time.Since(asked.Time) < 2*time.Second {
				return "it is of " + asked.String()
			}
			return ""
		})
		fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: %s-%s}, spec: {workloads: [
			{apiVersion: apps/v1, kind: Deployment, namespace: %[2]s, name: web}, {apiVersion: v1, kind: Service, namespace: %[2]s, name: web}]}}`, name, ns))
	}
	// newcomer is a workload that shows that the scheduler knows of the change: it goes where that allows.
	newcomer := func(name, want string) {
		t.Helper()
		fleet.Hub.Apply(t, deployment(ns, name, 2, "example.com/web:1"))
		waitFor(t, "a new workload avoids the cluster", want, func() string { return shares(t, ns, name+"-deployment") })
	}
	as := func(t *testing.T, what, output string, moves bool) {
		t.Helper()
		if moves == strings.Contains(output, lost) || !moves && output != whole {
			t.Errorf("%s: the simulation said %s", what, output)
		}
		waitFor(t, what, output, placed)
	}

	// ended waits until no eviction is pending: until then the cluster that is left takes nothing.
	ended := func() {
		t.Helper()
		waitFor(t, "the evictions have ended", "0, 0", func() string {
			return fmt.Sprintf("%d, %d", len(binding(t, ns, "web-deployment").Spec.GracefulEvictionTasks),
				len(binding(t, ns, "web-service").Spec.GracefulEvictionTasks))
		})
	}
	t.Run("a NoExecute taint drains the cluster", func(t *testing.T) {
		output := predicted("--taint", lost+"=maintenance:NoExecute")
		taint(map[string]any{"key": "maintenance", "effect": "NoExecute"})
		newcomer("after-the-taint", "m1:1 m2:1")
		as(t, "all of it leaves", output, true)
		ended()
		taint()
		rebalance("return")
		waitFor(t, "and comes back", whole, placed)
	})
	t.Run("a cluster that is drained", func(t *testing.T) {
		output := predicted("--cluster-drained", lost)
		taint(map[string]any{"key": simulate.Drained.Key, "effect": string(simulate.Drained.Effect)})
		newcomer("after-the-drain", "m1:1 m2:1") // the scheduler has seen the taint
		rebalance("drain")
		as(t, "all of it leaves", output, true)
		ended()
		taint()
		attempt := 0 // What is placed before the scheduler has seen the change stays where it is.
		kit.Eventually(t, "a new workload goes there again", func() string {
			attempt++
			name := fmt.Sprintf("after-all-%d", attempt)
			fleet.Hub.Apply(t, deployment(ns, name, 3, "example.com/web:1"))
			placed := ""
			kit.Eventually(t, name+" is placed", func() string {
				if placed = shares(t, ns, name+"-deployment"); placed == "" {
					return "it is not"
				}
				return ""
			})
			if placed != "lost:1 m1:1 m2:1" {
				return placed
			}
			return ""
		})
		rebalance("fill")
		waitFor(t, "and comes back", whole, placed)
	})
	// failsOver has the policies tolerate a lost cluster for a short time, and sets their spec.failover.
	failsOver := func(t *testing.T, rule map[string]any) {
		t.Helper()
		for _, name := range []string{"divided", "whole"} {
			fleet.Hub.Change(t, "policy.karmada.io/v1alpha1", "PropagationPolicy", ns, name, func(u *unstructured.Unstructured) {
				spec := u.Object["spec"].(map[string]any)
				spec["failover"] = rule
				spec["placement"].(map[string]any)["clusterTolerations"] = []any{
					map[string]any{"key": "cluster.karmada.io/not-ready", "operator": "Exists", "effect": "NoExecute",
						"tolerationSeconds": int64(2)}}
			})
		}
		kit.Eventually(t, "the bindings know of it", func() string {
			for _, name := range []string{"web-deployment", "web-service"} {
				if (binding(t, ns, name).Spec.Failover == nil) != (rule == nil) {
					return name + " does not"
				}
			}
			return ""
		})
	}
	failovers := func(t *testing.T, want ...string) {
		t.Helper()
		kit.Eventually(t, "get failovers lists it", func() string {
			list := argosy(t, "get", "failovers", "-n", ns)
			for _, word := range want {
				if !strings.Contains(list, word) {
					return word + " is not in:\n" + list
				}
			}
			return ""
		})
	}
	t.Run("a cluster that is down, with what must never run twice", func(t *testing.T) {
		failsOver(t, map[string]any{"cluster": map[string]any{"purgeMode": "Directly"}})
		output := predicted("--cluster-down", lost)
		m.Kill()
		kit.Eventually(t, "the hub sees it", func() string { return ready(t, lost, metav1.ConditionFalse) })
		// The scheduler goes by the taint, which is a write after that of the condition.
		kit.Eventually(t, "the cluster is tainted", func() string {
			taints := clusterOf(t, lost).Spec.Taints
			if !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoSchedule }) {
				return fmt.Sprint(taints)
			}
			return ""
		})
		newcomer("after-the-fall", "m1:1 m2:1")
		failovers(t, "OldCopyNotDeleted")
		as(t, "what is placed stays", output, false)
		ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
		defer cancel()
		if err := m.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "it is back", func() string { return ready(t, lost, metav1.ConditionTrue) })
	})
	t.Run("a cluster that is down, by default", func(t *testing.T) {
		failsOver(t, nil)
		output := predicted("--cluster-down", lost)
		if workload, service, _ := strings.Cut(output, ", "); strings.Contains(workload, lost) ||
			!strings.Contains(service, lost) {
			t.Errorf("the simulation said %s: the Deployment moves, and the Service stays, because every other cluster has it",
				output)
		}
		m.Kill()
		waitFor(t, "the replicas leave the lost cluster", output, placed)
		failovers(t, "TaintUntolerated", "CopiesEverywhere")
		ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
		defer cancel()
		if err := m.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "it is back", func() string { return ready(t, lost, metav1.ConditionTrue) })
		ended()
		rebalance("after-failover")
		waitFor(t, "and comes back", whole, placed)
	})
	t.Run("a cluster that is removed", func(t *testing.T) {
		output := predicted("--cluster-removed", lost)
		argosy(t, "unjoin", lost, "--yes")
		as(t, "what was placed there goes elsewhere", output, true)
	})
}
