package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestReleaseCommandLinesAreChecked(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for line, want := range map[string]string{
		"release skip r1":                                     "--reason is missing",
		"release retry r1":                                    "--reason is missing",
		"release status":                                      "the name of a release is missing",
		"release start cloneset/web --timeout 1m":             "add --wait",
		"release start cloneset/web --supersede Later":        "Queue, Replace or Refuse",
		"release plan cloneset/web -o yaml":                   "use json",
		"release plan cloneset/web --strategy a --filename b": "not both",
		"release plan web":                                    "KIND/NAME",
	} {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), append([]string{"argosy"}, strings.Fields(line)...), &out, &errOut)
		if code != 1 || out.Len() > 0 || !strings.Contains(errOut.String(), want) {
			t.Errorf("argosy %s exits with %d and prints %q, want %q", line, code, errOut.String(), want)
		}
	}
}
