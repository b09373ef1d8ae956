package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// profileOf returns the ClusterProfile of a cluster, once the cluster is healthy in it.
func profileOf(t *testing.T, name string) *multiclusterv1alpha1.ClusterProfile {
	t.Helper()
	p := &multiclusterv1alpha1.ClusterProfile{}
	kit.Eventually(t, "cluster "+name+" is in the inventory", func() string {
		err := fleet.Hub.Get(t.Context(), client.ObjectKey{Namespace: "argosy-inventory", Name: name}, p)
		if err != nil || !meta.IsStatusConditionTrue(p.Status.Conditions, "ControlPlaneHealthy") {
			return fmt.Sprint(err, p.Status.Conditions)
		}
		return ""
	})
	return p
}

// pluginConfig is the configuration of a client that the public access library builds from a ClusterProfile: see
// sig-multicluster section 2.
func pluginConfig(p *multiclusterv1alpha1.ClusterProfile, args ...string) *rest.Config {
	at := p.Status.AccessProviders[0].Cluster
	return &rest.Config{Host: at.Server, TLSClientConfig: rest.TLSClientConfig{CAData: at.CertificateAuthorityData},
		ExecProvider: &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: fleet.Lab.Hub.Binary,
			Args: append([]string{"credential"}, args...), InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			ProvideClusterInfo: true, Config: &runtime.Unknown{Raw: at.Extensions[0].Extension.Raw}}}
}

// Programs reach the clusters of ClusterProfiles as users of the hub, with the rights of these, and lose them.
func TestProgramsReachTheClustersOfTheInventory(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	account := "system:serviceaccount:" + ns + ":runner"
	fleet.Hub.Apply(t, fmt.Sprintf(`
{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner, namespace: %[1]s}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: tokens, namespace: %[1]s},
 rules: [{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [runner], verbs: [create]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: tokens, namespace: %[1]s},
 subjects: [{kind: ServiceAccount, name: runner, namespace: %[1]s}], roleRef: {kind: Role, name: tokens, apiGroup: rbac.authorization.k8s.io}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: run-%[1]s},
 rules: [{apiGroups: [cluster.karmada.io], resources: [clusters/proxy], resourceNames: [m1], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: run-%[1]s},
 subjects: [{kind: ServiceAccount, name: runner, namespace: %[1]s}], roleRef: {kind: ClusterRole, name: run-%[1]s, apiGroup: rbac.authorization.k8s.io}}`, ns))
	fleet.Members["m1"].Apply(t, fmt.Sprintf(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: run-%[1]s, namespace: default},
 subjects: [{kind: User, name: "%[2]s", apiGroup: rbac.authorization.k8s.io}], roleRef: {kind: ClusterRole, name: view, apiGroup: rbac.authorization.k8s.io}}`,
		ns, account))
	clients, err := kubernetes.NewForConfig(fleet.Hub.Config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := clients.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "runner", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hub, err := clientcmd.LoadFromFile(fleet.Lab.Hub.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name := range hub.AuthInfos {
		hub.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	kubeconfig := filepath.Join(t.TempDir(), "runner")
	if err := clientcmd.WriteToFile(*hub, kubeconfig); err != nil {
		t.Fatal(err)
	}
	p := profileOf(t, "m1")
	if space := fleet.Members["m1"].Find(t, "v1", "Namespace", "", "argosy-inventory"); space != nil {
		t.Errorf("the member has the namespace of the inventory: %v", space)
	}
	list := func(config *rest.Config) error {
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	}
	own := []string{"--kubeconfig", kubeconfig}
	issued := append(own, "--service-account", ns+"/runner")

	// The member knows other service accounts by this name, so an administrator permits the hub's.
	forbidden(t, list(pluginConfig(p, own...)), "system:serviceaccount")
	fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", "m1", func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["argosy.io/impersonate-system-names"] = account
		u.SetAnnotations(annotations)
	})
	for _, args := range [][]string{own, issued} {
		kit.Eventually(t, fmt.Sprint("a program lists ConfigMaps with ", args), func() string {
			if err := list(pluginConfig(p, args...)); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	other := profileOf(t, "m2")
	forbidden(t, list(pluginConfig(other, own...)), "clusters/proxy")

	// The credential is not printed for other addresses.
	at := p.Status.AccessProviders[0].Cluster
	asked, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
		"spec": map[string]any{"interactive": false, "cluster": map[string]any{"config": at.Extensions[0].Extension,
			"server":                     strings.Replace(at.Server, "/clusters/m1/", "/clusters/m2/", 1),
			"certificate-authority-data": at.CertificateAuthorityData}}})
	if err != nil {
		t.Fatal(err)
	}
	plugin := exec.CommandContext(t.Context(), fleet.Lab.Hub.Binary, append([]string{"credential"}, own...)...)
	plugin.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(asked))
	out, err := plugin.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the credential is not for https://") ||
		strings.Contains(string(out), token.Status.Token) {
		t.Errorf("the proxy of another cluster: %v, %s", err, out)
	}

	// The right ends with the role.
	role := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "run-" + ns}}
	if err := fleet.Hub.Delete(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the right has ended", func() string {
		if err := list(pluginConfig(p, own...)); !apierrors.IsForbidden(err) {
			return fmt.Sprint(err)
		}
		return ""
	})

	// Users with roles of a namespace read the inventory there, and write nothing in it.
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "%[1]s", namespace: argosy-inventory},
 subjects: [{kind: ServiceAccount, name: runner, namespace: %[1]s}], roleRef: {kind: ClusterRole, name: view, apiGroup: rbac.authorization.k8s.io}}`, ns))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := kit.Connect("the runner", config)
	if err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the program reads the inventory", func() string {
		var list multiclusterv1alpha1.ClusterProfileList
		if err := runner.List(t.Context(), &list, client.InNamespace("argosy-inventory")); err != nil {
			return err.Error()
		}
		return ""
	})
	p.Spec.DisplayName = "mine"
	forbidden(t, runner.Update(t.Context(), p), "clusterprofiles")
	d := &multiclusterv1alpha1.PlacementDecision{}
	d.Namespace, d.Name = "argosy-inventory", "mine"
	forbidden(t, runner.Create(t.Context(), d), "placementdecisions")
}
