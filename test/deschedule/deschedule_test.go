// Package deschedule tells how replicas move after they were placed: on a hub that looks every few seconds, and members
// with one node each.
package deschedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

var fleet *kit.Fleet

func TestMain(m *testing.M) {
	kit.MainLong("deschedule", func(dir string) (_ *kit.Fleet, err error) {
		o := lab.Options{Dir: dir, HubArgs: []string{"--descheduling-interval=2s", "--unschedulable-threshold=4s",
			"--cluster-status-update-frequency=2s"}}
		for _, name := range []string{"m1", "m2"} {
			o.Members = append(o.Members, sim.Member{Name: name, Nodes: 1, NodeCPU: "16", Provider: "lab", Region: "eu",
				Zone: "z1"})
		}
		fleet, err = kit.StartWith(o)
		return fleet, err
	}, m.Run)
}

// deployment is placed by a policy of its own.
func deployment(ns, name string, replicas int, cpu, placement string) string {
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: %[2]s}]
  placement: %[5]s
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers: [{name: c, image: "example.com/c:1", resources: {requests: {cpu: "%[4]s"}}}]
`, ns, name, replicas, cpu, placement)
}

const (
	byRoom = "{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}"
	packed = "{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}"
	inM1   = "{clusterAffinity: {clusterNames: [m1]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}"
)

// placed is where the Deployment's binding is, as "m1:2 m2:2".
func placed(t *testing.T, ns, name string) string {
	t.Helper()
	b := fleet.Hub.Find(t, "work.karmada.io/v1alpha2", "ResourceBinding", ns, name+"-deployment")
	clusters, _ := kit.Field(b, "spec", "clusters").([]any)
	var out []string
	for _, c := range clusters {
		u := &unstructured.Unstructured{Object: c.(map[string]any)}
		out = append(out, fmt.Sprintf("%v:%v", kit.Field(u, "name"), kit.Field(u, "replicas")))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// runs waits until the Deployment is placed so and all of its pods are ready.
func runs(t *testing.T, ns, name, want string, replicas int) {
	t.Helper()
	kit.Eventually(t, name+" runs at "+want, func() string {
		ready := kit.Field(fleet.Hub.Find(t, "apps/v1", "Deployment", ns, name), "status", "readyReplicas")
		if got := placed(t, ns, name); got != want || ready != int64(replicas) {
			return fmt.Sprintf("at %s, %v ready", got, ready)
		}
		return ""
	})
}

// cordon has the nodes of a member take no pods, or take some again.
func cordon(t *testing.T, member string, closed bool) {
	t.Helper()
	var nodes corev1.NodeList
	c := fleet.Members[member]
	if err := c.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		c.Change(t, "v1", "Node", "", n.Name, func(u *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(u.Object, closed, "spec", "unschedulable"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestReplicasMoveFromAClusterWithoutNodes(t *testing.T) {
	kit.Long(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, deployment(ns, "web", 4, "1", byRoom))
	fleet.Hub.Apply(t, deployment(ns, "home", 1, "1", inM1))
	runs(t, ns, "web", "m1:2 m2:2", 4)
	runs(t, ns, "home", "m1:1", 1)

	// The node is drained: no pods are taken, and those on it are gone.
	cordon(t, "m1", true)
	open := false
	t.Cleanup(func() {
		if !open {
			cordon(t, "m1", false)
		}
	})
	if err := fleet.Members["m1"].DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(ns),
		client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	runs(t, ns, "web", "m2:4", 4)
	kit.Eventually(t, "users get an event for one replica at a time", func() string {
		messages := fleet.Hub.Messages(t, "Deployment", ns, "web", "DescheduleBindingSucceed")
		if len(messages) != 2 || !strings.Contains(strings.Join(messages, "\n"),
			"unschedulable for 4s and moved to m2: 1. Result: {m2:4}") {
			return fmt.Sprintf("reported: %q", messages)
		}
		return ""
	})
	kit.Eventually(t, "what may go nowhere else stays, and says why", func() string {
		messages := fleet.Hub.Messages(t, "Deployment", ns, "home", "DescheduleBindingFailed")
		if len(messages) != 1 || !strings.Contains(messages[0],
			"replicas are unschedulable (m1: 1) and are not moved, because no other cluster has capacity") ||
			placed(t, ns, "home") != "m1:1" {
			return fmt.Sprintf("at %s, reported: %q", placed(t, ns, "home"), messages)
		}
		return ""
	})

	cordon(t, "m1", false)
	open = true
	runs(t, ns, "home", "m1:1", 1)
}

func TestClusterOverThresholdGivesReplicas(t *testing.T) {
	kit.Long(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, deployment(ns, "web", 8, "1750m", packed))
	kit.Eventually(t, "all are in one cluster, and use 14 of its 16 CPUs", func() string {
		if got := placed(t, ns, "web"); got != "m1:8" && got != "m2:8" {
			return "at " + got
		}
		return ""
	})
	from := strings.TrimSuffix(placed(t, ns, "web"), ":8")
	runs(t, ns, "web", from+":8", 8)

	policy := fleet.Hub.Apply(t, `
apiVersion: config.karmada.io/v1alpha1
kind: ReplicaSchedulingPolicy
metadata: {name: replica-reschedule}
spec:
  reschedulePolicy:
    enabled: true
    interval: 2s
    threshold:
      cpuUtilization: 80
      memoryUtilization: 80
`)[0]
	want := map[string]string{"m1": "m1:7 m2:1", "m2": "m1:1 m2:7"}[from]
	runs(t, ns, "web", want, 8)
	kit.Eventually(t, "the policy says that no cluster is over it", func() string {
		p := fleet.Hub.Find(t, policy.GetAPIVersion(), policy.GetKind(), "", policy.GetName())
		conditions, _ := kit.Field(p, "status", "conditions").([]any)
		if len(conditions) != 1 || conditions[0].(map[string]any)["reason"] != "BelowThreshold" {
			return fmt.Sprintf("%v", conditions)
		}
		return ""
	})
	if got := placed(t, ns, "web"); got != want {
		t.Errorf("below the threshold it is at %s, want %s", got, want)
	}
}
