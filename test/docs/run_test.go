package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// story is how the commands of a page run: one after the other in bash, in a folder with eu.kubeconfig, us.kubeconfig
// and the examples, on a hub with the clusters eu and us. All commands run that are not in notRun.
type story struct {
	page string
	// before is what bash does first, after is what it does last.
	before, after string
	// names are what the page has and what stands for it, in pairs.
	names []string
	// steps are the commands that need more than to succeed, in the order of the page.
	steps []step
	// onHub is true if the data folder of the hub is the user's default one.
	onHub bool
	// apart is true if no command uses the hub: then the page need not wait for others.
	apart bool
}

// step is a command of a page and what is expected of it.
type step struct {
	command string // as the page has it
	before  string // what bash does before it
	want    string // a text of its output
	code    int    // its exit code
	until   string // it does not end: it is stopped when its output has this text
}

// runningHub matches a command that runs a hub, which is stopped when it is ready.
var runningHub = regexp.MustCompile(`^(\S*/)?argosy up( |$)`)

// hubIsReady is what a hub writes when it is.
const hubIsReady = "The hub is ready"

// prelude is what commands of the stories may use. $output is the file with the output of the last command.
const prelude = `set -eo pipefail
eventually() {
	end=$((SECONDS + 120))
	until eval "$1" >/dev/null 2>&1; do
		if ((SECONDS > end)); then echo "not within 120 s: $1"; eval "$1" || true; return 1; fi
		sleep 0.2
	done
}
`

// wrapper is argosy. A hub uses a free port, because another one runs on this machine.
const wrapper = `#!/bin/sh
case $1 in
up) shift; exec %[1]q up --port 0 "$@" ;;
install | uninstall)
	case "$*" in
	*--root* | *--dry-run*) ;;
	*) echo "install needs --root here" >&2; exit 1 ;;
	esac ;;
esac
exec %[1]q "$@"
`

// machine are what stands for this machine in the commands of pages, in pairs.
func machine(folder string) []string {
	pairs := []string{"sudo ", "", "podman exec argosy /usr/local/bin/argosy", "argosy",
		"kubectl exec argosy-0 --namespace argosy -c hub -- /usr/local/bin/argosy", "argosy"}
	for _, path := range []string{"/var/lib/argosy", "/var/log/argosy", "/etc/argosy", "/srv/argosy", "/mnt/backups"} {
		pairs = append(pairs, path, folder+path)
	}
	return pairs
}

// commandsOf returns the commands that run of a page, and their lines.
func commandsOf(page, text string) (commands []string, lines []int) {
	listed := listedCommands()
	for _, e := range examplesOf(page, text) {
		if e.language == "yaml" || e.language == "mermaid" {
			continue
		}
		for _, c := range e.commands() {
			if !listed[c] {
				commands, lines = append(commands, c), append(lines, e.line)
			}
		}
	}
	return commands, lines
}

// expected returns the step of each command, or an error if a step is not a command of the page.
func (s story) expected(commands []string) ([]step, error) {
	left := slices.Clone(s.steps)
	all := make([]step, len(commands))
	for i, c := range commands {
		all[i].command = c
		if n := slices.IndexFunc(left, func(s step) bool { return s.command == c }); n >= 0 {
			all[i] = left[n]
			left = slices.Delete(left, n, n+1)
		}
		if runningHub.MatchString(c) {
			all[i].until = hubIsReady
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%s has no command %q, or not as often as its story", s.page, left[0].command)
	}
	return all, nil
}

// script returns what bash runs. The output and the exit code of command i go to the files out.i and code.i.
func (s story) script(steps []step, folder string) string {
	names := strings.NewReplacer(append(slices.Clone(s.names), machine(folder)...)...)
	var out strings.Builder
	out.WriteString(prelude + s.before + "\n")
	for i, step := range steps {
		command := names.Replace(strings.TrimPrefix(step.command, "$ "))
		fmt.Fprintf(&out, "echo %s\n%s\noutput=%s/out.%d\n", quoted(step.command), step.before, folder, i)
		if step.until != "" {
			fmt.Fprintf(&out, `%s >$output 2>&1 </dev/null & pid=$!
eventually "grep -q '%s' $output || ! kill -0 $pid" || true
kill $pid 2>/dev/null || true
wait $pid && code=0 || code=$?
`, command, step.until)
		} else {
			fmt.Fprintf(&out, "if { %s\n} >$output 2>&1 </dev/null; then code=0; else code=$?; fi\n", command)
		}
		fmt.Fprintf(&out, "echo $code >%s/code.%d\n", folder, i)
	}
	out.WriteString(s.after + "\n")
	return out.String()
}

// quoted is a word of bash.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// check returns what is wrong with the output and the exit code of a command.
func (s step) check(folder string, i int) string {
	raw, _ := os.ReadFile(filepath.Join(folder, fmt.Sprintf("out.%d", i))) // of a command that did not run, it is empty
	output := string(raw)
	raw, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("code.%d", i)))
	if err != nil {
		return "it did not run"
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	switch {
	case err != nil:
		return err.Error()
	case (s.until == "" || s.until == hubIsReady) && code != s.code:
		return fmt.Sprintf("the exit code is %d, want %d:\n%s", code, s.code, output)
	}
	for _, text := range []string{s.want, s.until} {
		if !strings.Contains(output, text) {
			return fmt.Sprintf("the output lacks %q:\n%s", text, output)
		}
	}
	return ""
}

// run runs the commands of the page in a folder.
func (s story) run(t *testing.T, text, folder string) {
	t.Helper()
	commands, lines := commandsOf(s.page, text)
	steps, err := s.expected(commands)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*kit.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", s.script(steps, folder))
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME=", "DISPLAY=", "WAYLAND_DISPLAY=", "BROWSER=",
		"PATH="+filepath.Join(folder, "bin")+":"+os.Getenv("PATH"),
		"KUBECONFIG="+filepath.Join(folder, "hub.config")+":"+filepath.Join(folder, "member.config"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", s.page, err, output)
	}
	for i, step := range steps {
		if wrong := step.check(folder, i); wrong != "" {
			t.Errorf("%s:%d: %s\n%s", s.page, lines[i], step.command, wrong)
		}
	}
}

// fleetOfPages is the hub and the clusters of the examples. The definitions of eu are as new as those of the hub.
func fleetOfPages(t *testing.T) *kit.Fleet {
	t.Helper()
	f, err := kit.StartWith(lab.Options{Dir: t.TempDir(), HubArgs: []string{"--cluster-status-update-frequency=2s"},
		Members: []sim.Member{{Name: "eu", Nodes: 2, OpenKruise: "1.10"}, {Name: "us", Nodes: 2, OpenKruise: "1.10"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// folderFor returns a folder in which commands of a page run.
func (s story) folderFor(t *testing.T, f *kit.Fleet) string {
	t.Helper()
	folder := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bin", "var/lib", "var/log/argosy", "etc/argosy", "srv", "mnt/backups", ".local/share"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(f.Lab.Hub.Dir, "data")
	files := map[string]string{"bin/argosy": fmt.Sprintf(wrapper, f.Lab.Hub.Binary),
		"etc/argosy/config.yaml": "dataDir: " + data + "\n"}
	for _, m := range f.Lab.Fleet.Members() {
		raw, err := os.ReadFile(m.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		files[m.Name+".kubeconfig"] = string(raw)
	}
	hub, err := os.ReadFile(f.Lab.Hub.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	files["hub.config"] = string(hub)
	files["member.config"] = asContext(t, "member", files["eu.kubeconfig"])
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{"examples": filepath.Join(here, root, "examples")}
	if s.onHub {
		links[".local/share/argosy"] = data
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// asContext returns a kubeconfig with one context of that name, which is not the current one.
func asContext(t *testing.T, name, kubeconfig string) string {
	t.Helper()
	from, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	current := from.Contexts[from.CurrentContext]
	to := clientcmdapi.NewConfig()
	to.Clusters[name], to.AuthInfos[name] = from.Clusters[current.Cluster], from.AuthInfos[current.AuthInfo]
	to.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	raw, err := clientcmd.Write(*to)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestCommandsOfPagesRun(t *testing.T) {
	kit.Long(t)
	for _, program := range []string{"bash", "kubectl", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("the commands of the pages need %s, which this machine does not have", program)
		}
	}
	all, f := pages(t), fleetOfPages(t)
	for group, apart := range map[string]bool{"on the hub": false, "apart": true} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for _, s := range append([]story{{page: "the workloads", before: workloads}}, stories...) {
				if s.apart == apart {
					t.Run(strings.TrimPrefix(s.page, "docs/"), func(t *testing.T) { s.run(t, all[s.page], s.folderFor(t, f)) })
				}
			}
		})
	}
}

func TestWrongResultOfACommandIsFound(t *testing.T) {
	s := story{page: "a page", before: "x=1", names: []string{"NAME", "world"}, steps: []step{
		{command: "echo hello NAME", want: "hello world"}, {command: "true", code: 1}, {command: "echo $x", want: "2"}}}
	steps, err := s.expected([]string{"echo hello NAME", "(exit 2)", "true", "echo $x"})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if out, err := exec.Command("bash", "-c", s.script(steps, folder)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, want := range []string{"", "the exit code is 2, want 0", "the exit code is 0, want 1", `lacks "2"`} {
		if got := steps[i].check(folder, i); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", steps[i].command, got, want)
		}
	}
	if got := (step{}).check(folder, len(steps)); got != "it did not run" {
		t.Errorf("a command that did not run: %q", got)
	}
	if _, err := s.expected([]string{"true"}); err == nil {
		t.Error("a story with commands that its page does not have is accepted")
	}
}
