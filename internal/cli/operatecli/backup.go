package operatecli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/server"
)

// storeCommand runs a command with the hub's configuration, and gives it the flags of that for the store and the keys.
func storeCommand(cmd *cobra.Command, run func(cmd *cobra.Command, args []string, config server.Config) error,
	names ...string) *cobra.Command {
	config, file, all := server.DefaultConfig(), "", pflag.NewFlagSet("", pflag.ContinueOnError)
	config.BindFlags(all)
	for _, name := range append([]string{"data-dir", "pki-dir"}, names...) {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	cmd.Flags().StringVar(&file, "config", "",
		"the hub's configuration `FILE`, as printed by argosy config; flags override it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := config.Load(file, cmd.Flags()); err != nil {
			return err
		}
		return run(cmd, args, config)
	}
	return cmd
}

var externalEtcd = []string{"etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile"}

func NewBackup() *cobra.Command {
	to, withoutKeys := "", false
	cmd := storeCommand(&cobra.Command{
		Use:   "backup",
		Short: "Back up a running hub: a consistent snapshot of its store, and its keys",
		Long: `Backs up a hub: a consistent snapshot of its store, and its keys, in one file with checksums. Run it on the machine of
the hub, as the user of its data folder, because no API exposes the keys. The hub may be running or stopped.

Only the owner of the file can read it: it contains all Secrets of the hub and the tokens of its member clusters. A hub
also takes backups automatically, see --backup-interval of "argosy up".`,
		Example: `  argosy backup
  argosy backup --to /mnt/backups
  argosy backup --to hub.tar.gz --without-keys
  argosy backup --to - > hub.tar.gz
  argosy backup --etcd-servers https://10.0.0.1:2379 --etcd-cafile ca.crt --to /mnt/backups`,
		Args: hubcli.NoArgs,
	}, func(cmd *cobra.Command, _ []string, config server.Config) error {
		messages, stream := cmd.OutOrStdout(), to == "-"
		if stream {
			messages = cmd.ErrOrStderr()
			dir, err := os.MkdirTemp("", "argosy-backup-") // a backup is complete only after it was checked
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			to = dir
		}
		path, m, err := server.Backup(cmd.Context(), config, to, !withoutKeys, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if stream {
			if err := send(path, cmd.OutOrStdout()); err != nil {
				return err
			}
			path = "standard output"
		}
		keys := "with the hub's keys"
		if !m.Keys {
			keys = "without the hub's keys: back them up separately"
		}
		fmt.Fprintf(messages, "%s: %s of revision %d, %s\n", path, text.Count(m.Objects, "object"), m.Revision, keys)
		return nil
	}, append([]string{"backup-dir"}, externalEtcd...)...)
	cmd.Flags().StringVar(&to, "to", "",
		"file or folder to write to, or - for standard output (default: the folder of the hub's automatic backups)")
	cmd.Flags().BoolVar(&withoutKeys, "without-keys", false, "exclude the hub's keys and certificates")
	return cmd
}

// send copies a file to out.
func send(file string, out io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, f)
	return err
}

func NewRestore(hub *hubcli.HubFlags) *cobra.Command {
	accepted := false
	cmd := storeCommand(&cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into an empty data folder",
		Long: `Restores a backup into an empty data folder. "argosy up" then continues from there.

A backup is older than what member clusters run. A restored hub therefore changes nothing in them that differs from the
backup: newer objects are not rolled back, deleted objects are not recreated, and unknown objects are not touched.
"argosy restore status" lists the held objects, and "argosy get orphans" those that the backup does not contain. After
"argosy restore accept" the held objects follow the hub again.`,
		Example: `  argosy restore /mnt/backups/argosy-20260301T120000Z-r4711.tar.gz
  argosy restore hub.tar.gz --data-dir /var/lib/argosy
  argosy restore status
  argosy restore accept deployment web -n shop
  argosy restore accept --all`,
		Args: hubcli.OneArg("the backup file"),
	}, func(cmd *cobra.Command, args []string, config server.Config) error {
		m, err := server.Restore(config, args[0], accepted)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		fmt.Fprintf(out, "Restored %s of revision %d, taken %s, into %s\n", text.Count(m.Objects, "object"), m.Revision,
			m.Time.Format("2006-01-02 15:04:05 MST"), config.DataDir)
		if !m.Keys {
			fmt.Fprintf(out, "The backup has no keys: copy the hub's pki folder to %s before you start the hub. "+
				"Encrypted data can be read only with its encryption.key, and existing tokens and certificates are not valid with new keys.\n",
				config.PKI())
		}
		fmt.Fprintf(out, "Next: `argosy up --data-dir %s`, then `argosy restore status` and `argosy get orphans`\n",
			config.DataDir)
		return nil
	})
	cmd.Flags().BoolVar(&accepted, "accept", false,
		"do not hold objects: roll member clusters back to the backup immediately")
	cmd.AddCommand(newRestoreStatus(hub), newRestoreAccept(hub))
	return cmd
}

func NewDefrag() *cobra.Command {
	disarm := false
	cmd := storeCommand(&cobra.Command{
		Use:   "defrag",
		Short: "Defragment the hub's store and free the disk space it does not use",
		Long: `Frees the disk space that the hub's store does not use. It blocks reads and writes for about one second per 100 MiB in use.
A hub does this automatically when half of its store is unused. Run it on the machine of the hub, as the user of its data folder.

With --disarm it also repairs a full store: it compacts old revisions, defragments, and clears the NOSPACE alarm.`,
		Args: hubcli.NoArgs,
	}, func(cmd *cobra.Command, _ []string, config server.Config) error {
		before, after, err := server.Defragment(cmd.Context(), config, disarm)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "The size of the store is %.1f MiB (before: %.1f MiB, quota: %.1f MiB)\n",
			hubcli.Mib(after.Size), hubcli.Mib(before.Size), hubcli.Mib(after.Quota))
		for _, alarm := range after.Alarms {
			fmt.Fprintf(cmd.OutOrStdout(), "Alarm %s is active\n", alarm)
		}
		if len(after.Alarms) == 0 && (disarm || len(before.Alarms) > 0) {
			fmt.Fprintln(cmd.OutOrStdout(), "No alarm is active")
		}
		return nil
	}, externalEtcd...)
	cmd.Flags().BoolVar(&disarm, "disarm", false, "first compact old revisions, and finally clear the NOSPACE alarm")
	return cmd
}
