package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
)

// completeAsPlugin makes "completion" fail in a kubectl plugin: its scripts would be scripts for "kubectl" and replace
// those of kubectl itself.
func completeAsPlugin(root *cobra.Command) {
	plugin, isPlugin := strings.CutPrefix(root.CommandPath(), "kubectl ")
	if !isPlugin {
		return
	}
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Long = fmt.Sprintf("kubectl completes the commands of a plugin by an executable named kubectl_complete-%s in PATH, which may be a link to this binary.", plugin)
		for _, shell := range cmd.Commands() {
			shell.Long = cmd.Long
			shell.RunE = func(*cobra.Command, []string) error {
				return fmt.Errorf(`kubectl's own completion covers its plugins; link this binary beside it: ln -s "$(command -v kubectl-%s)" /usr/local/bin/kubectl_complete-%s`, plugin, plugin)
			}
		}
	}
}

// clustersFlags are the flags that name clusters of the fleet.
var clustersFlags = []string{"cluster", "clusters", "cluster-down", "cluster-drained", "cluster-removed", "unhealthy"}

// completeFlags adds completion functions to the flags of root and of all commands below it.
func completeFlags(root *cobra.Command, hub *hubcli.HubFlags) {
	of := func(cmd *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
		switch {
		case slices.Contains(clustersFlags, f.Name):
			return hubcli.CompleteNames(hub, "clusters.cluster.karmada.io")
		case f.Name == "namespace":
			return hubcli.CompleteNames(hub, "namespaces")
		case f.Name == "karmada-context", f.Name == "context":
			return hubcli.Contexts(hub, "kubeconfig")
		case f.Name == "cluster-context":
			return hubcli.Contexts(hub, "cluster-kubeconfig")
		case f.Name == "operation-scope":
			return cobra.FixedCompletions([]string{membercli.ScopeHub, membercli.ScopeMembers, membercli.ScopeAll},
				cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "color":
			return cobra.FixedCompletions(hubcli.ColorModes, cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "output" && strings.Contains(f.Usage, "yaml"):
			return cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
		case f.Name == "output" && strings.Contains(f.Usage, "json"):
			return cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp)
		}
		return nil
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, has := cmd.GetFlagCompletionFunc(f.Name); has {
				return
			}
			if complete := of(cmd, f); complete != nil {
				_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // it fails for flags that are completed already
			}
		})
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
}
