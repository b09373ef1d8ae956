// Package pull registers clusters that the hub cannot reach, and runs their agents: on a hub and members that are real
// API servers.
package pull

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// fleet is a hub, and the member push in Push mode.
var fleet *kit.Fleet

// agentsOf has the agents of each member. They run until it stops: without them, nothing that a test applied could be
// removed at its end.
var agentsOf = map[*sim.Running][]*agent{}

func TestMain(m *testing.M) {
	kit.MainLong("pull", func(dir string) (_ *kit.Fleet, err error) {
		fleet, err = kit.Start(dir, "push")
		return fleet, err
	}, m.Run)
}

// startMember starts a member that is not in the fleet.
func startMember(t *testing.T, name string) (*sim.Running, kit.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
	defer cancel()
	s, err := sim.Start(ctx, sim.Options{Binary: fleet.Lab.Hub.Binary, Dir: t.TempDir(),
		Members: []sim.Member{{Name: name, Nodes: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	m := s.Members()[0]
	t.Cleanup(func() {
		for _, a := range agentsOf[m] {
			a.kill()
			if t.Failed() {
				t.Logf("an agent of %s wrote:\n%s", name, a.output())
			}
		}
		delete(agentsOf, m)
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := m.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := kit.Connect(name, config)
	if err != nil {
		t.Fatal(err)
	}
	return m, c
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
func registerArgs(t *testing.T, m *sim.Running, name string, tokenFlags ...string) []string {
	t.Helper()
	out := argosy(t, append([]string{"token", "create", "--print-register-command"}, tokenFlags...)...)
	fields := strings.Fields(out)
	if len(fields) < 7 || fields[1] != "register" {
		t.Fatalf("the command is %q", out)
	}
	return append(fields[1:7:7], "--cluster-name", name, "--cluster-kubeconfig", m.Kubeconfig, "--apply")
}

// register registers a member, and removes it at the end of the test.
func register(t *testing.T, m *sim.Running, name string) {
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

// agent is a running agent.
type agent struct {
	cmd   *exec.Cmd
	ended chan error

	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements io.Writer.
func (a *agent) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(p)
}

func (a *agent) output() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.String()
}

// startAgent runs an agent of a member until the member stops.
func startAgent(t *testing.T, m *sim.Running, name string) *agent {
	t.Helper()
	a := &agent{ended: make(chan error, 1)}
	a.cmd = exec.Command(fleet.Lab.Hub.Binary, "agent", "--cluster-name", name, "--cluster-kubeconfig", m.Kubeconfig,
		"--cluster-status-update-frequency", "2s")
	a.cmd.Stdout, a.cmd.Stderr = a, a
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { a.ended <- a.cmd.Wait(); close(a.ended) }()
	agentsOf[m] = append(agentsOf[m], a)
	return a
}

// logs waits until the agent has written a text.
func (a *agent) logs(t *testing.T, text string) {
	t.Helper()
	kit.Eventually(t, fmt.Sprintf("the agent writes %q", text), func() string {
		if out := a.output(); !strings.Contains(out, text) {
			return out
		}
		return ""
	})
}

// kill ends the agent without a chance to clean up.
func (a *agent) kill() {
	_ = a.cmd.Process.Signal(syscall.SIGKILL) // It may have ended.
	<-a.ended
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
