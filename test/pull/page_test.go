package pull

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// The commands and objects of docs/pull.md are run in their order. The names of the page stand for those of the test.
func TestCommandsOfThePullPageRunTopToBottom(t *testing.T) {
	kit.Long(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "pull.md"))
	if err != nil {
		t.Fatal(err)
	}
	m, member := fleet.StartMember(t, "eu")
	removeAtEnd(t, "eu")
	defer func() {
		for _, kind := range [][2]string{{"apps/v1", "Deployment"}, {"policy.karmada.io/v1alpha1", "PropagationPolicy"}} {
			if fleet.Hub.Find(t, kind[0], kind[1], "default", "web") != nil {
				fleet.Hub.Remove(t, kind[0], kind[1], "default", "web")
			}
		}
	}()
	written := strings.NewReplacer("eu.kubeconfig", m.Kubeconfig)
	ran := 0
	for _, block := range blocks(string(page)) {
		if block.language == "yaml" {
			fleet.Hub.Apply(t, block.text)
			kit.Eventually(t, "the workload of the page is in the cluster", func() string {
				if member.Find(t, "apps/v1", "Deployment", "default", "web") == nil {
					return argosy(t, "why", "deployment", "web", "-n", "default")
				}
				return ""
			})
			continue
		}
		for line := range strings.Lines(block.text) {
			args := strings.Fields(written.Replace(line))
			if args[0] == "kubectl" {
				continue // The object is the next block.
			}
			ran++
			if args[1] == "why" {
				continue // The object is the next block, which runs it.
			}
			out := argosy(t, args[1:]...)
			switch {
			case slices.Equal(args[1:], []string{"token", "create", "--print-register-command"}):
				printed := strings.Fields(out)
				written = strings.NewReplacer("eu.kubeconfig", m.Kubeconfig, "hub.example.com:7443", printed[2],
					"abcdef.0123456789abcdef", printed[4], "sha256:HASH", printed[6])
			case args[1] == "register":
				startAgent(t, m, "eu")
				becomes(t, "eu", "True")
			case args[1] == "get" && !strings.Contains(out, "eu"):
				t.Errorf("the clusters are\n%s", out)
			case args[1] == "unregister" && member.Find(t, "apps/v1", "Deployment", "default", "web") != nil:
				t.Error("the workload is left in the cluster")
			}
		}
	}
	if ran < 6 {
		t.Errorf("only %d commands ran", ran)
	}
}

// block is a code block of the page.
type block struct{ language, text string }

// blocks returns the fenced blocks of a page, and indented lines, which are commands.
func blocks(page string) []block {
	var found []block
	open := -1
	for line := range strings.Lines(page) {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open < 0:
			found = append(found, block{language: strings.TrimSpace(language)})
			open = len(found) - 1
		case fence:
			open = -1
		case open >= 0:
			found[open].text += line
		case strings.HasPrefix(line, "    "):
			found = append(found, block{language: "sh", text: strings.TrimSpace(line) + "\n"})
		}
	}
	return found
}
