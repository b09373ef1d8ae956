package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"

	"github.com/argosy-io/argosy/internal/server"
)

// quietly keeps what gRPC says of each connection that it makes and ends from the terminal: what fails is an error.
func quietly() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) }

// storeFlags are those of the hub's configuration that say where its store and keys are.
func storeFlags(cmd *cobra.Command, config *server.Config, file *string, names ...string) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.BindFlags(all)
	for _, name := range append([]string{"data-dir", "pki-dir"}, names...) {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	cmd.Flags().StringVar(file, "config", "", "file with the hub's configuration, as `argosy config` prints it; flags override it")
}

var externalEtcd = []string{"etcd-servers", "etcd-cafile", "etcd-certfile", "etcd-keyfile"}

func newBackup() *cobra.Command {
	config, file, to, withoutKeys := server.DefaultConfig(), "", "", false
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Take a backup of the hub while it runs: its store as it is at one moment, and its keys",
		Long: `Takes a backup of the hub while it runs: its store as it is at one moment, and its keys, in one file with checksums. It is to be run
where the hub's data folder is, as its user, since the keys are there; no API gives them away. A hub that does not run is backed up
as well.

The file is readable to its user alone: it holds all Secrets of the hub, and the tokens of its member clusters. A hub also takes
backups by itself, see --backup-interval of "argosy up".`,
		Example: `  argosy backup
  argosy backup --to /mnt/backups
  argosy backup --to hub.tar.gz --without-keys
  argosy backup --etcd-servers https://10.0.0.1:2379 --etcd-cafile ca.crt --to /mnt/backups`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			quietly()
			path, m, err := server.Backup(cmd.Context(), config, to, !withoutKeys, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			keys := "with the hub's keys"
			if !m.Keys {
				keys = "without the hub's keys, which are to be kept elsewhere"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d objects of revision %d, %s\n", path, m.Objects, m.Revision, keys)
			return nil
		},
	}
	storeFlags(cmd, &config, &file, append([]string{"backup-dir"}, externalEtcd...)...)
	cmd.Flags().StringVar(&to, "to", "", "file to write, or folder for one (default: the folder of the hub's own backups)")
	cmd.Flags().BoolVar(&withoutKeys, "without-keys", false, "leave the hub's keys and certificates out")
	return cmd
}

func newRestore(hub *hubFlags) *cobra.Command {
	config, file, accepted := server.DefaultConfig(), "", false
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into an empty data folder",
		Long: `Makes a hub's data folder of a backup, which must hold nothing yet. "argosy up" then continues from there.

A backup is older than what member clusters run. A restored hub therefore changes nothing in them that is otherwise there than the
backup says: what is newer is not rolled back, what was deleted is not made again, and what the backup does not know is left alone.
All of that is listed: "argosy restore status" has what is held, "argosy get orphans" what the backup does not know. What is held
follows the hub again after "argosy restore accept".`,
		Example: `  argosy restore /mnt/backups/argosy-20260301T120000Z-r4711.tar.gz
  argosy restore hub.tar.gz --data-dir /var/lib/argosy
  argosy restore status
  argosy restore accept deployment web -n shop
  argosy restore accept --all`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			m, err := server.Restore(config, args[0], accepted)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "Restored %d objects of revision %d, taken %s, into %s\n", m.Objects, m.Revision, m.Time.Format("2006-01-02 15:04:05 MST"), config.DataDir)
			if !m.Keys {
				fmt.Fprintf(out, "The backup has no keys: put the hub's pki folder at %s before you start it. What is encrypted in the store can be read with its encryption.key alone, and no token or certificate of before is good with new keys.\n",
					config.PKI())
			}
			fmt.Fprintf(out, "Next: `argosy up --data-dir %s`, then `argosy restore status` and `argosy get orphans`\n", config.DataDir)
			return nil
		},
	}
	storeFlags(cmd, &config, &file)
	cmd.Flags().BoolVar(&accepted, "accept", false, "hold nothing: roll member clusters back to what the backup says at once")
	cmd.AddCommand(newRestoreStatus(hub), newRestoreAccept(hub))
	return cmd
}

func newDefrag() *cobra.Command {
	config, file, disarm := server.DefaultConfig(), "", false
	cmd := &cobra.Command{
		Use:   "defrag",
		Short: "Give back to the disk what the hub's store does not use",
		Long: `Gives back to the disk what the hub's store does not use. Reads and writes wait meanwhile, a second or so for each 100 MiB in use.
A hub does so by itself when half of its store is unused. It is to be run where the hub's data folder is, as its user.

With --disarm it also mends a store that is full: it drops old revisions, defragments, and takes the alarm NOSPACE back.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(file, cmd.Flags()); err != nil {
				return err
			}
			quietly()
			before, after, err := server.Defragment(cmd.Context(), config, disarm)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The store takes %.1f MiB, before %.1f MiB; its quota is %.1f MiB\n", mib(after.Size), mib(before.Size), mib(after.Quota))
			for _, alarm := range after.Alarms {
				fmt.Fprintf(cmd.OutOrStdout(), "Alarm %s is raised\n", alarm)
			}
			if len(after.Alarms) == 0 && len(before.Alarms) > 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "No alarm is raised any more")
			}
			return nil
		},
	}
	storeFlags(cmd, &config, &file, externalEtcd...)
	cmd.Flags().BoolVar(&disarm, "disarm", false, "drop old revisions before, and take the alarm NOSPACE back after")
	return cmd
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
