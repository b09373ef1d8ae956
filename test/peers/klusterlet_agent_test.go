package peers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// The agent of the hub runs beside the agents of Open Cluster Management: users reach the cluster through it, and the
// klusterlet still is the one that acts there.
func TestAgentBesideAKlusterlet(t *testing.T) {
	k := newKlusterletIn(t, sim.Member{Name: "both", Nodes: 2})
	k.register(t)
	k.accept(t)
	ready(t, "both", "True")
	k.apply(t)
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(`
{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: p, namespace: %[1]s}, spec: {
 resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [both]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %[1]s}, spec: {replicas: 1,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {
 containers: [{name: main, image: nginx}]}}}}
`, ns))
	says := func(what, want string, args ...string) {
		t.Helper()
		kit.Eventually(t, what, func() string {
			if out, err := fleet.Argosy(t.Context(), args...); !strings.Contains(out, want) {
				return fmt.Sprintf("%v: %s", err, out)
			}
			return ""
		})
	}
	all := []string{"get", "pods", "-n", ns, "-C", "both"}
	says("without an agent the reason is named", "argosy token create --cluster-name both --print-register-command",
		all...)

	// 1. A token for this cluster, and no other, registers an agent.
	register := func(flags ...string) (string, error) {
		out := run(t, fleet.Lab.Hub.Binary, append([]string{"token", "create", "--print-register-command"}, flags...)...)
		return fleet.Argosy(t.Context(), append(strings.Fields(out)[1:7:7], "--cluster-name", "both", "--cluster-kubeconfig",
			k.Kubeconfig, "--apply")...)
	}
	if out, err := register(); err == nil || !strings.Contains(out, `cluster "both" is registered already`) {
		t.Errorf("a token without the name of the cluster: %v: %s", err, out)
	}
	if out, err := register("--cluster-name", "both"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	start := func() *kit.Process {
		return k.Run(t, nil, fleet.Lab.Hub.Binary, "agent", "--cluster-name", "both", "--cluster-kubeconfig", k.Kubeconfig)
	}
	agent := start()

	// 2. Users reach the cluster.
	says("a user lists the pods", "Running", all...)
	k.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: here, namespace: %s}}`, ns))
	says("a user reads what only the cluster has", "here", "get", "configmaps", "-n", ns, "-C", "both")

	// 3. The agent has no other right.
	secret := &corev1.Secret{}
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "karmada-kubeconfig"},
		secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["karmada-kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	raw, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	const clusters = "/apis/cluster.karmada.io/v1alpha1/clusters"
	for _, path := range []string{clusters, clusters + "/home", clusters + "/both/status", clusters + "/both/proxy/api",
		"/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-both/works", "/api/v1/namespaces/karmada-cluster/secrets/both",
		"/apis/work.open-cluster-management.io/v1/namespaces/both/manifestworks",
		"/apis/" + clusterGroup + "/managedclusters/both"} {
		if _, err := raw.Discovery().RESTClient().Get().RequestURI(path).DoRaw(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("the agent gets %s: %v", path, err)
		}
	}
	for _, path := range []string{clusters + "/both", clusters + "/both/status"} {
		err := raw.Discovery().RESTClient().Patch("application/merge-patch+json").RequestURI(path).
			Body([]byte(`{"metadata":{"labels":{"a":"b"}}}`)).Do(t.Context()).Error()
		if !apierrors.IsForbidden(err) {
			t.Errorf("the agent changes %s: %v", path, err)
		}
	}
	post := raw.Discovery().RESTClient().Post().AbsPath(clusters + "/home/tunnel")
	if err := post.Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
		t.Errorf("the agent connects another cluster: %v", err)
	}

	// 4. The klusterlet acts as before.
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(2), "spec", "replicas")
	})
	kit.Eventually(t, "the change arrives", func() string {
		if got := fmt.Sprint(kit.Field(k.Find(t, "apps/v1", "Deployment", ns, "web"), "spec", "replicas")); got != "2" {
			return got
		}
		return ""
	})

	// 5. Without its role, the agent has no access.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:karmada:both:agent"}}
	if err := fleet.Hub.Delete(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	says("the hub reaches the cluster no more", "is not connected to this hub for requests", all...)

	// 6. An administrator can register it again.
	agent.Kill()
	if out, err := register("--cluster-name", "both"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	start()
	says("a user lists the pods again", "Running", all...)
}
