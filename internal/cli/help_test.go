package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func everyCommand(root *cobra.Command) (all []*cobra.Command) {
	all = append(all, root)
	for _, child := range root.Commands() {
		all = append(all, everyCommand(child)...)
	}
	return all
}

// A person who copies a line of help must get what it shows, whichever name the binary was called by.
func TestHelpShowsTheNameOfTheBinary(t *testing.T) {
	for path, name := range map[string]string{
		"/usr/local/bin/argosy": "argosy", "karmadactl": "karmadactl", "/bin/kubectl-karmada": "kubectl karmada",
		"kubectl-argosy": "kubectl argosy",
	} {
		t.Run(name, func(t *testing.T) {
			examples := 0
			for _, cmd := range everyCommand(newRoot(path)) {
				for line := range strings.Lines(cmd.Example) {
					line = strings.TrimPrefix(strings.TrimSpace(line), "sudo ")
					if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "helm template ") ||
						strings.HasPrefix(line, "kubectl create secret ") || strings.HasPrefix(line, "--") ||
						strings.HasPrefix(line, "kubectl exec argosy-0 -n argosy ") {
						continue
					}
					examples++
					if !strings.HasPrefix(line, name+" ") {
						t.Errorf("an example of %q is %q, want it to begin with %q", cmd.CommandPath(), line, name)
					}
				}
				other := regexp.MustCompile(`(?:^|["` + "`" +
					`])(argosy|kubectl|karmadactl) (up|get|join|status|orphans|restore|certificates|api-resources)\b`)
				for _, said := range other.FindAllStringSubmatch(cmd.Long, -1) {
					if said[1] != name {
						t.Errorf("the help of %q names %s %s, want %s", cmd.CommandPath(), said[1], said[2], name)
					}
				}
			}
			if examples < 60 {
				t.Errorf("there are only %d examples", examples)
			}
		})
	}
}

func TestACommandOfKubectlItselfStaysKubectls(t *testing.T) {
	for _, name := range []string{"argosy", "karmadactl"} {
		kubeconfig, _, err := newRoot(name).Find([]string{"kubeconfig"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(kubeconfig.Example, "kubectl exec argosy-0 ") {
			t.Errorf("called as %s, the examples of kubeconfig have no kubectl exec:\n%s", name, kubeconfig.Example)
		}
		get, _, err := newRoot(name).Find([]string{"get"})
		if err != nil || strings.Contains(get.Example, "kubectl ") || !strings.Contains(get.Example, name+" get pods") {
			t.Errorf("called as %s, the examples of get are (%v)\n%s", name, err, get.Example)
		}
	}
}
