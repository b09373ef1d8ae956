package cli

import (
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/server"
)

func newUp() *cobra.Command {
	config, file := server.DefaultConfig(), ""
	up := &cobra.Command{
		Use:   "up",
		Short: "Run the hub in the foreground",
		Long: `Run the hub in the foreground: store, API server, admission, controllers and scheduler in one process.

It makes its keys and certificates on the first start, and writes a kubeconfig with which kubectl reaches it.
A later start on the same data folder continues where it was. Ctrl-C stops it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			paceGC()
			return server.Run(cmd.Context(), config, server.AllParts(), cmd.OutOrStdout())
		},
	}
	configFlags(up, &config, &file)
	return up
}

// paceGC lets the heap grow further between collections: in a burst a fifth of the hub's time went into them. GOGC wins.
func paceGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}

// configFlags are those of every verb that takes the hub's configuration.
func configFlags(cmd *cobra.Command, config *server.Config, file *string) {
	cmd.Flags().StringVar(file, "config", "", "file with the configuration, as `argosy config` prints it; flags override it")
	config.BindFlags(cmd.Flags())
}
