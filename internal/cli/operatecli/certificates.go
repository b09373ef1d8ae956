package operatecli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/server"
)

func NewCertificates() *cobra.Command {
	output := ""
	cmd := storeCommand(&cobra.Command{
		Use:   "certificates",
		Short: "List the hub's certificates and keys with their expiry, and renew them",
		Long: `Lists the certificates and keys in the hub's pki folder. Run it on the machine of the hub, as the owner of that folder; the hub need not run.

The hub renews its certificates when a third of their lifetime is left, without a restart.`,
		Args: hubcli.NoArgs,
	}, func(cmd *cobra.Command, _ []string, config server.Config) error {
		now := time.Now()
		all, err := server.Certificates(config, now)
		if err != nil {
			return err
		}
		if output != "" {
			return hubcli.WriteAs(cmd.OutOrStdout(), output, all)
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
		fmt.Fprintln(w, "NAME\tAGE\tEXPIRES IN\tRENEWED IN\tPURPOSE")
		for _, c := range all {
			ends, renewed, does := "never", "on demand", c.For
			if c.Ends != nil {
				ends = duration.HumanDuration(c.Ends.Sub(now))
			}
			if c.Renewed != nil {
				renewed = duration.HumanDuration(c.Renewed.Sub(now))
			}
			if c.Wrong != "" {
				does = "ERROR: " + c.Wrong
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.Name, duration.HumanDuration(now.Sub(c.Made)), ends, renewed, does)
		}
		return w.Flush()
	})
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml")
	cmd.AddCommand(newCertificatesRenew(), newCertificatesForgetOld(), newCertificatesCreate(), newCertificatesImport())
	return cmd
}

func newCertificatesRenew() *cobra.Command {
	return storeCommand(&cobra.Command{
		Use:   "renew [NAME...]",
		Short: "Renew certificates with new keys; without names, all except CAs and signing keys",
		Long: `Renews the certificates apiserver, admin and front-proxy, each with a new key. A running hub loads them within a minute, without a restart.

With ca or sa it replaces the CA or the key that signs tokens; restart the hub afterwards. Certificates and tokens that the old CA or key
signed stay valid, and clients that trust only the old CA can still connect. After all kubeconfigs and tokens have been replaced, end this
trust with "argosy certificates forget-old". Copy the pki folder to all replicas.`,
		Example: `  argosy certificates renew
  argosy certificates renew apiserver
  argosy certificates renew ca sa`,
	}, func(cmd *cobra.Command, names []string, config server.Config) error {
		restart, err := server.RenewCertificates(config, names, time.Now())
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "Renewed. A running hub loads certificates within a minute.")
		if restart {
			fmt.Fprintln(cmd.OutOrStdout(),
				"Restart the hub: it loads a new CA or signing key at startup. The old one is trusted until `argosy certificates forget-old`.")
		}
		return nil
	})
}

func newCertificatesForgetOld() *cobra.Command {
	return storeCommand(&cobra.Command{
		Use:   "forget-old",
		Short: "Stop trusting CAs and signing keys that were replaced",
		Long: `Ends the trust in CAs and keys that were replaced. Kubeconfigs that trust the old CA, client certificates that it signed, and tokens that
the old key signed are not valid after the next restart of the hub.`,
		Args: hubcli.NoArgs,
	}, func(cmd *cobra.Command, _ []string, config server.Config) error {
		if err := server.ForgetOldCertificates(config, time.Now()); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), "Done. Restart the hub.")
		return nil
	})
}

func newCertificatesCreate() *cobra.Command {
	return storeCommand(&cobra.Command{
		Use:   "create",
		Short: "Create the pki folder of hubs that share an etcd",
		Long: `Creates the CAs, the key that signs tokens, and the master key of the store's encryption, for hubs that share an etcd. Copy the folder to
each of them. A single hub creates its own at the first start. Existing files in the folder are kept.`,
		Example: `  argosy certificates create --pki-dir ./pki
  kubectl create secret generic argosy-pki --from-file=./pki`,
		Args: hubcli.NoArgs,
	}, func(cmd *cobra.Command, _ []string, config server.Config) error {
		dir, err := server.CreateKeys(config, time.Now())
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "The keys are in %s. Anyone who can read them is an administrator of the hub.\n", dir)
		return nil
	})
}

func newCertificatesImport() *cobra.Command {
	from := ""
	cmd := storeCommand(&cobra.Command{
		Use:   "import --from DIR",
		Short: "Copy the keys that hubs on one etcd share into the pki folder",
		Long: `Copies the CAs, the key that signs tokens, and the master key from a folder, such as a mounted Secret, into the hub's pki folder. It
replaces existing ones, and removes old CAs and keys that the folder no longer contains. Run it before the hub starts.`,
		Example: "  argosy certificates import --from /etc/argosy/pki --pki-dir /var/lib/argosy/pki",
		Args:    hubcli.NoArgs,
	}, func(cmd *cobra.Command, _ []string, config server.Config) error {
		changed, err := server.ImportKeys(config, from)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Imported from %s: %s changed.\n", from, text.Count(len(changed), "file"))
		return nil
	})
	cmd.Flags().StringVar(&from, "from", "", "folder to copy from")
	_ = cmd.MarkFlagRequired("from")
	return cmd
}
