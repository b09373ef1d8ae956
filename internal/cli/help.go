package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// kubectlVerbs are taken from kubectl, with its text.
var kubectlVerbs = []string{"get", "api-resources", "describe", "logs", "exec", "attach"}

// nameHelp has examples and help of root and all commands under it show the name by which the binary was called. Our
// own text says argosy; that of commands which are taken from kubectl says kubectl, which is kubectl's own elsewhere.
func nameHelp(root *cobra.Command) {
	var verbs []string
	for _, cmd := range root.Commands() {
		verbs = append(verbs, cmd.Name())
		verbs = append(verbs, cmd.Aliases...)
	}
	ours := regexp.MustCompile(`\bargosy (` + strings.Join(verbs, "|") + `)\b`)
	taken := regexp.MustCompile(`\b(?:argosy|kubectl) (` + strings.Join(verbs, "|") + `)\b`)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		called := ours
		if cmd.Parent() == root && slices.Contains(kubectlVerbs, cmd.Name()) {
			called = taken
		}
		for _, text := range []*string{&cmd.Long, &cmd.Example} {
			*text = called.ReplaceAllString(*text, root.CommandPath()+" $1")
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
}
