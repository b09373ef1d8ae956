package kit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argosy-io/argosy/internal/sim"
)

// Member is a simulated cluster that a test starts beside its fleet.
type Member struct {
	*sim.Running
	// processes run until the member stops: without them, nothing that a test applied could be removed at its end.
	processes []*Process
}

// StartMember starts a cluster of two nodes that is not in the fleet. It stops at the end of the test, after its
// processes.
func (f *Fleet) StartMember(t testing.TB, name string) (*Member, Cluster) {
	t.Helper()
	return f.StartMemberWith(t, sim.Member{Name: name, Nodes: 2})
}

// StartMemberWith is StartMember for a member with other settings.
func (f *Fleet) StartMemberWith(t testing.TB, with sim.Member) (*Member, Cluster) {
	t.Helper()
	name := with.Name
	ctx, cancel := context.WithTimeout(t.Context(), Timeout)
	defer cancel()
	s, err := sim.Start(ctx, sim.Options{Binary: f.Lab.Hub.Binary, Dir: t.TempDir(), Members: []sim.Member{with}})
	if err != nil {
		t.Fatal(err)
	}
	m := &Member{Running: s.Members()[0]}
	t.Cleanup(func() {
		for _, p := range m.processes {
			p.Kill()
			if t.Failed() {
				t.Logf("%s beside %s wrote:\n%s", p.name, name, p.Output())
			}
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := m.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Connect(name, config)
	if err != nil {
		t.Fatal(err)
	}
	return m, c
}

// Run runs a program beside the member until that stops. env is added to the environment, as NAME=VALUE.
func (m *Member) Run(t testing.TB, env []string, program string, args ...string) *Process {
	t.Helper()
	p := &Process{name: program, cmd: exec.Command(program, args...), ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait(); close(p.ended) }()
	m.processes = append(m.processes, p)
	return p
}

// Process is a program that runs beside a member.
type Process struct {
	name  string
	cmd   *exec.Cmd
	ended chan error

	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements io.Writer.
func (p *Process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(data)
}

// Output returns what the process has written.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Logs waits until the process has written a text.
func (p *Process) Logs(t testing.TB, text string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s writes %q", p.name, text), func() string {
		if out := p.Output(); !strings.Contains(out, text) {
			return out
		}
		return ""
	})
}

// Ends waits until the process ends with an error, after it wrote a text.
func (p *Process) Ends(t testing.TB, text string) {
	t.Helper()
	select {
	case err := <-p.ended:
		if err == nil || !strings.Contains(p.Output(), text) {
			t.Errorf("%s ended with %v without %q:\n%s", p.name, err, text, p.Output())
		}
	case <-time.After(Timeout):
		t.Fatalf("%s did not end:\n%s", p.name, p.Output())
	}
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Kill ends the process without a chance to clean up.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // It may have ended.
	<-p.ended
}
