package pull

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit"
)

// workloads are a Deployment and a CloneSet in a namespace, with a policy that sends them to a cluster.
func workloads(ns, cluster string) string {
	const pods = `selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, ` +
		`spec: {containers: [{name: main, image: nginx}]}}`
	return fmt.Sprintf(`
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: %[1]s}, spec: {
 resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}],
 placement: {clusterAffinity: {clusterNames: [%[2]s]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %[1]s}, spec: {replicas: 2, %[3]s}}
---
{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: clone, namespace: %[1]s}, spec: {replicas: 2, %[4]s}}
`, ns, cluster, fmt.Sprintf(pods, "web"), fmt.Sprintf(pods, "clone"))
}

// healthy waits until the bindings of the workloads report that they are healthy in a cluster.
func healthy(t *testing.T, ns, cluster string) {
	t.Helper()
	for _, name := range []string{"web-deployment", "clone-cloneset"} {
		kit.Eventually(t, name+" is healthy in "+cluster, func() string {
			b := &workv1alpha2.ResourceBinding{}
			if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, b); err != nil {
				return err.Error()
			}
			for _, item := range b.Status.AggregatedStatus {
				if item.ClusterName == cluster && item.Applied && string(item.Health) == "Healthy" {
					return ""
				}
			}
			return fmt.Sprintf("its status is %+v", b.Status)
		})
	}
}

func replicas(u *unstructured.Unstructured, n int64) {
	_ = unstructured.SetNestedField(u.Object, n, "spec", "replicas")
}

// inMember returns spec.replicas of the Deployment web in a member.
func inMember(t *testing.T, member kit.Cluster, ns string) string {
	t.Helper()
	return fmt.Sprint(kit.Field(member.Find(t, "apps/v1", "Deployment", ns, "web"), "spec", "replicas"))
}

func TestPullClusterFromTokenToUnregistration(t *testing.T) {
	kit.Long(t)
	m, member := fleet.StartMember(t, "p1")

	// 1. Register. The member gets the agent's Deployment; here, the agent runs as a process.
	register(t, m, "p1")
	deployment := &appsv1.Deployment{}
	if err := member.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "karmada-agent"},
		deployment); err != nil {
		t.Fatal(err)
	}
	if got := clusterOf(t, "p1").Spec; got.SyncMode != "Pull" || got.ID == "" || got.SecretRef != nil ||
		got.APIEndpoint != "" {
		t.Errorf("the cluster is %+v", got)
	}
	running := startAgent(t, m, "p1")
	becomes(t, "p1", "True")
	status := clusterOf(t, "p1").Status
	if status.KubernetesVersion == "" || len(status.APIEnablements) == 0 || status.NodeSummary == nil ||
		status.NodeSummary.ReadyNum != 2 || status.ResourceSummary == nil {
		t.Errorf("the status is %+v", status)
	}

	// 2. Workloads.
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, workloads(ns, "p1"))
	healthy(t, ns, "p1")
	kit.Eventually(t, "the template has the status of the member", func() string {
		u := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
		if fmt.Sprint(kit.Field(u, "status", "readyReplicas")) != "2" {
			return fmt.Sprintf("it is %v", kit.Field(u, "status"))
		}
		return ""
	})

	// 3. Users reach the cluster through its agent.
	kit.Eventually(t, "a user reads the cluster", func() string {
		out, err := fleet.Argosy(t.Context(), "get", "deployments", "-n", ns, "-C", "p1", "-o", "name")
		if err != nil || !strings.Contains(out, "deployment.apps/web") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})

	// 4. A change while the agent is away arrives when it is back, and nothing is recreated.
	before := member.Find(t, "apps/v1", "Deployment", ns, "web").GetUID()
	running.Kill()
	kit.Eventually(t, "requests without an agent fail with the reason", func() string {
		out, err := fleet.Argosy(t.Context(), "get", "deployments", "-n", ns, "-C", "p1")
		if err == nil || !strings.Contains(out, `cluster "p1" is in Pull mode, and its agent is not connected to this hub`) {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) { replicas(u, 3) })
	becomes(t, "p1", "Unknown")
	if got := inMember(t, member, ns); got != "2" {
		t.Errorf("the hub itself acted in the cluster: %s replicas", got)
	}
	first := startAgent(t, m, "p1")
	becomes(t, "p1", "True")
	kit.Eventually(t, "the change arrives", func() string {
		if got := inMember(t, member, ns); got != "3" {
			return got + " replicas"
		}
		return ""
	})
	if after := member.Find(t, "apps/v1", "Deployment", ns, "web").GetUID(); after != before {
		t.Error("the Deployment was recreated")
	}

	// 5. A second agent waits, and acts when the first one ends.
	startAgent(t, m, "p1").Logs(t, "another agent acts for this cluster; this one waits")
	first.Kill()
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) { replicas(u, 4) })
	kit.Eventually(t, "the second agent acts", func() string {
		if got := inMember(t, member, ns); got != "4" {
			return got + " replicas"
		}
		return ""
	})

	// 6. Unregister: the agent deletes what the hub sent, then it is removed itself.
	out := argosy(t, "unregister", "p1", "--yes", "--cluster-kubeconfig", m.Kubeconfig)
	if !strings.Contains(out, "cluster(p1) is unregistered successfully") {
		t.Errorf("printed %q", out)
	}
	if member.Find(t, "apps/v1", "Deployment", ns, "web") != nil ||
		member.Find(t, "apps/v1", "Deployment", "karmada-system", "karmada-agent") != nil ||
		member.Find(t, "v1", "Secret", "karmada-system", "karmada-kubeconfig") != nil {
		t.Error("something is left in the cluster")
	}
	kit.Eventually(t, "the permissions of the agent end", func() string {
		for _, key := range []client.ObjectKey{{Namespace: "karmada-cluster", Name: "p1"}} {
			if err := fleet.Hub.Get(t.Context(), key, &coordinationv1.Lease{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("the Lease: %v", err)
			}
		}
		err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: "system:karmada:p1:agent"}, &rbacv1.ClusterRole{})
		if !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the ClusterRole: %v", err)
		}
		return ""
	})
}

// Works that are gone from the hub without a deletion request, as after a start with an empty store, keep their
// objects.
func TestAgentDeletesNothingThatIsMissingOnTheHub(t *testing.T) {
	kit.Long(t)
	m, member := fleet.StartMember(t, "p2")
	register(t, m, "p2")
	startAgent(t, m, "p2")
	becomes(t, "p2", "True")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, workloads(ns, "p2"))
	healthy(t, ns, "p2")
	uid := member.Find(t, "apps/v1", "Deployment", ns, "web").GetUID()
	// Many deletions by somebody else than the hub are not carried out.
	for i := range 12 {
		fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: c%[1]d, namespace: karmada-es-p2},
spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c%[1]d, namespace: %[2]s}, data: {a: b}}]}}}`, i, ns))
	}
	kit.Eventually(t, "the ConfigMaps are there", func() string {
		if member.Find(t, "v1", "ConfigMap", ns, "c11") == nil {
			return "one is missing"
		}
		return ""
	})
	if err := fleet.Hub.DeleteAllOf(t.Context(), &workv1alpha1.Work{}, client.InNamespace("karmada-es-p2")); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the Works that others deleted are gone", func() string {
		w := &workv1alpha1.Work{}
		if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: "karmada-es-p2", Name: "c11"}, w); !apierrors.
			IsNotFound(err) {
			return fmt.Sprintf("c11: %v", err)
		}
		return ""
	})
	if member.Find(t, "v1", "ConfigMap", ns, "c11") == nil ||
		member.Find(t, "apps/v1", "Deployment", ns, "web").GetUID() != uid {
		t.Error("the agent deleted objects")
	}

	// They are orphans, which the user deletes through the agent.
	kit.Eventually(t, "they are listed", func() string {
		out, err := fleet.Argosy(t.Context(), "orphans", "-C", "p2")
		if err != nil || !strings.Contains(out, "c11") {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
	argosy(t, "orphans", "delete", "configmap", "c11", "-n", ns, "-C", "p2", "--yes")
	if member.Find(t, "v1", "ConfigMap", ns, "c11") != nil || member.Find(t, "v1", "ConfigMap", ns, "c10") == nil {
		t.Error("the orphan c11 is there, or c10 is not")
	}
}
