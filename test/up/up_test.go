// Package up holds `argosy up`, as a process, to what its users rely on: it says what is wrong, ends when it is told to, and
// shares a store with others of its kind.
package up

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
			said, _ := os.ReadFile(h.Log())
			t.Logf("the hub said:\n%s", said)
		}
	})
	return h
}

func start(t *testing.T, h *lab.Hub, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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

func TestAStartThatCannotBeSaysWhyInOneSentence(t *testing.T) {
	running := newHub(t)
	start(t, running)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for story, tc := range map[string]struct {
		args []string
		says []string
	}{
		"the port of the hub that runs":     {[]string{"--data-dir", t.TempDir(), "--port", strconv.Itoa(running.Port)}, []string{"is in use", "--port"}},
		"the folder of the hub that runs":   {[]string{"--data-dir", filepath.Join(running.Dir, "data"), "--port", "0"}, []string{"is in use by another argosy", "--data-dir"}},
		"a folder below a file":             {[]string{"--data-dir", filepath.Join(file, "data"), "--port", "0"}, []string{"cannot be made", "not a directory", "--data-dir"}},
		"a folder that nobody may write":    {[]string{"--data-dir", "/proc/argosy", "--port", "0"}, []string{"cannot be made", "--data-dir"}},
		"a folder of somebody else":         {[]string{"--data-dir", foreign, "--port", "0"}, []string{`holds "thesis.txt"`, "--data-dir"}},
		"an etcd that is not there":         {[]string{"--data-dir", t.TempDir(), "--port", "0", "--etcd-servers", "http://127.0.0.1:1"}, []string{"127.0.0.1:1", "--etcd-servers"}},
		"an etcd that is another server":    {[]string{"--data-dir", t.TempDir(), "--port", "0", "--etcd-servers", "http://127.0.0.1:" + strconv.Itoa(running.Port)}, []string{strconv.Itoa(running.Port), "--etcd-servers"}},
		"an etcd that never answers":        {[]string{"--data-dir", t.TempDir(), "--port", "0", "--etcd-servers", "http://" + silent(t)}, []string{"--etcd-servers"}},
		"a configuration that is not there": {[]string{"--config", "/nothing-here"}, []string{"/nothing-here"}},
		"a flag that does not exist":        {[]string{"--colour", "blue"}, []string{"unknown flag: --colour"}},
		"a word too many":                   {[]string{"now"}, []string{"now"}},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, binary(t), append([]string{"up"}, tc.args...)...)
			var out, errOut bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errOut
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit code 1", err)
			}
			said := errOut.String()
			if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "argosy") {
				t.Errorf("it does not say one sentence: %q", said)
			}
			for _, word := range tc.says {
				if !strings.Contains(said, word) {
					t.Errorf("%q lacks %q", said, word)
				}
			}
			if out.Len() > 0 {
				t.Errorf("it says also: %q", out.String())
			}
		})
	}
}

// silent is the address of a server that takes connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestASignalEndsItCleanlyWheneverItComes(t *testing.T) {
	dir := t.TempDir() // a start after a start that was broken off goes on with what there is
	for _, after := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 1200 * time.Millisecond, 2 * time.Second, 6 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			cmd := exec.Command(binary(t), "up", "--data-dir", filepath.Join(dir, "data"), "--port", "0")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			time.Sleep(after)
			begin := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				t.Logf("ended after %v with %v: %q", time.Since(begin).Round(time.Millisecond), err, last(out.String()))
				early := cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() && out.Len() == 0 // before it had started anything
				if err != nil && !early {
					t.Errorf("it ended with %v:\n%s", err, out.String())
				}
			case <-time.After(time.Minute): // a second or two where nothing else runs
				_ = cmd.Process.Kill()
				t.Fatalf("it did not end:\n%s", out.String())
			}
			if strings.Contains(out.String(), "panic") || strings.Contains(out.String(), "goroutine ") {
				t.Errorf("it fell over:\n%s", out.String())
			}
		})
	}
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
