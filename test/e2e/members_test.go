package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/member/streams"
	"github.com/argosy-io/argosy/test/kit"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// through is a client for a member through the hub, for a user of the hub, or its administrator.
func through(t *testing.T, member, user string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(fleet.Hub.Config)
	config.Host += proxy.Path(member)
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user,
			Groups: []string{"seers-" + strings.TrimPrefix(user, "alice-")}}
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// forbidden returns what is wrong if an error is not that somebody may not do something.
func forbidden(t *testing.T, err error, wantText string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), wantText) {
		t.Errorf("got %v, want it forbidden: %s", err, wantText)
	}
}

func TestMemberAccessNeedsRightsInHubAndMember(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	ctx := t.Context()
	alice := "alice-" + ns
	list := func(member, user string) error {
		_, err := through(t, member, user).CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err
	}
	if err := list("m1", ""); err != nil {
		t.Errorf("the administrator may not: %v", err)
	}
	forbidden(t, list("m1", alice), `cannot get resource "clusters/proxy" in API group "cluster.karmada.io"`)

	// The hub lets her and her group see into m1: a group that none of its roles names does not act there.
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: see-%[1]s}
rules: [{apiGroups: [cluster.karmada.io], resources: [clusters/proxy], resourceNames: [m1], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: see-%[1]s}
subjects: [{kind: User, name: %[2]s, apiGroup: rbac.authorization.k8s.io}, {kind: Group, name: seers-%[1]s, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: see-%[1]s, apiGroup: rbac.authorization.k8s.io}`, ns, alice))
	kit.Eventually(t, "the member refuses her, by her name", func() string {
		err := list("m1", alice)
		if !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), fmt.Sprintf(`User %q cannot list resource "configmaps"`, alice)) {
			return fmt.Sprint(err)
		}
		return ""
	})
	forbidden(t, list("m2", alice), "clusters/proxy")
	_, err := through(t, "m1", alice).CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	forbidden(t, err, `cannot create resource "clusters/proxy"`)

	// And the member lets her group read.
	fleet.Members["m1"].Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: see-%[1]s, namespace: default}
subjects: [{kind: Group, name: seers-%[1]s, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: ClusterRole, name: view, apiGroup: rbac.authorization.k8s.io}`, ns))
	kit.Eventually(t, "she sees", func() string {
		if err := list("m1", alice); err != nil {
			return err.Error()
		}
		return ""
	})
	_, err = through(t, "m1", alice).CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	forbidden(t, err, fmt.Sprintf(`User %q cannot list resource "secrets"`, alice))
}

func TestGetAndDescribeShowMemberObjects(t *testing.T) {
	kit.Long(t)
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, propagation(ns, "p",
		`{resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}], placement: {clusterAffinity: {clusterNames: [m1, m2]}}}`))
	fleet.Hub.Apply(t, deployment(ns, "web", 2, "example.com/web:1"))
	// Another story may have a cluster that does not respond, which is an error of commands that ask all clusters.
	prints := func(args ...string) string {
		out, _ := fleet.Argosy(t.Context(), append(args, "-n", ns)...)
		return out
	}
	// Without the ages.
	table := func(args ...string) string {
		var rows []string
		for line := range strings.Lines(prints(append([]string{"get"}, args...)...)) {
			if words := strings.Fields(line); len(words) > 4 && (words[0] == "NAME" || words[0] == "web") {
				rows = append(rows, strings.Join(append(words[:3], words[len(words)-1]), " "))
			}
		}
		return strings.Join(rows, ", ")
	}
	kit.Eventually(t, "the hub and the members are shown", func() string {
		got := table("deploy", "-s", "all")
		if want := "NAME CLUSTER READY ADOPTION, web Karmada 4/2 -, web m1 2/2 Y, web m2 2/2 Y"; got != want {
			return "shown: " + got
		}
		return ""
	})
	if got, want := table("deploy", "web", "-C", "m2"), "NAME CLUSTER READY ADOPTION, web m2 2/2 Y"; got != want {
		t.Errorf("of m2: %q, want %q", got, want)
	}
	if out := prints("get", "pods", "-s", "members", "-l", "app=web", "-o", "name"); strings.Count(out, "pod/web-") != 4 {
		t.Errorf("the pods are %q", out)
	}
	out := prints("describe", "deployment", "web", "-s", "members")
	if strings.Count(out, "# Cluster m") != 2 || strings.Count(out, "2 desired") != 2 || strings.Contains(out, "m3") {
		t.Errorf("described as %s", out)
	}
	if out := argosy(t, "describe", "cluster", "m1"); !strings.Contains(out, "Name:         m1") {
		t.Errorf("the cluster is described as %s", out)
	}
	refused(t, []string{`there is no cluster "m9"`, "m1, m2, m3"}, "get", "pods", "-C", "m9")
}

func TestLogsAndCommandsGoThroughTheHub(t *testing.T) {
	t.Parallel()
	m := membertest.New(t)
	m.Behave((&membertest.Kubelet{
		Log: map[string]string{"default/web-1": "one\ntwo\n"},
		Exec: func(_ string, command []string, stdin io.Reader, stdout, _ io.Writer) error {
			in, err := io.ReadAll(stdin)
			fmt.Fprintf(stdout, "%q %s", command, in)
			if err == nil && command[0] == "false" {
				return streams.ExitCode(7)
			}
			return err
		}}).Serve)
	m.Put(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{"app": "seen"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning}})
	c, secret := m.Cluster("kubelet"), m.Secret("kubelet")
	c.UID = ""
	c.Spec.ImpersonatorSecretRef = c.Spec.SecretRef
	c.Spec.Taints = []corev1.Taint{{Key: "e2e", Effect: corev1.TaintEffectNoSchedule}}
	if err := fleet.Hub.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	fleet.Hub.RemoveAtEnd(t, secret)
	if err := fleet.Hub.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		if out, err := fleet.Argosy(ctx, "unjoin", "kubelet", "--yes", "--force", "--wait", "20s"); err != nil {
			t.Errorf("unjoin: %v\n%s", err, out)
		}
	})
	// Another story may have a cluster that does not respond, which is an error.
	got, _ := fleet.Argosy(t.Context(), "logs", "-l", "app=seen", "--all-clusters", "--tail", "20")
	if want := "[kubelet] [pod/web-1/app] one\n[kubelet] [pod/web-1/app] two\n"; !strings.Contains(got, want) {
		t.Errorf("the logs are %q, want %q", got, want)
	}
	for protocol, websockets := range map[string]string{"websocket": "true", "SPDY": "false"} {
		for command, code := range map[string]int{"date": 0, "false": 7} {
			cmd := exec.CommandContext(t.Context(), fleet.Lab.Hub.Binary, "--kubeconfig="+fleet.Lab.Hub.Kubeconfig(), "exec",
				"web-1", "-n", "default", "--cluster=kubelet", "-i", "--", command)
			cmd.Env = append(os.Environ(), "KUBECTL_REMOTE_COMMAND_WEBSOCKETS="+websockets)
			cmd.Stdin = strings.NewReader("typed")
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != code ||
				!strings.HasPrefix(string(out), fmt.Sprintf("%q typed", []string{command})) {
				t.Errorf("%s over %s: %v, printed %q", command, protocol, err, out)
			}
		}
	}

	// A member that is silent is named, by the hub and by the CLI.
	m.Down(true)
	for _, args := range [][]string{{"logs", "web-1", "-n", "default", "-C", "kubelet"},
		{"get", "pods", "-C", "kubelet"}} {
		refused(t, []string{`cluster "kubelet" is not reachable at 127.0.0.1`, "argosy why cluster kubelet"}, args...)
	}
	out, err := fleet.Argosy(t.Context(), "status")
	if err == nil || !strings.Contains(out, "cluster kubelet: ") ||
		!strings.Contains(out, "next: `argosy why cluster kubelet`") {
		t.Errorf("the status is %v:\n%s", err, out)
	}
	m.Down(false)
}
