// Package lab runs a hub and simulated members on this machine, for the demo, the benchmark and the tests. Each is a
// process of its own, so that it can be measured and killed; what they do is decided by the packages they run.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/argosy-io/argosy/internal/sim"
)

// Hub is an `argosy up` in a child process, with its data in a folder that outlives it.
type Hub struct {
	// Binary is the argosy executable, Dir holds the hub's data, kubeconfig and output.
	Binary, Dir string
	// Port is the hub's; it stays the same over restarts.
	Port int

	cmd    *exec.Cmd
	output *os.File
	exited chan struct{}
	err    error
}

// lowestPort is the first of those that a hub takes its own from: no member takes one of these.
const lowestPort = 10000

// NewHub returns a hub that is not running yet, on a free port.
func NewHub(binary, dir string) (*Hub, error) {
	port, err := sim.FreePort(lowestPort, nil)
	if err != nil {
		return nil, err
	}
	return &Hub{Binary: binary, Dir: dir, Port: port}, nil
}

// Kubeconfig returns the path of the hub's admin kubeconfig.
func (h *Hub) Kubeconfig() string { return filepath.Join(h.Dir, "hub.kubeconfig") }

// Start runs the hub, with more arguments for `argosy up` if given, and returns when it answers that it is ready.
func (h *Hub) Start(ctx context.Context, args ...string) error {
	if err := os.MkdirAll(h.Dir, 0o755); err != nil {
		return err
	}
	var err error
	if h.output, err = os.OpenFile(h.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return err
	}
	h.cmd = exec.Command(h.Binary, append([]string{"up", "--data-dir", filepath.Join(h.Dir, "data"),
		"--port", strconv.Itoa(h.Port), "--kubeconfig-out", h.Kubeconfig()}, args...)...)
	h.cmd.Stdout, h.cmd.Stderr = h.output, h.output
	// The hub must not outlive whoever started it.
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := h.cmd.Start(); err != nil {
		h.close()
		return fmt.Errorf("start the hub: %w", err)
	}
	h.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		h.err = cmd.Wait()
		close(exited)
	}(h.cmd, h.exited)
	if err := h.ready(ctx); err != nil {
		h.Kill()
		return err
	}
	return nil
}

// ready waits until the hub answers that it is.
func (h *Hub) ready(ctx context.Context) error {
	var last error
	for {
		err := h.probe(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // that the wait is over is no answer of the hub
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the hub is not ready: %w; its output is in %s", last, h.Log())
		case <-h.exited:
			return fmt.Errorf("the hub stopped (%w); its output:\n%s", h.err, tail(h.Log()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (h *Hub) probe(ctx context.Context) error {
	config, err := h.Config()
	if err != nil {
		return err
	}
	config.Timeout = 2 * time.Second
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = c.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// Config returns a client configuration for the hub, without a rate limit.
func (h *Hub) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", h.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Log returns the path of what the hub printed.
func (h *Hub) Log() string { return filepath.Join(h.Dir, "hub.log") }

// PID of the running hub.
func (h *Hub) PID() int { return h.cmd.Process.Pid }

// Kill ends the hub at once, as a crash would.
func (h *Hub) Kill() {
	if h.cmd == nil {
		return
	}
	// A hub that has ended already is what was asked for.
	_ = h.cmd.Process.Signal(syscall.SIGKILL)
	<-h.exited
	h.close()
}

// Stop ends the hub as a signal does, and says how it ended.
func (h *Hub) Stop() error {
	if h.cmd == nil {
		return nil
	}
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.exited:
	case <-time.After(30 * time.Second):
		h.Kill()
		return errors.New("the hub did not stop within 30 s of a signal and was killed")
	}
	h.close()
	return h.err
}

func (h *Hub) close() {
	h.cmd = nil
	_ = h.output.Close()
}

// tail returns the end of a file, for an error message.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
