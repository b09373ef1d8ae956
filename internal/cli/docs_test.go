package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func manPages(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	var out, errOut bytes.Buffer
	if code := Main(t.Context(), []string{"argosy", "docs", "man", "--to", dir}, &out, &errOut); code != 0 ||
		errOut.Len() > 0 {
		t.Fatalf("ended with %d: %s", code, errOut.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "man1", "*"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(file)] = string(text)
	}
	return pages
}

func TestEveryCommandHasAManPage(t *testing.T) {
	pages := manPages(t)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.HasParent() && !cmd.IsAvailableCommand() {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page := pages[name+".1"]
		delete(pages, name+".1")
		for _, want := range []string{".TH \"" + strings.ToUpper(name) + `" "1"`, ".SH NAME\n", ".SH SYNOPSIS\n",
			".SH DESCRIPTION\n"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page of %q lacks %q", cmd.CommandPath(), want)
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(newRoot("argosy"))
	for name := range pages {
		t.Errorf("%s is of no command", name)
	}
}

func TestManPagesEscapeMarkup(t *testing.T) {
	pages := manPages(t)
	for page, words := range map[string][]string{
		"argosy-simulate.1": {"* enables all", "CLUSTER=KEY=VALUE:EFFECT",
			`\-\-cluster\-down     the cluster stops responding`},
		"argosy-orphans.1": {"argosy orphans delete deployment web"},
		"argosy-get.1":     {"argosy get pods \\-A"},
	} {
		plain := strings.ReplaceAll(pages[page], `\-`, "-")
		for _, word := range words {
			if !strings.Contains(plain, strings.ReplaceAll(word, `\-`, "-")) {
				t.Errorf("%s lacks %q:\n%s", page, word, pages[page])
			}
		}
	}
}

func TestManPagesAreTheSameForEveryUser(t *testing.T) {
	first := manPages(t)
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("KUBECONFIG", "/home/somebody/config")
	second := manPages(t)
	t.Setenv("HOME", "/home/else")
	third := manPages(t)
	for name, page := range second {
		if strings.Contains(page, "/home/") {
			t.Errorf("%s names the home of who wrote it", name)
		}
		if page != third[name] {
			t.Errorf("%s differs from one user to another", name)
		}
		if os.Getenv("XDG_DATA_HOME") == "" && page != first[name] {
			t.Errorf("%s differs from one run to another", name)
		}
	}
}

func TestManPagesAreWellFormed(t *testing.T) {
	pages := manPages(t)
	for name, page := range pages {
		for i, line := range strings.Split(page, "\n") {
			// A line that begins with a dot or a quote is a request; these are those that the pages use.
			if (strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'")) && !isRequest(line) {
				t.Errorf("%s:%d: %q is taken for a request of roff", name, i+1, line)
			}
		}
		if strings.Count(page, "\n.EX") != strings.Count(page, "\n.EE") ||
			strings.Count(page, "\n.RS") != strings.Count(page, "\n.RE") {
			t.Errorf("%s opens what it does not close", name)
		}
	}
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Log("there is no mandoc on this machine, which would check more")
		return
	}
	for name, page := range pages {
		cmd := exec.CommandContext(t.Context(), mandoc, "-T", "lint", "-W", "error")
		cmd.Stdin = strings.NewReader(page)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func isRequest(line string) bool {
	name, _, _ := strings.Cut(line, " ")
	switch name {
	case ".nh", ".TH", ".SH", ".SS", ".PP", ".RS", ".RE", ".EX", ".EE", ".TP", ".IP", ".nf", ".fi", ".br", ".TS", ".TE",
		".ti", ".in":
		return true
	}
	return false
}
