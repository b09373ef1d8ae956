package up

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argosy-io/argosy/test/kit"
)

// prelude replaces what a test must not do: make builds the binary that runs this test. Jobs end with the script.
const prelude = `
make() { command make --dry-run --no-print-directory -C %q "$@"; }
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
`

// wrapper is bin/argosy. The hub uses a free port, because other hubs may run on this machine.
const wrapper = `#!/bin/sh
case $1 in
up) shift; exec %[1]q up --port 0 "$@" ;;
esac
exec %[1]q "$@"
`

// propagated waits until all replicas of README's example are ready.
const propagated = `
export PATH=$PWD/bin:$PATH && argosy status
until test "$(kubectl get clonesets shop -o 'jsonpath={.spec.replicas} {.status.readyReplicas}')" = "8 8"; do sleep 1; done
`

// A reader runs README, README again, and then the guide, in one clone with one home. The pages start from nothing each
// time, although what a former run left is there.
func TestReadmeAndGuideRunInOneClone(t *testing.T) {
	kit.Long(t)
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("the pages apply their objects with kubectl, which this machine does not have")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := clone(t, root)
	for _, name := range []string{"README", "README again"} {
		if !t.Run(name, func(t *testing.T) { followReadme(t, root, folder) }) {
			return
		}
	}
	t.Run("guide", func(t *testing.T) { followGuide(t, root, folder) })
}

// followReadme runs the commands of README as one script, as if a user typed them in one terminal.
func followReadme(t *testing.T, root, folder string) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := shellLines(string(readme))
	if len(lines) < 12 || !strings.HasPrefix(lines[len(lines)-1], "kill ") {
		t.Fatalf("README has %d command lines, want at least 12 of which the last stops the hub: %q", len(lines), lines)
	}
	script := fmt.Sprintf(prelude, root) + strings.Join(lines[:len(lines)-1], "\n") + propagated + lines[len(lines)-1]
	output := runScript(t, folder, script)
	for _, want := range []string{"eu-west", "us-east", "cloneset.apps.kruise.io/shop created"} {
		if !strings.Contains(output, want) {
			t.Errorf("the commands do not print %q:\n%s", want, output)
		}
	}
	if log, err := os.ReadFile(filepath.Join(folder, "up.log")); err != nil ||
		!strings.Contains(string(log), "admin.kubeconfig") {
		t.Errorf("up.log lacks the path of the kubeconfig (%v):\n%s", err, log)
	}
}

// shellLines returns the lines of a page's sh blocks.
func shellLines(page string) (lines []string) {
	inBlock := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inBlock = line == "```sh"
		} else if inBlock && line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// otherCluster is the file in KUBECONFIG of a reader who works with another cluster. It is in the folder of clone.
const otherCluster = "other.kubeconfig"

// readerIn returns the environment of a reader whose home is a folder.
func readerIn(folder string) []string {
	return append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME=", "KUBECONFIG="+filepath.Join(folder, otherCluster))
}

// clone returns a folder with what the commands need of a clone after `make build`.
func clone(t *testing.T, root string) string {
	t.Helper()
	folder := t.TempDir()
	argosy, err := filepath.Abs(binary(t))
	if err == nil {
		err = os.Mkdir(filepath.Join(folder, "bin"), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "bin", "argosy"), fmt.Appendf(nil, wrapper, argosy), 0o755)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(root, "examples"), filepath.Join(folder, "examples"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, otherCluster), []byte(unreachable), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// runScript runs a script with the folder as its home, and returns its output. It stops at the first command that
// fails.
func runScript(t *testing.T, folder, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*kit.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-exc", script)
	cmd.Dir = folder
	cmd.Env = readerIn(folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	output, err := cmd.CombinedOutput()
	if err != nil {
		for _, name := range []string{"up.log", "sim.log"} {
			log, _ := os.ReadFile(filepath.Join(folder, name))
			t.Logf("%s:\n%s", name, log)
		}
		t.Fatalf("the commands of README: %v\n%s", err, output)
	}
	return string(output)
}
