package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/argosy-io/argosy/internal/core/text"
	"github.com/argosy-io/argosy/internal/server"
)

func newCertificates() *cobra.Command {
	config, file, output := server.DefaultConfig(), "", ""
	cmd := &cobra.Command{
		Use:   "certificates",
		Short: "List the hub's certificates and keys with their expiry, and renew them",
		Long: `Lists the certificates and keys in the hub's pki folder. Run it where that folder is, as its user; the hub need not run.

The hub renews certificates by itself when a third of their lifetime is left, and serves them without a restart.`,
		Args: noArgs,
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
	cmd.AddCommand(newCertificatesRenew(), newCertificatesForgetOld(), newCertificatesCreate(), newCertificatesImport())
	return cmd
}

func newCertificatesRenew() *cobra.Command {
	config, file := server.DefaultConfig(), ""
	cmd := &cobra.Command{
		Use:   "renew [NAME...]",
		Short: "Renew certificates with new keys; without names, all except CAs and signing keys",
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
			fmt.Fprintln(cmd.OutOrStdout(), "Renewed. A running hub loads certificates within a minute.")
			if restart {
				fmt.Fprintln(cmd.OutOrStdout(), "Restart the hub: it loads a new CA or signing key at startup. The old one is trusted until `argosy certificates forget-old`.")
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
		Short: "Stop trusting CAs and signing keys that were replaced",
		Long: `Ends the trust in authorities and keys that were replaced. Kubeconfigs that trust the old authority, client certificates that it signed
and tokens that the old key signed are no longer valid once the hub has been restarted.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			if err := server.ForgetOldCertificates(config, time.Now()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Done. Restart the hub.")
			return nil
		},
	}
	storeFlags(cmd, &config, &file)
	return cmd
}

func newCertificatesCreate() *cobra.Command {
	config, file := server.DefaultConfig(), ""
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create the pki folder of hubs that share an etcd",
		Long: `Creates the CAs, the key that signs tokens and the master key of the store's encryption, for hubs that share an etcd: each gets a copy of
the folder. A single hub creates its own at the first start. What is in the folder already is kept.`,
		Example: `  argosy certificates create --pki-dir ./pki
  kubectl create secret generic argosy-pki --from-file=./pki`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			dir, err := server.CreateKeys(config, time.Now())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The keys are in %s. Whoever has them is the hub's administrator.\n", dir)
			return nil
		},
	}
	storeFlags(cmd, &config, &file)
	return cmd
}

func newCertificatesImport() *cobra.Command {
	config, file, from := server.DefaultConfig(), "", ""
	cmd := &cobra.Command{
		Use:   "import --from DIR",
		Short: "Copy the keys that hubs on one etcd share into the pki folder",
		Long: `Copies the CAs, the key that signs tokens and the master key from a folder, such as a mounted Secret, into the hub's pki folder. It
replaces others there, and removes replaced CAs and keys that the folder no longer has. Run it before the hub starts.`,
		Example: "  argosy certificates import --from /etc/argosy/pki --pki-dir /var/lib/argosy/pki",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			changed, err := server.ImportKeys(config, from)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Imported from %s: %s changed.\n", from, text.Count(len(changed), "file"))
			return nil
		},
	}
	storeFlags(cmd, &config, &file)
	cmd.Flags().StringVar(&from, "from", "", "folder to copy from")
	_ = cmd.MarkFlagRequired("from")
	return cmd
}
