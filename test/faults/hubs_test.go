package faults

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/test/kit"
)

// anotherHub is a second hub, with a store of its own, until the test ends.
func anotherHub(t *testing.T) (hub *lab.Hub, api kit.Cluster, argosy func(args ...string) (string, error)) {
	t.Helper()
	hub, err := lab.NewHub(fleet.Lab.Hub.Binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := hub.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Stop() })
	config, err := hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	if api, err = kit.Connect("second hub", config); err != nil {
		t.Fatal(err)
	}
	return hub, api, func(args ...string) (string, error) {
		out, err := exec.Command(hub.Binary, append(args, "--kubeconfig", hub.Kubeconfig())...).CombinedOutput()
		return string(out), err
	}
}

// ready waits until a cluster of the hub has that reason in its condition Ready.
func ready(t *testing.T, hub kit.Cluster, cluster, reason string) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("%s: %s has the reason %s", hub.Name, cluster, reason), func() string {
		return expect(conditionOf(hub.Find(t, "cluster.karmada.io/v1alpha1", "Cluster", "", cluster), "Ready", "reason"),
			reason)
	})
}

func conditionOf(u *unstructured.Unstructured, kind, field string) string {
	if u == nil {
		return "there is no such object"
	}
	conditions, _ := kit.Field(u, "status", "conditions").([]any)
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == kind {
			return fmt.Sprint(c[field])
		}
	}
	return ""
}

func expect(got, want string) string {
	if got != want {
		return fmt.Sprintf("it is %q, want %q", got, want)
	}
	return ""
}

func templateFor(ns, value string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: both, namespace: %[1]s}
spec:
  conflictResolution: Overwrite
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: both}]
  placement: {clusterAffinity: {clusterNames: [f1]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: both, namespace: %[1]s}
data: {by: %[2]s}`, ns, value)
}

// The story of the two hubs that undid each other's writes a hundred times a second, and of which one deleted what the
// other had.
func TestTwoHubsDoNotFightOverAMember(t *testing.T) {
	kit.Long(t)
	member, f1 := fleet.Fleet.Members()[0], fleet.Members["f1"]
	_, second, argosy := anotherHub(t)
	first := fleet.Hub
	join := []string{"join", "f1", "--cluster-kubeconfig", member.Kubeconfig}
	ns := fmt.Sprintf("hubs-%d", worlds.Add(1))
	has := func(by string) {
		t.Helper()
		kit.Eventually(t, "f1 has what "+by+" sent", func() string {
			got := f1.Find(t, "v1", "ConfigMap", ns, "both")
			if got == nil {
				return "it has nothing"
			}
			return expect(fmt.Sprint(kit.Field(got, "data", "by")), by)
		})
	}
	version := func() string { return f1.Find(t, "v1", "ConfigMap", ns, "both").GetResourceVersion() }

	// 1. The first hub holds the member; the second may not join it.
	first.Apply(t, templateFor(ns, "first"))
	has("first")
	if out, err := argosy(join...); err == nil || !strings.Contains(out, "another hub") ||
		!strings.Contains(out, "--take-over") {
		t.Fatalf("the second hub joined it (%v): %s", err, out)
	}
	if second.Find(t, "cluster.karmada.io/v1alpha1", "Cluster", "", "f1") != nil {
		t.Error("a refused join left a Cluster")
	}

	// 2. Told to, it takes the member over: the first says so, and stops.
	if out, err := argosy(append(join, "--take-over")...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _, _ = fleet.Lab.Argosy(context.Background(), append(join, "--take-over")...) })
	ready(t, second, "f1", "ClusterReady")
	ready(t, first, "f1", "HeldByAnotherHub")
	second.Apply(t, templateFor(ns, "second"))
	has("second")
	first.Change(t, "v1", "ConfigMap", ns, "both", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "first again", "data", "by")
	})
	was := version()
	kit.Eventually(t, "the Work of the first hub says whose the cluster is", func() string {
		works := &unstructured.UnstructuredList{}
		works.SetAPIVersion("work.karmada.io/v1alpha1")
		works.SetKind("WorkList")
		if err := first.List(t.Context(), works); err != nil {
			return err.Error()
		}
		for i := range works.Items {
			w := &works.Items[i]
			if w.GetNamespace() == "karmada-es-f1" && strings.HasPrefix(w.GetName(), "both-") {
				return expect(conditionOf(w, "Dispatching", "reason"), "HeldByAnotherHub")
			}
		}
		return "there is no such Work"
	})
	kit.Stays(t, "the object in the member", 3*time.Second, func() string { return expect(version(), was) })
	kit.Eventually(t, "an event says that the cluster was taken over", func() string {
		if len(first.Messages(t, "Cluster", "", "f1", "HeldByAnotherHub")) == 0 {
			return "none does"
		}
		return ""
	})
	if out, err := fleet.Lab.Argosy(t.Context(), "status"); err == nil || !strings.Contains(out, "--take-over") {
		t.Errorf("argosy status says (%v):\n%s", err, out)
	}
	if out, _ := fleet.Lab.Argosy(t.Context(), "why", "cluster", "f1"); !strings.Contains(out,
		"this hub writes nothing into the cluster") {
		t.Errorf("argosy why says:\n%s", out)
	}

	// 3. Deleted on the hub that lost it, it stays in the member.
	first.Remove(t, "v1", "ConfigMap", ns, "both")
	kit.Stays(t, "the object in the member", 3*time.Second, func() string { return expect(version(), was) })

	// 4. The first hub takes it back; what the second wrote is not the first's to delete.
	if out, err := fleet.Lab.Argosy(t.Context(), append(join, "--take-over")...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ready(t, first, "f1", "ClusterReady")
	ready(t, second, "f1", "HeldByAnotherHub")
	kit.Stays(t, "the object in the member", 3*time.Second, func() string { return expect(version(), was) })
	first.Apply(t, templateFor(ns, "first once more"))
	has("first once more")

	// 5. The loser leaves without deleting anything.
	was = version()
	if out, err := argosy("unjoin", "f1", "--yes", "--cluster-kubeconfig", member.Kubeconfig); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	kit.Stays(t, "the object in the member", 3*time.Second, func() string { return expect(version(), was) })
	ready(t, first, "f1", "ClusterReady")
	first.Remove(t, "v1", "Namespace", "", ns)
}
