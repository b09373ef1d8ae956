package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// complete returns what the shell offers for the last word of a command line.
func complete(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), fleet.Lab.Hub.Binary, append([]string{"__complete"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+fleet.Lab.Hub.Kubeconfig())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("complete %q: %v", args, err)
	}
	var words []string
	for line := range strings.Lines(string(out)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(word, ":") {
			continue
		}
		words = append(words, word)
	}
	return words
}

func TestCompletionOffersNamesFromTheHub(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	for _, name := range []string{"complete-a", "complete-b"} {
		fleet.Hub.Apply(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}}`, name, ns))
	}
	for _, test := range []struct {
		line []string
		want []string // offered; other tests add more clusters and kinds
		not  []string
	}{
		{line: []string{"unjoin", ""}, want: []string{"m1", "m2", "m3"}},
		{line: []string{"unjoin", "m1"}, want: []string{"m1"}, not: []string{"m2", "m3"}},
		{line: []string{"get", "configmaps", "-n", ns, "complete-"}, want: []string{"complete-a", "complete-b"}},
		{line: []string{"get", "configmaps", "-C", "m1,"}, want: []string{"m1,m2", "m1,m3"}, not: []string{"m1,m1"}},
		{line: []string{"why", "configmap", "-n", ns, "complete-"}, want: []string{"complete-a", "complete-b"}},
		{line: []string{"why", "-n", ns, "configmap/complete-"}, want: []string{"configmap/complete-a"}},
		{line: []string{"get", "configmaps", "-n", ns[:len(ns)-1]}, want: []string{ns}},
		{line: []string{"simulate", "--cluster-down", "m"}, want: []string{"m1", "m2", "m3"}},
	} {
		var words []string
		// If the hub answers slowly, nothing is offered.
		kit.Eventually(t, strings.Join(test.line, " ")+" is completed", func() string {
			words = complete(t, test.line...)
			for _, want := range test.want {
				if !slices.Contains(words, want) {
					return fmt.Sprintf("it offers %q, not %s", words, want)
				}
			}
			return ""
		})
		for _, not := range test.not {
			if slices.Contains(words, not) {
				t.Errorf("%q offers %s", test.line, not)
			}
		}
	}
}
