package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// runnerRights let the service account runner of the hub reach two clusters.
const runnerRights = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner, namespace: %[1]s}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: runner},
 rules: [{apiGroups: [cluster.karmada.io], resources: [clusters/proxy], resourceNames: [home, behind], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: runner},
 subjects: [{kind: ServiceAccount, name: runner, namespace: %[1]s}], roleRef: {kind: ClusterRole, name: runner, apiGroup: rbac.authorization.k8s.io}}
`

// The example of multicluster-runtime follows ClusterProfiles with the public access library: it works in a cluster in
// Push mode and in one in Pull mode, with a token that changes, until it loses the right.
func TestControllersOnMulticlusterRuntimeReachTheInventory(t *testing.T) {
	controller := kit.Peers(t, "mcr-inventory")[0]
	m, behind, agent := pulled(t, "behind")
	members := map[string]kit.Cluster{"home": fleet.Members["home"], "behind": behind}
	ns := fleet.Namespace(t)
	account := "system:serviceaccount:" + ns + ":runner"
	grant := func() { fleet.Hub.Apply(t, fmt.Sprintf(runnerRights, ns)) }
	grant()
	for _, obj := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		obj.SetName("runner")
		fleet.Hub.RemoveAtEnd(t, obj)
	}
	for name, c := range members {
		c.Apply(t, fmt.Sprintf(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: runner},
 rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: runner},
 subjects: [{kind: User, name: "%s", apiGroup: rbac.authorization.k8s.io}], roleRef: {kind: ClusterRole, name: runner, apiGroup: rbac.authorization.k8s.io}}`,
			account))
		fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", name, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"argosy.io/impersonate-system-names": account})
		})
	}
	clients, err := kubernetes.NewForConfig(fleet.Hub.Config)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	// renew writes a token of the present service account, as the kubelet does.
	renew := func() {
		t.Helper()
		token, err := clients.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "runner",
			&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(token.Status.Token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	renew()
	hub, err := clientcmd.LoadFromFile(fleet.Lab.Hub.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name := range hub.AuthInfos {
		hub.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: file}
	}
	kubeconfig, providers := filepath.Join(dir, "runner"), filepath.Join(dir, "providers.json")
	if err := clientcmd.WriteToFile(*hub, kubeconfig); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{"providers": []any{map[string]any{"name": "argosy",
		"execConfig": map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": fleet.Lab.Hub.Binary,
			"args": []string{"credential", "--kubeconfig", kubeconfig}, "provideClusterInfo": true}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(providers, config, 0o600); err != nil {
		t.Fatal(err)
	}
	run := m.Run(t, []string{"KUBECONFIG=" + fleet.Lab.Hub.Kubeconfig()}, controller,
		"-clusterprofile-provider-file="+providers)
	// sees creates a ConfigMap in a cluster, and waits until the controller has it.
	sees := func(cluster, name string) {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := members[cluster].Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		run.Logs(t, fmt.Sprintf(`"configmap": "default/%s", "cluster": "argosy-inventory/%s"`, name, cluster))
	}
	sees("home", "one")
	sees("behind", "two")

	// again ends the connections to the cluster behind its agent: its API server stops and starts.
	again := func() {
		t.Helper()
		m.Kill()
		ready(t, "behind", "Unknown")
		if err := m.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "the agent is back", func() string {
			agent()
			u := fleet.Hub.Find(t, "cluster.karmada.io/v1alpha1", "Cluster", "", "behind")
			if text := fmt.Sprint(kit.Field(u, "status", "conditions")); !strings.Contains(text, "ClusterReady") {
				return text
			}
			return ""
		})
	}

	// 1. The former token is not valid any more: that of the file is used.
	if err := clients.CoreV1().ServiceAccounts(ns).Delete(t.Context(), "runner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	grant()
	renew()
	again()
	sees("behind", "three")

	// 2. Without the right, nothing is seen.
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "runner"}}
	if err := fleet.Hub.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	before := len(run.Output())
	again()
	kit.Eventually(t, "the controller is refused", func() string {
		if out := run.Output()[before:]; !strings.Contains(out, `cannot get resource \"clusters/proxy\"`) {
			return out
		}
		return ""
	})
}
