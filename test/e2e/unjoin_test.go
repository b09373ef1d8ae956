package e2e

import (
	"context"
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

// offered returns the command with that beginning that a text names between backticks, without the program.
func offered(t *testing.T, text, begin string) []string {
	t.Helper()
	_, rest, found := strings.Cut(text, "`argosy "+begin)
	command, _, ends := strings.Cut(rest, "`")
	if !found || !ends {
		t.Fatalf("it names no command %q:\n%s", begin, text)
	}
	return strings.Fields(begin + command)
}

// A cluster that is unjoined without its kubeconfig, and that could not be reached, keeps the hub's accounts, Lease and
// objects. When it is joined again, the user gets the commands that remove them.
func TestLeftoverOfThisHubIsNamedAndRemoved(t *testing.T) {
	kit.Long(t)
	m, member := startMember(t, "former")
	joined(t, m)
	ns := fleet.Namespace(t)
	only := func(cluster string) string { return "{clusterAffinity: {clusterNames: [" + cluster + "]}}" }
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", only("former")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	arrives := func(value string) {
		t.Helper()
		kit.Eventually(t, "the ConfigMap is there", func() string {
			if u := member.Find(t, "v1", "ConfigMap", ns, "c"); u == nil || kit.Field(u, "data", "key") != value {
				return fmt.Sprint(u)
			}
			return ""
		})
	}
	arrives("1")

	// 1. The cluster is lost, leaves without its kubeconfig, and comes back under another name.
	m.Kill()
	kit.Eventually(t, "it is not ready", func() string { return ready(t, "former", metav1.ConditionFalse) })
	if out := argosy(t, "unjoin", "former", "--force", "--yes", "--wait", "20s"); !strings.Contains(out,
		"`argosy unjoin former --cluster-kubeconfig FILE` removes them") {
		t.Errorf("unjoin says %s", out)
	}
	gone(t, "former")
	if err := m.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	said := argosy(t, "join", "present", "--cluster-kubeconfig", m.Kubeconfig)
	t.Cleanup(func() {
		_, _ = fleet.Argosy(context.Background(), "unjoin", "present", "--yes", "--force", "--wait", "20s")
	})
	for _, wrong := range []string{"Karmada", "another hub"} {
		if strings.Contains(said, wrong) {
			t.Errorf("of this hub's own leftover, join says %q:\n%s", wrong, said)
		}
	}
	kit.Eventually(t, "it is ready", func() string { return ready(t, "present", metav1.ConditionTrue) })

	// 2. The command for the accounts removes those of the former name, and the cluster stays in the fleet.
	argosy(t, offered(t, said, "unjoin former ")...)
	if member.Find(t, "v1", "ServiceAccount", "karmada-cluster", "karmada-former") != nil ||
		member.Find(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "",
			"karmada-controller-manager:karmada-former") != nil {
		t.Error("the account of the former name, or its role, is left")
	}
	refused(t, []string{`cluster "former" is not joined`}, "unjoin", "former", "--cluster-kubeconfig", m.Kubeconfig)

	// 3. The object of the former name is a conflict that names the command that deletes it.
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", only("present")))
	fleet.Hub.Apply(t, configMap(ns, "c", "2"))
	var conflict string
	kit.Eventually(t, "the conflict is reported", func() string {
		out := argosy(t, "get", "works", "-n", "karmada-es-present", "-o", "yaml")
		if _, conflict, _ = strings.Cut(out, "from when the cluster was joined as former"); conflict == "" {
			return out
		}
		return ""
	})
	if !strings.Contains(said, `from when this hub joined it as "former"`) {
		t.Errorf("join does not name the objects:\n%s", said)
	}
	argosy(t, offered(t, strings.Join(strings.Fields(conflict), " "), "orphans delete ")...)
	arrives("2")
	argosy(t, "get", "--raw", "/readyz")
	kit.Eventually(t, "it is ready", func() string { return ready(t, "present", metav1.ConditionTrue) })

	// 4. Under the same name, the accounts are used again.
	argosy(t, "unjoin", "present", "--yes")
	if said := argosy(t, "join", "present", "--cluster-kubeconfig", m.Kubeconfig); strings.Contains(said, "Karmada") ||
		!strings.Contains(said, "has accounts of this hub, which joined it under this name before") {
		t.Errorf("join again says %s", said)
	}
	kit.Eventually(t, "it is ready", func() string { return ready(t, "present", metav1.ConditionTrue) })
}
