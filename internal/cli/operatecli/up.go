// Package operatecli has the verbs that install and run a hub.
package operatecli

import (
	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/server"
	"github.com/argosy-io/argosy/internal/server/embed/heap"
)

func NewUp() *cobra.Command {
	config, file := server.DefaultConfig(), ""
	up := &cobra.Command{
		Use:   "up",
		Short: "Run the hub in the foreground",
		Long: `Run the hub in the foreground: store, API server, admission, controllers and scheduler in one process.

It creates its keys and certificates on the first start, and writes a kubeconfig for kubectl.
Later starts with the same data folder continue from its data. Ctrl-C stops the hub.`,
		Args:        hubcli.NoArgs,
		Annotations: map[string]string{hubcli.ServesAnnotation: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			hubcli.WarnOfSchedulerFlags(cmd)
			heap.Pace(cmd.Context(), heap.Roomy)
			parts := server.AllParts()
			parts.Join, parts.Simulate = joinByConsole, simulateByConsole
			parts.OneTimeLink = hubcli.IsTerminal(cmd.OutOrStdout())
			return server.Run(cmd.Context(), config, parts, cmd.OutOrStdout())
		},
	}
	configFlags(up, &config, &file)
	return up
}

// configFlags binds the flags of verbs that read the hub's configuration.
func configFlags(cmd *cobra.Command, config *server.Config, file *string) {
	cmd.Flags().StringVar(file, "config", "", "configuration `FILE`, as printed by argosy config; flags override it")
	config.BindFlags(cmd.Flags())
	hubcli.ForeignFlags(cmd.Flags(), hubcli.SchedulerFlags)
}
