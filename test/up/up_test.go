// Package up tests `argosy up` as a process: it explains errors, ends on a signal, and shares a store with other
// replicas.
package up

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/test/kit"
)

func binary(t *testing.T) string {
	t.Helper()
	b, err := kit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newHub is a hub that is stopped when the test ends.
func newHub(t *testing.T) *lab.Hub {
	t.Helper()
	h, err := lab.NewHub(binary(t), filepath.Join(t.TempDir(), "hub"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			gotText, _ := os.ReadFile(h.Log())
			t.Logf("the hub said:\n%s", gotText)
		}
	})
	return h
}

func start(t *testing.T, h *lab.Hub, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Timeout)
	defer cancel()
	if err := h.Start(ctx, args...); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, name string, h *lab.Hub) kit.Cluster {
	t.Helper()
	config, err := h.Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := kit.Connect(name, config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What each sentence says is tested in internal/server.
func TestFailedStartExitsWithOneSentence(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for story, tc := range map[string]struct {
		args    []string
		message []string
	}{
		"a port in use": {[]string{"--data-dir", t.TempDir(), "--port",
			strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)}, []string{"is in use", "--port"}},
		"a folder that nobody may write": {[]string{"--data-dir", "/proc/argosy", "--port", "0"},
			[]string{"cannot be created", "--data-dir"}},
		"a configuration that is not there": {[]string{"--config", "/nothing-here"}, []string{"/nothing-here"}},
		"a flag that does not exist": {[]string{"--colour", "blue"},
			[]string{"unknown flag --colour; did you mean --color?"}},
		"a word too many": {[]string{"now"}, []string{"now"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), binary(t), append([]string{"up"}, tc.args...)...)
			var out, errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errOut
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit code 1", err)
			}
			gotText := errOut.String()
			if strings.Count(gotText, "\n") != 1 || !strings.HasPrefix(gotText, "argosy") {
				t.Errorf("it does not say one sentence: %q", gotText)
			}
			for _, word := range tc.message {
				if !strings.Contains(gotText, word) {
					t.Errorf("%q lacks %q", gotText, word)
				}
			}
			if out.Len() > 0 {
				t.Errorf("it says also: %q", out.String())
			}
		})
	}
}

// The signal comes when the hub has started a component. The next start continues in the same folder.
func TestSignalEndsTheHubAtAnyStepOfItsStart(t *testing.T) {
	kit.Long(t)
	dir := t.TempDir()
	for _, started := range []string{"nothing", "etcd", "encryption", "apiserver", "crds", "workload-kinds"} {
		t.Run(started, func(t *testing.T) {
			logFile := filepath.Join(t.TempDir(), "log")
			cmd := exec.Command(binary(t), "up", "--data-dir", filepath.Join(dir, "data"), "--port", "0", "--log-file", logFile,
				"--log-level", "1")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() }) // of a hub that did not end
			if started != "nothing" {
				kit.Eventually(t, "the hub starts", func() string {
					log, err := os.ReadFile(logFile)
					if err != nil || !strings.Contains(string(log), "msg=started component="+started) {
						return fmt.Sprintf("%s (%v)", log, err)
					}
					return ""
				})
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			early := cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() && out.Len() == 0 // before it handles signals
			if err != nil && !early {
				t.Errorf("it ended with %v:\n%s", err, out.String())
			}
			if strings.Contains(out.String(), "panic") || strings.Contains(out.String(), "goroutine ") {
				t.Errorf("it panicked:\n%s", out.String())
			}
		})
	}
}
