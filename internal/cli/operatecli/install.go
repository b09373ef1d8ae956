package operatecli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/install"
	"github.com/argosy-io/argosy/internal/server"
)

func NewInstall() *cobra.Command {
	config := server.DefaultConfig()
	config.DataDir = install.DataDir
	o := install.Options{System: install.Machine()}
	yes := false
	given := pflag.NewFlagSet("hub", pflag.ContinueOnError)
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the hub on this machine as a systemd service",
		Long: `Installs the hub on this machine: the binary, a configuration file, a systemd unit, a system user, the data folder, and shell completion
for bash, zsh and fish. Where systemd runs, it enables and starts the unit. It asks on a terminal before it changes the machine; elsewhere
--yes confirms. --dry-run shows everything first.

It takes the flags of "argosy up" and writes them to /etc/argosy/config.yaml. A configuration file that exists is kept; flags change it,
unless it was edited. Run it again with a new binary to upgrade, or after editing the configuration file to update the unit. Files that
this command did not write, or that were changed since, are replaced only with --force.`,
		Example: `  argosy install --dry-run
  sudo argosy install --bind-address 0.0.0.0
  argosy install --root ./image`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := filepath.Abs(o.Root)
			if err != nil {
				return err
			}
			o.Root = root
			if o.Binary, err = os.Executable(); err != nil {
				return fmt.Errorf("find this binary: %w", err)
			}
			given.VisitAll(func(f *pflag.Flag) { o.Reconfigure = o.Reconfigure || f.Changed })
			if err := configure(&o, &config, cmd.Flags()); err != nil {
				return err
			}
			if o.Completions, err = completions(cmd.Root()); err != nil {
				return err
			}
			o.Confirm = func() error { return confirmInstall(o.Root, yes, hubcli.ConfirmationInput(cmd), cmd.OutOrStdout()) }
			return install.Install(o, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.Root, "root", "/", "root folder to install into, such as that of an image; no command is run")
	cmd.Flags().StringVar(&o.User, "user", "",
		"system user that the hub runs as; created if it does not exist (default: that of the previous installation, otherwise "+install.DefaultUser+")")
	cmd.Flags().BoolVar(&o.NoStart, "no-start", false, "do not enable and start the systemd unit")
	cmd.Flags().BoolVar(&o.Force, "force", false,
		"replace files that this command did not write, or that were changed since")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print everything that would be written and run, and change nothing")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation before changing this machine")
	config.BindFlags(given)
	cmd.Flags().AddFlagSet(given)
	return cmd
}

// confirmInstall asks before an installation changes this machine. With a root folder other than "/", nothing is run,
// and it does not ask.
func confirmInstall(root string, yes bool, in io.Reader, out io.Writer) error {
	switch {
	case yes || root != "/":
		return nil
	case in == nil:
		return errors.New("this installs a service on this machine: confirm it with --yes, or see what it would do with --dry-run")
	}
	return hubcli.Confirm(out, in, "Install the hub on this machine, with a system user and a systemd unit?")
}

// configHeader is the comment at the top of an installed configuration.
const configHeader = `# The hub's configuration. "argosy config" prints every setting with its default.
# Restart the hub after a change: systemctl restart argosy. After changing folders or the port, first run "argosy install" again,
# because the systemd unit permits only what is configured here.
`

// configure sets the installed configuration in o: the existing or the default one, overridden by the given flags.
func configure(o *install.Options, config *server.Config, given *pflag.FlagSet) error {
	file := filepath.Join(o.Root, install.ConfigPath)
	switch _, err := os.Stat(file); {
	case err == nil:
		if err := config.Load(file, given); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case config.Log.File == "":
		config.Log.File = "-" // the journal keeps it, and bounds it
	}
	if err := config.Validate(); err != nil {
		return err
	}
	text, err := config.Changes()
	if err != nil {
		return err
	}
	o.Config = []byte(configHeader + text)
	o.Unit = install.Unit{DataDir: config.DataDir, Port: config.Port}
	o.Unit.OwnFolders, o.Unit.Writable = config.Folders()
	return nil
}

// completions returns the scripts that have shells complete this command.
func completions(root *cobra.Command) (map[string][]byte, error) {
	all := map[string][]byte{}
	for shell, generate := range map[string]func(*bytes.Buffer) error{
		"bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"zsh":  func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := generate(&b); err != nil {
			return nil, fmt.Errorf("generate the completion for %s: %w", shell, err)
		}
		all[shell] = b.Bytes()
	}
	return all, nil
}

func NewUninstall() *cobra.Command {
	r, purge, yes := install.Removal{System: install.Machine()}, false, false
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove what \"argosy install\" wrote",
		Long: `Stops the hub and removes exactly what "argosy install" wrote on this machine. It keeps files that were changed since, the hub's data,
and the system user that owns the data. --purge-data also deletes the data and the user. The data includes the hub's keys, without which
backups cannot be read. It asks for confirmation on a terminal; elsewhere use --yes.`,
		Example: `  sudo argosy uninstall
  sudo argosy uninstall --purge-data --dry-run`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := filepath.Abs(r.Root)
			if err != nil {
				return err
			}
			r.Root = root
			if purge {
				r.Purge = server.Purge
				r.Confirm = func(dir string) error {
					in := hubcli.ConfirmationInput(cmd)
					switch {
					case yes:
						return nil
					case in == nil:
						return fmt.Errorf("--purge-data deletes %s with the hub's store and keys: confirm it with --yes", dir)
					}
					return hubcli.Confirm(cmd.OutOrStdout(), in, fmt.Sprintf("Delete %s with the hub's store and keys?", dir))
				}
			}
			return install.Uninstall(r, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&r.Root, "root", "/", "root folder of the installation")
	cmd.Flags().BoolVar(&purge, "purge-data", false,
		"also delete the hub's data folder, and the system user if it was created")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation before deleting the data folder")
	cmd.Flags().BoolVar(&r.DryRun, "dry-run", false, "print what would be removed, and change nothing")
	return cmd
}
