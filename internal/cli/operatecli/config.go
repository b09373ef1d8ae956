package operatecli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/server"
)

func NewConfig() *cobra.Command {
	config, file := server.DefaultConfig(), ""
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration that `argosy up` would run with",
		Args:  hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			hubcli.WarnOfSchedulerFlags(cmd)
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
