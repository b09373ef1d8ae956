package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/server"
	"github.com/argosy-io/argosy/internal/server/pki"
)

func newKubeconfig() *cobra.Command {
	config, file, url, to := server.DefaultConfig(), "", "", ""
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the hub's admin kubeconfig",
		Long: `Prints the kubeconfig of the hub's administrator. Run it where the hub's data folder is, as its user.

--server sets the URL at which clients reach the hub from elsewhere. If the serving certificate does not name that host, the kubeconfig
has clients verify a name that it has; --tls-san of "argosy up" adds names to the certificate.`,
		Example: `  sudo argosy kubeconfig --config /etc/argosy/config.yaml --server https://argosy.example.com:7443 --kubeconfig-out hub.kubeconfig
  kubectl exec argosy-0 -n argosy -- argosy kubeconfig --config /etc/argosy/config.yaml --server https://127.0.0.1:7443`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
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
			fmt.Fprintf(cmd.OutOrStdout(), "Wrote %s. Whoever has it is the hub's administrator.\n", to)
			return nil
		},
	}
	storeFlags(cmd, &config, &file)
	cmd.Flags().StringVar(&url, "server", "", "URL at which clients reach the hub (default: as the hub serves on its machine)")
	cmd.Flags().StringVar(&to, "kubeconfig-out", "", "file to write instead, which only its owner can read; one that exists is replaced")
	return cmd
}
