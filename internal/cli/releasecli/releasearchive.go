package releasecli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/server"
)

// archiveRun is the RunE of a command that works with the database of a hub's release history.
func archiveRun(cmd *cobra.Command, create bool, run func(ctx context.Context, s *history.Store) error) {
	config, file := server.DefaultConfig(), ""
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.BindFlags(all)
	for _, name := range []string{"data-dir", "history", "history-dsn", "history-password-file"} {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	cmd.Flags().StringVar(&file, "config", "",
		"the hub's configuration `FILE`, as printed by argosy config; flags override it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := config.Load(file, cmd.Flags()); err != nil {
			return err
		}
		store, err := server.OpenHistory(cmd.Context(), config, create)
		if err != nil {
			return err
		}
		return errors.Join(run(cmd.Context(), store), store.Close())
	}
}

func newReleaseExport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the whole release history of a hub to standard output",
		Long: `Writes the whole release history of a hub to standard output, one JSON object in each line, for
"argosy release import". Run it on the machine of the hub, as the user of its data folder. The hub may be running.`,
		Example: `  argosy release export > history.jsonl
  argosy release export --config /etc/argosy/config.yaml > history.jsonl`,
		Args: hubcli.NoArgs,
	}
	archiveRun(cmd, false, func(ctx context.Context, s *history.Store) error {
		rows, err := s.Export(ctx, cmd.OutOrStdout())
		if err == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "exported %s\n", text.Count(rows, "row"))
		}
		return err
	})
	return cmd
}

func newReleaseImport() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Add an exported release history to that of a hub",
		Long: `Adds the file of "argosy release export" to the release history of a hub, for example to move it from SQLite to
PostgreSQL. Newer rows in the hub's history stay. Run it on the machine of the hub, as the user of its data folder.
The hub may be running.`,
		Example: `  argosy release import -f history.jsonl --history-dsn "host=db.example.com dbname=argosy user=argosy"
  argosy release export | argosy release import -f - --data-dir /var/lib/other`,
		Args: hubcli.NoArgs,
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the history, - for standard input; required")
	_ = cmd.MarkFlagRequired("filename")
	archiveRun(cmd, true, func(ctx context.Context, s *history.Store) error {
		in := io.NopCloser(cmd.InOrStdin())
		if file != "-" {
			var err error
			if in, err = os.Open(file); err != nil {
				return err
			}
		}
		defer func() { _ = in.Close() }()
		rows, err := s.Import(ctx, in)
		fmt.Fprintf(cmd.OutOrStdout(), "imported %s\n", text.Count(rows, "row"))
		return err
	})
	return cmd
}
