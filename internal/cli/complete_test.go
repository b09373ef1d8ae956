package cli

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/test/kit/clitest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// completed returns what the shell is offered for a line, and whatever else was written.
func completed(t *testing.T, args ...string) (words []string, rest string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := Main(t.Context(), args, &out, &errOut); code != 0 {
		t.Fatalf("%q ended with %d: %s", args, code, errOut.String())
	}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, ":") {
			word, _, _ := strings.Cut(line, "\t")
			words = append(words, word)
		}
	}
	return words, errOut.String()
}

func TestCompletionIsSilentWithoutAHub(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deaf.Close() })
	dir := t.TempDir()
	for name, kubeconfig := range map[string]string{
		"down":                clitest.WriteFile(t, dir, "down", clitest.KubeconfigOf("https://127.0.0.1:1")),
		"not responding":      clitest.WriteFile(t, dir, "deaf", clitest.KubeconfigOf("http://"+deaf.Addr().String())),
		"no such file":        dir + "/nothing",
		"not a kubeconfig":    clitest.WriteFile(t, dir, "text", "no: {"),
		"an empty KUBECONFIG": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", kubeconfig)
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			lines := [][]string{
				{"why", ""}, {"why", "deployment", ""}, {"why", "deployment/"}, {"get", "pods", ""}, {"logs", ""}, {"exec", ""},
				{"describe", "deployment", ""},
				{"unjoin", ""}, {"rollout", "status", "cloneset", ""},
				{"release", "status", ""}, {"release", "approve", "r1", "--gate", ""},
				{"release", "start", "cloneset", "web", "--strategy", ""}, {"adopt", "--cluster", "eu", "deployment", ""},
				{"get", "pods", "-C", ""}, {"why", "deployment", "web", "-n", ""}, {"simulate", "--cluster-down", ""},
			}
			if name == "not responding" {
				lines = lines[:1] // each waits for CompletionTimeout
			}
			for _, line := range lines {
				words, rest := completed(t, append([]string{"argosy", "__complete"}, line...)...)
				if len(words) > 0 || strings.Count(rest, "\n") != 1 ||
					!strings.HasPrefix(rest, "Completion ended with directive: ShellCompDirectiveNoFileComp") {
					t.Errorf("%q offers %q and says %q", line, words, rest)
				}
			}
		})
	}
}

func TestFlagsWithFixedValuesAreCompletedWithoutAHub(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", clitest.WriteFile(t, dir, "kubeconfig", clitest.KubeconfigOf("https://127.0.0.1:1")))
	for _, c := range []struct {
		line []string
		want string
	}{
		{[]string{"status", "--color", ""}, "auto always never"},
		{[]string{"status", "-o", ""}, "json"},
		{[]string{"why", "-o", ""}, "json yaml"},
		{[]string{"get", "pods", "-s", ""}, "karmada members all"},
		{[]string{"status", "--karmada-context", ""}, "one two"},
		{[]string{"join", "eu", "--cluster-kubeconfig", dir + "/kubeconfig", "--cluster-context", ""}, "one two"},
	} {
		if words, _ := completed(t, append([]string{"argosy", "__complete"}, c.line...)...); strings.Join(words,
			" ") != c.want {
			t.Errorf("%q offers %q, want %s", c.line, words, c.want)
		}
	}
}

// scriptOf returns what completion writes, which cobra sends to the standard output of the process.
func scriptOf(t *testing.T, name, shell string) (int, string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "script"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stdout := os.Stdout
	os.Stdout = file
	code := Main(t.Context(), []string{name, "completion", shell}, file, os.Stderr)
	os.Stdout = stdout
	script, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(script)
}

func TestCompletionWorksUnderEveryName(t *testing.T) {
	for _, name := range []string{"argosy", "karmadactl"} {
		for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
			code, script := scriptOf(t, name, shell)
			if code != 0 || !strings.Contains(script, "__"+name) {
				t.Errorf("%s completion %s ends with %d, and its script does not complete %s", name, shell, code, name)
			}
		}
	}

	// kubectl completes a plugin by an executable that it finds beside it; a script for "kubectl" would replace kubectl's
	// own.
	var out, errOut bytes.Buffer
	if code := Main(t.Context(), []string{"/opt/bin/kubectl-karmada", "completion", "bash"}, &out, &errOut); code != 1 ||
		out.Len() > 0 || !strings.Contains(errOut.String(), "kubectl_complete-karmada") {
		t.Errorf("kubectl karmada completion bash ends with %d, %q, %q; want how kubectl completes a plugin", code,
			out.String(), errOut.String())
	}
	if words, _ := completed(t, "/opt/bin/kubectl_complete-karmada", "unj"); strings.Join(words, " ") != "unjoin" {
		t.Errorf("kubectl is offered %q for unj, want unjoin", words)
	}
}

func TestWaitingReleaseGatesAreCompleted(t *testing.T) {
	s := clitest.See(t, nil)
	s.Api.Serve(membertest.Kind{GroupVersionKind: releasev1alpha1.GroupVersion.WithKind("Release"), Plural: "releases",
		Namespaced: true})
	rel := clitest.Started(strings.Replace(clitest.Gated, "gates: [",
		"gates: [{name: done, position: Before, phase: Passed}, ", 1))
	rel.TypeMeta = metav1.TypeMeta{APIVersion: releasev1alpha1.GroupVersion.String(), Kind: "Release"}
	s.Api.Put(rel)
	words, _ := completed(t, "argosy", "__complete", "--kubeconfig", s.File, "release", "approve", "r1", "--gate", "")
	if strings.Join(words, " ") != "sign" {
		t.Errorf("the gates that are offered are %q, want sign", words)
	}
}
