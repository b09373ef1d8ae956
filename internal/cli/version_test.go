package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/version"
)

// A flag that asks must never start, join or delete anything: `argosy up --version` once started a hub.
func TestVersionFlagOnlyPrintsForEveryCommand(t *testing.T) {
	var paths [][]string
	var walk func(cmd *cobra.Command, path []string)
	walk = func(cmd *cobra.Command, path []string) {
		paths = append(paths, path)
		for _, child := range cmd.Commands() {
			walk(child, append(append([]string{}, path...), child.Name()))
		}
	}
	walk(newRoot("argosy"), nil)
	if len(paths) < 30 {
		t.Fatalf("there are %d commands", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
			code := Main(t.Context(), append(append([]string{"argosy"}, path...), "--version"), out, errOut)
			if want := "argosy " + version.Get().String() + "\n"; code != 0 || out.String() != want || errOut.Len() > 0 {
				t.Errorf("exit code %d, %q, %q; want %q", code, out, errOut, want)
			}
		})
	}
}

func TestVersionPrintsTheBuild(t *testing.T) {
	run := func(args ...string) (string, string, int) {
		out, errOut := &bytes.Buffer{}, &bytes.Buffer{}
		code := Main(t.Context(), append([]string{"argosy", "version"}, args...), out, errOut)
		return out.String(), errOut.String(), code
	}
	text, _, code := run()
	if code != 0 || !strings.HasPrefix(text, "argosy "+version.Get().String()+"\nKubernetes ") {
		t.Errorf("exit code %d, %q", code, text)
	}
	text, _, code = run("-o", "json")
	var got versions
	if err := json.Unmarshal([]byte(text), &got); code != 0 || err != nil || got.Build != version.Get() ||
		got.KubernetesVersion == "" {
		t.Errorf("exit code %d, %v, %q", code, err, text)
	}
	if text, _, code = run("-o", "yaml"); code != 0 || !strings.Contains(text, "goVersion: go") {
		t.Errorf("exit code %d, %q", code, text)
	}
	if _, wrong, code := run("-o", "xml"); code == 0 || !strings.Contains(wrong, `not "xml"`) {
		t.Errorf("exit code %d, %q", code, wrong)
	}
}
