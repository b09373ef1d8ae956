package operatecli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/server"
	"github.com/argosy-io/argosy/internal/server/pki"
)

func NewKubeconfig() *cobra.Command {
	url, to := "", ""
	cmd := storeCommand(&cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the hub's admin kubeconfig",
		Long: `Prints the kubeconfig of the hub's administrator. Run it on the machine of the hub, as the user of its data folder.

--server sets the URL at which clients reach the hub from elsewhere. If the serving certificate does not contain that host name, the
kubeconfig sets tls-server-name to a name that it contains. --tls-san of "argosy up" adds names to the certificate.`,
		Example: `  sudo argosy kubeconfig --config /etc/argosy/config.yaml --server https://argosy.example.com:7443 --kubeconfig-out hub.kubeconfig
  kubectl exec argosy-0 -n argosy -- argosy kubeconfig --config /etc/argosy/config.yaml --server https://127.0.0.1:7443`,
		Args: hubcli.NoArgs,
	}, func(cmd *cobra.Command, _ []string, config server.Config) error {
		text, err := server.AdminAccess(config, url)
		if err != nil {
			return err
		}
		if to == "" {
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}
		if err := pki.WriteFile(to, text, 0o600); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s. Anyone who can read it is an administrator of the hub.\n", to)
		return nil
	})
	cmd.Flags().StringVar(&url, "server", "", "URL at which clients reach the hub (default: the hub's local address)")
	cmd.Flags().StringVar(&to, "kubeconfig-out", "",
		"file to write to, readable only by its owner; an existing file is replaced")
	return cmd
}
