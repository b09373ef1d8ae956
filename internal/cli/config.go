package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/server"
)

func newConfig() *cobra.Command {
	config, file := server.DefaultConfig(), ""
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration that `argosy up` would run with",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			warnOfSchedulerFlags(cmd)
			if err := config.Validate(); err != nil {
				return err
			}
			text, err := config.YAML()
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	configFlags(cmd, &config, &file)
	return cmd
}
