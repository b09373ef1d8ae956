package cli

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// kubectlVerbs are taken from kubectl, with its text.
var kubectlVerbs = []string{"get", "api-resources", "api-versions", "explain", "describe", "logs", "exec", "attach",
	"apply", "create", "delete", "edit", "patch", "label", "annotate"}

// nameHelp replaces the name of the binary in examples and help of all commands by the name it was called by. Our own
// text has argosy; text of commands from kubectl has kubectl.
func nameHelp(root *cobra.Command) {
	var verbs []string
	for _, cmd := range root.Commands() {
		verbs = append(verbs, cmd.Name())
		verbs = append(verbs, cmd.Aliases...)
	}
	ours := regexp.MustCompile(`\bargosy (` + strings.Join(verbs, "|") + `)\b`)
	taken := regexp.MustCompile(`\b(?:argosy|kubectl) (` + strings.Join(verbs, "|") + `)\b`)
	var walk func(*cobra.Command, *regexp.Regexp)
	walk = func(cmd *cobra.Command, called *regexp.Regexp) {
		if cmd.Parent() == root && slices.Contains(kubectlVerbs, cmd.Name()) {
			called = taken
		}
		for _, text := range []*string{&cmd.Long, &cmd.Example} {
			*text = called.ReplaceAllString(*text, root.CommandPath()+" $1")
		}
		for _, child := range cmd.Commands() {
			walk(child, called)
		}
	}
	walk(root, ours)
}
