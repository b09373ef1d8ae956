package pull

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/test/kit"
)

// uids returns the UIDs of the objects of a kind in a namespace of a member, by name.
func uids(t *testing.T, member kit.Cluster, apiVersion, kind, ns string) map[string]string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	if err := member.List(t.Context(), list, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range list.Items {
		if name := list.Items[i].GetName(); name != "kube-root-ca.crt" {
			all[name] = string(list.Items[i].GetUID())
		}
	}
	return all
}

// startHub starts the hub again.
func startHub(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := fleet.Lab.Hub.Start(ctx, "--cluster-failure-threshold=10s", "--cluster-success-threshold=10s",
		"--cluster-status-update-frequency=2s"); err != nil {
		t.Fatal(err)
	}
}

func TestAgentDeletesNothingWhenTheHubIsEmptyOrRestored(t *testing.T) {
	kit.Long(t)
	m, member := fleet.StartMember(t, "p11")
	register(t, m, "p11")
	running := startAgent(t, m, "p11")
	becomes(t, "p11", "True")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, workloads(ns, "p11"))
	healthy(t, ns, "p11")
	hub, vault := fleet.Lab.Hub, t.TempDir()
	if err := os.Chmod(vault, 0o700); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(hub.Dir, "data")
	argosy(t, "backup", "--data-dir", data, "--to", vault)
	backups, err := filepath.Glob(filepath.Join(vault, "argosy-*.tar.gz"))
	if err != nil || len(backups) != 1 {
		t.Fatalf("the backups are %q (%v)", backups, err)
	}

	// 1. After the backup, one object changes and one is created.
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) { replicas(u, 3) })
	fleet.Hub.Apply(t, deploymentOf(ns, "late"))
	kit.Eventually(t, "the cluster has both", func() string {
		if got := inMember(t, member, ns); got != "3" || member.Find(t, "apps/v1", "Deployment", ns, "late") == nil {
			return got + " replicas"
		}
		return ""
	})
	deployments, sets := uids(t, member, "apps/v1", "Deployment", ns),
		uids(t, member, "apps.kruise.io/v1alpha1", "CloneSet", ns)
	unchanged := func(when, replicas string) {
		t.Helper()
		if now := uids(t, member, "apps/v1", "Deployment", ns); !maps.Equal(now, deployments) {
			t.Errorf("%s, the Deployments are %v, want %v", when, now, deployments)
		}
		if now := uids(t, member, "apps.kruise.io/v1alpha1", "CloneSet", ns); !maps.Equal(now, sets) {
			t.Errorf("%s, the CloneSets are %v, want %v", when, now, sets)
		}
		if got := inMember(t, member, ns); got != replicas {
			t.Errorf("%s, web has %s replicas, want %s", when, got, replicas)
		}
	}

	// 2. The hub starts with an empty store, and so with new keys: it refuses to start with its keys and no store.
	hub.Kill()
	if err := os.Rename(data, filepath.Join(hub.Dir, "lost")); err != nil {
		t.Fatal(err)
	}
	startHub(t)
	running.Logs(t, "certificate signed by unknown authority")
	unchanged("on an empty hub", "3")

	// 3. The hub is restored: the agent ends, and keeps what differs after its next start.
	hub.Kill()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	argosy(t, "restore", backups[0], "--data-dir", data)
	startHub(t)
	running.Ends(t, "the hub was restored from a backup")
	unchanged("on a restored hub", "3")
	startAgent(t, m, "p11")
	kit.Eventually(t, "the change since the backup is kept", func() string {
		out := argosy(t, "restore", "status")
		if !strings.Contains(out, "p11") || !strings.Contains(out, "web") {
			return out
		}
		return ""
	})
	unchanged("before the restore is accepted", "3")

	// 4. A user accepts it.
	argosy(t, "restore", "accept", "--all")
	kit.Eventually(t, "the state of the backup is applied", func() string {
		if got := inMember(t, member, ns); got != "2" {
			return got + " replicas"
		}
		return ""
	})
	unchanged("after the restore is accepted", "2")
	fleet.Hub.Remove(t, "apps/v1", "Deployment", ns, "web")
	kit.Eventually(t, "a deletion that the hub requests is carried out", func() string {
		if member.Find(t, "apps/v1", "Deployment", ns, "web") != nil {
			return "web is there"
		}
		return ""
	})
	if member.Find(t, "apps/v1", "Deployment", ns, "late") == nil {
		t.Error("the Deployment that was created after the backup is gone")
	}
}

// deploymentOf is a Deployment without replicas.
func deploymentOf(ns, name string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[2]s, namespace: %[1]s}, spec: {replicas: 0,
selector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: main, image: nginx}]}}}}`,
		ns, name)
}

func TestAgentKilledWhileItAppliesFinishesAfterItsNextStart(t *testing.T) {
	kit.Long(t)
	const count, some = 60, 5
	m, member := fleet.StartMember(t, "p12")
	register(t, m, "p12")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy,
metadata: {name: p, namespace: %s}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [p12]}}}}`, ns))
	values := func() map[string]int {
		list := &corev1.ConfigMapList{}
		if err := member.List(t.Context(), list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		all := map[string]int{}
		for i := range list.Items {
			all[list.Items[i].Data["value"]]++
		}
		delete(all, "") // kube-root-ca.crt
		return all
	}
	var first map[string]string
	var last *kit.Process
	for _, value := range []string{"one", "two"} {
		if last != nil {
			last.Kill()
		}
		// 1. The agent is killed while the hub gets changes.
		a := startAgent(t, m, "p12")
		becomes(t, "p12", "True")
		for i := range count {
			if i == count/2 {
				kit.Eventually(t, "some are applied", func() string {
					if n := values()[value]; n < some {
						return fmt.Sprintf("%d are", n)
					}
					return ""
				})
				a.Kill()
			}
			fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: %s}, data: {value: %q}}`,
				i, ns, value))
		}
		t.Logf("killed after %v of %d", values(), count)
		if first == nil {
			first = uids(t, member, "v1", "ConfigMap", ns)
		}

		// 2. The next one finishes.
		last = startAgent(t, m, "p12")
		kit.Eventually(t, "all are applied", func() string {
			if now := values(); now[value] != count || len(now) != 1 {
				return fmt.Sprint(now)
			}
			return ""
		})
	}
	now := uids(t, member, "v1", "ConfigMap", ns)
	for name, uid := range first {
		if now[name] != uid {
			t.Errorf("ConfigMap %s was created again", name)
		}
	}
}

func TestExpiredAgentRegistersAgainByTheCommandInItsError(t *testing.T) {
	kit.Long(t)
	m, member := fleet.StartMember(t, "p13")
	register(t, m, "p13")
	a := startAgent(t, m, "p13")
	becomes(t, "p13", "True")
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, workloads(ns, "p13"))
	healthy(t, ns, "p13")
	before := uids(t, member, "apps/v1", "Deployment", ns)
	a.Kill()
	expire(t, member)

	const command = "argosy token create --cluster-name p13 --print-register-command"
	startAgent(t, m, "p13").Ends(t, command)
	fleet.Hub.Change(t, "apps/v1", "Deployment", ns, "web", func(u *unstructured.Unstructured) { replicas(u, 3) })
	argosy(t, registerArgs(t, m, "p13", "--cluster-name", "p13")...)
	startAgent(t, m, "p13")
	kit.Eventually(t, "the agent catches up", func() string {
		if got := inMember(t, member, ns); got != "3" {
			return got + " replicas"
		}
		return ""
	})
	if after := uids(t, member, "apps/v1", "Deployment", ns); !maps.Equal(after, before) {
		t.Errorf("the Deployments are %v, and were %v", after, before)
	}
}

// expire replaces the certificate of the agent of a member with one that has expired.
func expire(t *testing.T, member kit.Cluster) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := member.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "karmada-kubeconfig"},
		secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(secret.Data["karmada-kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ended := time.Now().Add(-time.Hour)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "expired"},
		NotBefore: ended.Add(-time.Hour), NotAfter: ended}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	user.ClientCertificateData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	if user.ClientKeyData, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	if secret.Data["karmada-kubeconfig"], err = clientcmd.Write(*config); err != nil {
		t.Fatal(err)
	}
	if err := member.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
