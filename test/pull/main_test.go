// Package pull registers clusters that the hub cannot reach, and runs their agents: on a hub and members that are real
// API servers.
package pull

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// fleet is a hub, and the member push in Push mode.
var fleet *kit.Fleet

func TestMain(m *testing.M) {
	kit.MainLong("pull", func(dir string) (_ *kit.Fleet, err error) {
		fleet, err = kit.Start(dir, "push")
		return fleet, err
	}, m.Run)
}

// argosy runs a command that must succeed, and returns its output.
func argosy(t *testing.T, args ...string) string {
	t.Helper()
	out, err := fleet.Argosy(t.Context(), args...)
	if err != nil {
		t.Fatalf("argosy %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// refused runs a command that must fail, and whose output must contain the texts.
func refused(t *testing.T, texts []string, args ...string) {
	t.Helper()
	out, err := fleet.Argosy(t.Context(), args...)
	if err == nil {
		t.Errorf("argosy %s succeeded:\n%s", strings.Join(args, " "), out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("argosy %s printed %q without %q", strings.Join(args, " "), out, text)
		}
	}
}

// registerArgs creates a token, and returns the arguments of the command that registers a member with it.
func registerArgs(t *testing.T, m *kit.Member, name string, tokenFlags ...string) []string {
	t.Helper()
	out := argosy(t, append([]string{"token", "create", "--print-register-command"}, tokenFlags...)...)
	fields := strings.Fields(out)
	if len(fields) < 7 || fields[1] != "register" {
		t.Fatalf("the command is %q", out)
	}
	return append(fields[1:7:7], "--cluster-name", name, "--cluster-kubeconfig", m.Kubeconfig, "--apply")
}

// register registers a member, and removes it at the end of the test.
func register(t *testing.T, m *kit.Member, name string) {
	t.Helper()
	argosy(t, registerArgs(t, m, name)...)
	removeAtEnd(t, name)
}

// removeAtEnd removes a cluster from the hub at the end of the test, if it is still there.
func removeAtEnd(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Timeout)
		defer cancel()
		out, err := fleet.Argosy(ctx, "unregister", name, "--yes", "--force", "--wait", "5s")
		if err != nil && !strings.Contains(out, "is not joined") {
			t.Errorf("unregister %s: %v\n%s", name, err, out)
		}
	})
}

// startAgent runs an agent of a member until the member stops.
func startAgent(t *testing.T, m *kit.Member, name string) *kit.Process {
	t.Helper()
	return m.Run(t, nil, fleet.Lab.Hub.Binary, "agent", "--cluster-name", name, "--cluster-kubeconfig", m.Kubeconfig,
		"--cluster-status-update-frequency", "2s")
}

func clusterOf(t *testing.T, name string) *clusterv1alpha1.Cluster {
	t.Helper()
	c := &clusterv1alpha1.Cluster{}
	if err := fleet.Hub.Get(t.Context(), client.ObjectKey{Name: name}, c); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return c
}

// becomes waits until the condition Ready of a cluster has a status.
func becomes(t *testing.T, name, status string) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("cluster %s is Ready=%s", name, status), func() string {
		ready := meta.FindStatusCondition(clusterOf(t, name).Status.Conditions, "Ready")
		if ready == nil || string(ready.Status) != status {
			return fmt.Sprintf("it is %+v", ready)
		}
		return ""
	})
}
