package pull

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// attack runs a script of the attacks from the field, which lie beside the repository, and returns what it printed.
func attack(t *testing.T, program, script string, args ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../shared/cases/attacks", script))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the attacks are not beside this repository: %v", err)
	}
	for _, needed := range []string{program, "kubectl", "openssl"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, append([]string{path}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
	out, err := cmd.CombinedOutput()
	t.Logf("%s:\n%s", script, out)
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

// connect returns a client of the hub as an agent.
func connect(t *testing.T, config *rest.Config) kit.Cluster {
	t.Helper()
	c, err := kit.Connect("an agent", config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// expectRefusal expects the reason of a refusal.
func expectRefusal(t *testing.T, what string, err error, reason string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: %v, want %q", what, err, reason)
	}
}

func TestAgentCannotReplaceItsCluster(t *testing.T) {
	kit.Long(t)
	m, member := fleet.StartMember(t, "p20")
	register(t, m, "p20")
	decided := clusterOf(t, "p20")
	patched := decided.DeepCopy()
	patched.Labels = map[string]string{"tier": "test"}
	patched.Spec.Taints = append(patched.Spec.Taints, corev1.Taint{Key: "quarantine",
		Effect: corev1.TaintEffectNoSchedule})
	if err := fleet.Hub.Patch(t.Context(), patched, client.MergeFrom(decided)); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: "karmada-system", Name: "karmada-kubeconfig"}
	secret := &corev1.Secret{}
	if err := member.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "agent.kubeconfig")
	if err := os.WriteFile(kubeconfig, secret.Data["karmada-kubeconfig"], 0o600); err != nil {
		t.Fatal(err)
	}

	// 1. The agent deletes its Cluster, and creates another at once.
	out := attack(t, "python3", "agent-recreate.py", kubeconfig, "p20", "tier=prod")
	for _, want := range []string{"delete 403", "lost"} {
		if !strings.Contains(out, want) {
			t.Errorf("the attack printed no %q", want)
		}
	}
	if is := clusterOf(t, "p20"); is.UID != decided.UID || is.Labels["tier"] != "test" || len(is.Spec.Taints) == 0 {
		t.Errorf("the Cluster is now %+v with %+v", is.ObjectMeta, is.Spec.Taints)
	}

	// 2. It creates another while an administrator removes the Cluster.
	first := agentConfig(t, member)
	agent := connect(t, first)
	create := func() error {
		return agent.Create(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "p20"},
			Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: decided.Spec.ID}})
	}
	expectRefusal(t, "another Cluster", create(), "cannot create its Cluster again")
	if err := fleet.Hub.Delete(t.Context(), clusterOf(t, "p20")); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "the Cluster is gone", func() string {
		// A request that is under way when the registration ends is cancelled.
		if err := create(); !apierrors.IsForbidden(err) && !apierrors.IsTimeout(err) {
			t.Fatalf("the agent creates its Cluster again: %v", err)
		}
		if clusterOf(t, "p20").Name != "" {
			return "it is there"
		}
		return ""
	})
	if clusterOf(t, "p20").Name != "" {
		t.Fatal("the agent created its Cluster again")
	}

	// 3. A registration creates it. The certificate of the former Cluster has no permissions in this one.
	argosy(t, registerArgs(t, m, "p20")...)
	works := &workv1alpha1.WorkList{}
	expectRefusal(t, "the former certificate lists Works", agent.List(t.Context(), works,
		client.InNamespace("karmada-es-p20")), "not of the current registration")
	config := agentConfig(t, member)
	second := connect(t, config)
	if err := second.List(t.Context(), works, client.InNamespace("karmada-es-p20")); err != nil {
		t.Errorf("the agent lists its Works: %v", err)
	}

	// 4. So does a registration that replaces credentials, which changes nothing else.
	was := clusterOf(t, "p20")
	watcher, err := client.NewWithWatch(config, client.Options{Scheme: second.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	watched, err := watcher.Watch(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-p20"))
	if err != nil {
		t.Fatal(err)
	}
	argosy(t, registerArgs(t, m, "p20", "--cluster-name", "p20")...)
	kit.Eventually(t, "the replaced certificate has no permissions", func() string {
		if err := second.List(t.Context(), works, client.InNamespace("karmada-es-p20")); !apierrors.IsForbidden(err) {
			return "it lists Works"
		}
		return ""
	})
	kit.Eventually(t, "the watch with the replaced certificate has ended", func() string {
		for {
			select {
			case _, open := <-watched.ResultChan():
				if !open {
					return ""
				}
			default:
				return "it is open"
			}
		}
	})
	if clusterOf(t, "p20").UID != was.UID {
		t.Error("the Cluster was replaced")
	}
}

func TestTokenReachesNoClusterThatIsJoinedLater(t *testing.T) {
	kit.Long(t)
	m, _ := fleet.StartMember(t, "p21")
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	config := rest.CopyConfig(fleet.Hub.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, config.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	token := tokenConfig(t).BearerToken
	attack(t, "bash", "registrar-squat.sh", config.Host, ca, token, "p21", filepath.Join(dir, "squat"))
	squatter := rest.AnonymousClientConfig(config)
	var err error
	if squatter.CertData, err = os.ReadFile(filepath.Join(dir, "squat", "agent.crt")); err != nil {
		t.Fatal(err)
	}
	if squatter.KeyData, err = os.ReadFile(filepath.Join(dir, "squat", "agent.key")); err != nil {
		t.Fatal(err)
	}
	agent := connect(t, squatter)

	// 1. What it prepares for a cluster that joins later, a Work and a Secret, is refused, or refuses the join.
	expectRefusal(t, "a Work before the join", agent.Create(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-p21", Name: "w"}}), "not in the fleet in Pull mode")
	prepared := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "p21"}}
	if err := agent.Create(t.Context(), prepared); err != nil {
		t.Fatal(err)
	}
	join := []string{"join", "p21", "--cluster-kubeconfig", m.Kubeconfig}
	refused(t, []string{`the agent of cluster "p21" created this Secret`}, join...)
	if err := fleet.Hub.Delete(t.Context(), prepared); err != nil {
		t.Fatal(err)
	}

	// 2. After the join, its certificate has no permissions, and nothing of the registration is left.
	argosy(t, join...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		if out, err := fleet.Argosy(ctx, "unjoin", "p21", "--yes", "--force", "--wait", "5s"); err != nil {
			t.Errorf("unjoin p21: %v\n%s", err, out)
		}
	})
	for what, err := range map[string]error{
		"the Secret": agent.Get(t.Context(), client.ObjectKeyFromObject(prepared), &corev1.Secret{}),
		"the Works":  agent.List(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-p21")),
		"the status": agent.Status().Patch(t.Context(), clusterOf(t, "p21"), client.RawPatch("application/merge-patch+json",
			[]byte(`{"status":{"kubernetesVersion":"v0"}}`))),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the token's user reaches %s of a cluster that was joined: %v", what, err)
		}
	}
	kit.Eventually(t, "the prepared roles are gone", func() string {
		role := client.ObjectKey{Namespace: "karmada-cluster", Name: "system:karmada:p21:agent-secret"}
		if err := fleet.Hub.Get(t.Context(), role, &rbacv1.RoleBinding{}); !apierrors.IsNotFound(err) {
			return "the binding for Secrets is there"
		}
		return ""
	})
}
