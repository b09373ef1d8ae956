package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/version"
)

func newDocs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "docs",
		Short: "Write documentation of this command line",
		Args:  hubcli.NoArgs,
	}
	to := ""
	man := &cobra.Command{
		Use:   "man",
		Short: "Write man pages, one per command",
		Long: `Writes a man page for each command into the folder man1 of --to. Pages have the date of the build, so the same binary always
writes the same pages.`,
		Example: "  argosy docs man --to /usr/local/share/man\n  argosy docs man --to . && man -l man1/argosy-up.1",
		Args:    hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder := filepath.Join(to, "man1")
			n, err := writeMan(folder)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s written to %s\n", text.Count(n, "man page"), folder)
			return nil
		},
	}
	man.Flags().StringVar(&to, "to", ".", "folder that contains man1; man1 is created if it does not exist")
	cmd.AddCommand(man)
	return cmd
}

// writeMan writes the pages into a folder, and returns their number.
func writeMan(folder string) (int, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, fmt.Errorf("create the folder of the man pages: %w", err)
	}
	build := version.Get()
	header := &doc.GenManHeader{Section: "1", Source: "Argosy " + build.Version, Manual: "Argosy"}
	if date, err := time.Parse(time.RFC3339, build.Date); err == nil {
		header.Date = &date
	}
	root := newRoot("argosy")
	home, _ := os.UserHomeDir() // without a home folder, no default contains it
	pages := 0
	var prepare func(*cobra.Command)
	prepare = func(cmd *cobra.Command) {
		pages++
		cmd.DisableAutoGenTag = true
		cmd.Short, cmd.Long, cmd.Example = markdown(cmd.Short), markdown(cmd.Long), strings.Trim(cmd.Example, "\n")
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			f.Usage = markdown(f.Usage)
			if home != "" {
				f.DefValue = strings.ReplaceAll(f.DefValue, home, "~")
			}
		})
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() {
				prepare(child)
			}
		}
	}
	prepare(root)
	if err := doc.GenManTreeFromOpts(root,
		doc.GenManTreeOptions{Header: header, Path: folder, CommandSeparator: "-"}); err != nil {
		return 0, fmt.Errorf("write the man pages: %w", err)
	}
	return pages, nil
}

// markdown escapes plain text for a library that reads Markdown; indented lines keep their layout.
func markdown(plain string) string {
	lines := strings.Split(plain, "\n")
	was := false
	var out []string
	for _, line := range lines {
		indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		if indented != was && len(out) > 0 {
			out = append(out, "")
		}
		was = indented
		if indented {
			out = append(out, "    "+line)
			continue
		}
		out = append(out, strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "#", `\#`, "[", `\[`,
			"]", `\]`).Replace(line))
	}
	return strings.Join(out, "\n")
}
