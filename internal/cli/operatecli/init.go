package operatecli

import (
	"errors"

	"github.com/spf13/cobra"
)

// NewInit and NewDeinit have the names of commands by which Karmada installs a control plane in a host cluster. They
// explain how a hub is installed.
func NewInit() *cobra.Command {
	return elsewhere("init", "Explain how to install a hub",
		"the hub is one binary and needs no host cluster: run it with `argosy up`, install it as a systemd service with `argosy install`, or in a cluster with the Helm chart charts/argosy; see docs/install.md. No flag of karmadactl's init has an effect")
}

func NewDeinit() *cobra.Command {
	return elsewhere("deinit", "Explain how to remove a hub",
		"the hub is one binary and was not installed with this command: stop `argosy up`, or remove it with `argosy uninstall` or `helm uninstall`. Remove its clusters before that with `argosy unjoin`")
}

// elsewhere is a command that accepts any flag, and fails with an explanation.
func elsewhere(name, short, explanation string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              short,
		Long:               short + ": " + explanation + ".",
		Hidden:             true,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE:               func(*cobra.Command, []string) error { return errors.New(explanation) },
	}
}
