package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/test/kit"
)

// A cluster that leaves loses what its users have seen go beforehand, and nothing else.
func TestUnjoinDeletesOnlyItsPreview(t *testing.T) {
	kit.Long(t)
	m, member := startMember(t, "leaver")
	link := filepath.Join(t.TempDir(), "karmadactl")
	if err := os.Symlink(fleet.Lab.Hub.Binary, link); err != nil {
		t.Fatal(err)
	}
	joined(t, m)
	there := func(kind, apiVersion, namespace, name string) bool {
		return member.Find(t, apiVersion, kind, namespace, name) != nil
	}
	arrives := func(kind, apiVersion, namespace, name string) {
		kit.Eventually(t, kind+" "+name+" is there", func() string {
			if !there(kind, apiVersion, namespace, name) {
				return "not yet"
			}
			return ""
		})
	}
	// released returns what of the hub's is still on an object.
	released := func(kind, apiVersion, namespace, name string) string {
		u := member.Find(t, apiVersion, kind, namespace, name)
		if u == nil {
			return "it is gone"
		}
		for _, marks := range []map[string]string{u.GetLabels(), u.GetAnnotations()} {
			for key := range marks {
				if strings.Contains(key, "karmada.io/") || strings.Contains(key, "argosy.io/") {
					return "it has the mark " + key
				}
			}
		}
		return ""
	}
	only := "{clusterAffinity: {clusterNames: [leaver]}}"

	// One namespace holds something preserved, one something of the member's own, and one nothing but what was sent.
	preserved, shared, sent := fleet.Namespace(t), fleet.Namespace(t), fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(preserved, "kept",
		"{preserveResourcesOnDeletion: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: "+only+
			"}"))
	fleet.Hub.Apply(t, deployment(preserved, "web", 1, "example.com/web:1"))
	fleet.Hub.Apply(t, policy(preserved, "claims", "v1", "PersistentVolumeClaim", only))
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: %s}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`, preserved))
	for _, ns := range []string{shared, sent} {
		fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", only))
		fleet.Hub.Apply(t, configMap(ns, "c", "1"))
		arrives("ConfigMap", "v1", ns, "c")
	}
	arrives("Deployment", "apps/v1", preserved, "web")
	arrives("PersistentVolumeClaim", "v1", preserved, "data")
	member.Apply(t, configMap(shared, "theirs", "1"))
	web := member.Find(t, "apps/v1", "Deployment", preserved, "web").GetUID()

	t.Run("it is reported, and not done without a word", func(t *testing.T) {
		out, err := fleet.Argosy(t.Context(), "unjoin", "leaver")
		if err == nil {
			t.Fatalf("it left without a word: %s", out)
		}
		for _, report := range []string{"1 PersistentVolumeClaim", "2 ConfigMap", "PersistentVolumeClaim " + preserved +
			"/data\n", "kept in the cluster: 1 Deployment.apps", shared, "--yes", "--keep-workloads"} {
			if !strings.Contains(out, report) {
				t.Errorf("it does not say %q:\n%s", report, out)
			}
		}
		if c := clusterOf(t, "leaver"); c.Name == "" || c.DeletionTimestamp != nil {
			t.Error("the cluster leaves")
		}
	})
	t.Run("what is preserved stays, with its namespace", func(t *testing.T) {
		argosy(t, "unjoin", "leaver", "--yes")
		// It is all done when the command returns.
		for what, wrong := range map[string]bool{
			"the claim is left":                there("PersistentVolumeClaim", "v1", preserved, "data"),
			"what was sent is left":            there("ConfigMap", "v1", sent, "c") || there("ConfigMap", "v1", shared, "c"),
			"what only the member had is gone": !there("ConfigMap", "v1", shared, "theirs"),
			"the preserved workload is another": !there("Deployment", "apps/v1", preserved, "web") ||
				member.Find(t, "apps/v1", "Deployment", preserved, "web").GetUID() != web,
			"the namespace sent is left": there("Namespace", "v1", "", sent) &&
				member.Find(t, "v1", "Namespace", "", sent).GetDeletionTimestamp() == nil,
			"a namespace with something is gone": !there("Namespace", "v1", "", preserved) ||
				!there("Namespace", "v1", "", shared),
		} {
			if wrong {
				t.Error(what)
			}
		}
		for _, ns := range []string{preserved, shared} {
			if wrong := released("Namespace", "v1", "", ns); wrong != "" {
				t.Errorf("namespace %s: %s", ns, wrong)
			}
		}
		if wrong := released("Deployment", "apps/v1", preserved, "web"); wrong != "" {
			t.Errorf("the preserved Deployment: %s", wrong)
		}
		gone(t, "leaver")
	})

	again := func(t *testing.T) string {
		argosy(t, "join", "leaver", "--cluster-kubeconfig", m.Kubeconfig)
		kit.Eventually(t, "it is ready", func() string { return ready(t, "leaver", metav1.ConditionTrue) })
		ns := fleet.Namespace(t)
		fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", only))
		fleet.Hub.Apply(t, configMap(ns, "c", "1"))
		arrives("ConfigMap", "v1", ns, "c")
		return ns
	}
	t.Run("all workloads may be kept", func(t *testing.T) {
		ns := again(t)
		was := member.Find(t, "v1", "ConfigMap", ns, "c").GetUID()
		argosy(t, "unjoin", "leaver", "--keep-workloads")
		if now := member.Find(t, "v1", "ConfigMap", ns, "c"); now == nil || now.GetUID() != was {
			t.Errorf("it became %v", now)
		}
		for kind, wrong := range map[string]string{"ConfigMap": released("ConfigMap", "v1", ns, "c"),
			"Namespace": released("Namespace", "v1", "", ns)} {
			if wrong != "" {
				t.Errorf("%s: %s", kind, wrong)
			}
		}
		gone(t, "leaver")
	})
	t.Run("called as karmadactl it asks nothing", func(t *testing.T) {
		ns := again(t)
		if out, err := exec.CommandContext(t.Context(), link, "--kubeconfig="+fleet.Lab.Hub.Kubeconfig(), "unjoin", "leaver",
			"--cluster-kubeconfig", m.Kubeconfig).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if there("ConfigMap", "v1", ns, "c") {
			t.Error("what was sent is left")
		}
		gone(t, "leaver")
	})
	t.Run("a Cluster that is deleted, as Karmada's tools do, goes as ever", func(t *testing.T) {
		ns := again(t)
		fleet.Hub.Remove(t, "cluster.karmada.io/v1alpha1", "Cluster", "", "leaver")
		gone(t, "leaver")
		if there("ConfigMap", "v1", ns, "c") {
			t.Error("what was sent is left")
		}
	})
}
