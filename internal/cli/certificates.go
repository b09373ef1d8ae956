package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/argosy-io/argosy/internal/server"
)

func newCertificates() *cobra.Command {
	config, file, output := server.DefaultConfig(), "", ""
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "List the hub's certificates and keys with their ages, and renew them",
		Long: `Lists the certificates and keys in the hub's pki folder. It is to be run where that folder is, as its user; the hub need not run.

The hub renews certificates by itself when a third of their life is left, and serves them without a restart.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			now := time.Now()
			all, err := server.Certificates(config, now)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				return writeJSON(cmd.OutOrStdout(), all)
			case "yaml":
				return writeYAML(cmd.OutOrStdout(), all)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			fmt.Fprintln(w, "NAME\tAGE\tENDS IN\tRENEWED IN\tWHAT IT DOES")
			for _, c := range all {
				ends, renewed, does := "never", "on demand", c.For
				if c.Ends != nil {
					ends = duration.HumanDuration(c.Ends.Sub(now))
				}
				if c.Renewed != nil {
					renewed = duration.HumanDuration(c.Renewed.Sub(now))
				}
				if c.Wrong != "" {
					does = "WRONG: " + c.Wrong
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Name, duration.HumanDuration(now.Sub(c.Made)), ends, renewed, does)
			}
			return w.Flush()
		},
	}
	storeFlags(cmd, &config, &file)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml, for programs")
	cmd.AddCommand(newCertificatesRenew(), newCertificatesForgetOld())
	return cmd
}

func newCertificatesRenew() *cobra.Command {
	config, file := server.DefaultConfig(), ""
	cmd := &cobra.Command{
		Use:   "renew [NAME...]",
		Short: "Renew certificates with new keys; without names, all but authorities and signing keys",
		Long: `Renews apiserver, admin and front-proxy, each with a new key: a hub that runs takes them within a minute, without a restart.

With ca or sa it replaces the authority, or the key that signs tokens. What the old one signed stays valid, and clients that trust only
the old authority still connect. Restart the hub for these two, and end the trust with "argosy certificates forget-old" once all
kubeconfigs and tokens are new. Replicas need a copy of the pki folder.`,
		Example: `  argosy certificates renew
  argosy certificates renew apiserver
  argosy certificates renew ca sa`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			restart, err := server.RenewCertificates(config, names, time.Now())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Renewed. A hub that runs takes certificates within a minute.")
			if restart {
				fmt.Fprintln(cmd.OutOrStdout(), "Start the hub again: it reads a new authority or signing key at its start. The old one is trusted until `argosy certificates forget-old`.")
			}
			return nil
		},
	}
	storeFlags(cmd, &config, &file)
	return cmd
}

func newCertificatesForgetOld() *cobra.Command {
	config, file := server.DefaultConfig(), ""
	cmd := &cobra.Command{
		Use:   "forget-old",
		Short: "End the trust in authorities and signing keys that were replaced",
		Long: `Ends the trust in authorities and keys that were replaced. Kubeconfigs that trust the old authority, client certificates that it signed
and tokens that the old key signed are no longer valid once the hub has been restarted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			if err := server.ForgetOldCertificates(config, time.Now()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Forgotten. Start the hub again.")
			return nil
		},
	}
	storeFlags(cmd, &config, &file)
	return cmd
}
