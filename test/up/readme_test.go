package up

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argosy-io/argosy/test/kit"
)

// walkthrough is a user who types what README says, in a folder of his own.
type walkthrough struct {
	t            *testing.T
	root, folder string
	// environment is what `export` lines have added.
	environment []string
}

// README's lines run in order and as written, except for those of make and the demonstration. The commands and flags of
// docs/commands.md exist.
func TestEveryCommandOfTheReadmeDoesWhatItSays(t *testing.T) {
	kit.Long(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile(filepath.Join(root, "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	w := &walkthrough{t: t, root: root, folder: t.TempDir()}
	w.prepare(binary(t))
	blocks, _ := commandsOf(string(readme))
	_, verbs := commandsOf(string(reference))
	if len(blocks) < 8 || len(verbs) < 20 {
		t.Fatalf("README has %d command lines and docs/commands.md names %d commands", len(blocks), len(verbs))
	}
	for _, verb := range verbs {
		w.exists(verb)
	}
	for _, line := range blocks {
		w.run(line)
	}
	w.must(`export PATH=$PWD/bin:$PATH && argosy status`)
	w.until("every replica of the example is ready", func() (string, error) {
		return w.shell(`test "$(kubectl get clonesets shop -o 'jsonpath={.spec.replicas} {.status.readyReplicas}')" = "8 8"`)
	})
}

// commandsOf returns the lines of a page's sh blocks and each `bin/argosy …` of its sentences, in order, and the
// commands that its sentences and tables name.
func commandsOf(text string) (lines, verbs []string) {
	inBlock := false
	inline := regexp.MustCompile("`(bin/argosy [^`]+)`")
	named := regexp.MustCompile("`argosy ([a-z][^`]*)`")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = line == "```sh"
		case inBlock:
			if line, _, _ = strings.Cut(line, " #"); line != "" {
				lines = append(lines, strings.TrimSpace(line))
			}
		default:
			for _, m := range inline.FindAllStringSubmatch(line, -1) {
				lines = append(lines, m[1])
			}
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				verbs = append(verbs, m[1])
			}
		}
	}
	return lines, verbs
}

// prepare makes what a fresh clone has after `make build`.
func (w *walkthrough) prepare(argosy string) {
	w.t.Helper()
	if _, err := exec.LookPath("kubectl"); err != nil {
		w.t.Skip("there is no kubectl on this machine, with which README applies the examples")
	}
	argosy, err := filepath.Abs(argosy)
	if err == nil {
		err = os.Mkdir(filepath.Join(w.folder, "bin"), 0o755)
	}
	if err == nil {
		err = os.Symlink(argosy, filepath.Join(w.folder, "bin", "argosy"))
	}
	if err == nil {
		err = os.Symlink(filepath.Join(w.root, "examples"), filepath.Join(w.folder, "examples"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.environment = append(os.Environ(), "HOME="+w.folder, "XDG_DATA_HOME=", "KUBECONFIG=")
}

// exists fails the test if the binary lacks a command or one of its flags that a page names.
func (w *walkthrough) exists(usage string) {
	w.t.Helper()
	var verb, flags []string
	for _, word := range strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(usage)) {
		switch {
		case strings.HasPrefix(word, "-"):
			flags = append(flags, word)
		case len(flags) == 0 && regexp.MustCompile(`^[a-z]+$`).MatchString(word):
			verb = append(verb, word)
		}
	}
	help, err := w.shell("bin/argosy " + strings.Join(verb, " ") + " --help")
	if err != nil {
		w.t.Errorf("argosy %s: %v\n%s", usage, err, help)
	}
	for _, flag := range flags {
		if !regexp.MustCompile(`(^|[ ,])` + regexp.QuoteMeta(flag) + `[ ,=\[]`).MatchString(help) {
			w.t.Errorf("argosy %s: there is no %s in\n%s", usage, flag, help)
		}
	}
}

// run does as a line says.
func (w *walkthrough) run(line string) {
	w.t.Helper()
	switch target, isMake := strings.CutPrefix(line, "make "); {
	case isMake: // this is run by make itself
		w.must("make --dry-run --no-print-directory -C " + w.root + " " + target)
	case strings.HasPrefix(line, "bin/argosy sim "):
		w.background(line)
		w.until("the members run", func() (string, error) {
			_, err := os.Stat(filepath.Join(w.folder, "members.yaml"))
			return "", err
		})
	case strings.HasPrefix(line, "bin/argosy demo "): // it starts another fleet
		w.exists(strings.TrimPrefix(line, "bin/argosy "))
	case strings.HasPrefix(line, "bin/argosy up"):
		w.background(line + " --port 0")
		w.until("the hub is up", func() (string, error) { return w.shell("bin/argosy status") })
	case strings.HasPrefix(line, "export "):
		said := w.must(strings.TrimPrefix(line, "export ") + "; printf %s \"$KUBECONFIG\"")
		w.environment = append(w.environment, "KUBECONFIG="+said)
	case strings.HasPrefix(line, "kubectl get "), strings.HasPrefix(line, "bin/argosy why "):
		// It is asked of what the hub is still about to make.
		w.until(line, func() (string, error) {
			said, err := w.shell(line)
			if err == nil && (strings.TrimSpace(said) == "" || strings.Contains(said, "No resources found")) {
				err = fmt.Errorf("it printed %q", said)
			}
			return said, err
		})
	default:
		if said := w.must(line); strings.TrimSpace(said) == "" {
			w.t.Errorf("%s prints nothing", line)
		}
	}
}

// background starts a command that runs until the test ends.
func (w *walkthrough) background(line string) {
	w.t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(w.t.Context(), "sh", "-c", "exec "+line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = w.folder, w.environment, &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { // the test's context has ended by now
		_ = cmd.Wait()
		if w.t.Failed() {
			w.t.Logf("%s said:\n%s", line, said.String())
		}
	})
}

func (w *walkthrough) shell(line string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), kit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = w.folder, w.environment
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func (w *walkthrough) must(line string) string {
	w.t.Helper()
	said, err := w.shell(line)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", line, err, said)
	}
	return said
}

func (w *walkthrough) until(what string, try func() (string, error)) {
	w.t.Helper()
	kit.Eventually(w.t, what, func() string {
		said, err := try()
		if err != nil {
			return fmt.Sprintf("%v\n%s", err, said)
		}
		return ""
	})
}
