package cli

import (
	"flag"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
)

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags of every command",
		Args:  hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs := pflag.NewFlagSet("", pflag.ContinueOnError)
			eachLogFlag(func(f *pflag.Flag) { f.Hidden = false; logs.AddFlag(f) })
			all := pflag.NewFlagSet("", pflag.ContinueOnError)
			cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
				shown := *f
				shown.Hidden = false
				all.AddFlag(&shown)
			})
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "Flags of every command:\n%s\nFlags of the log of client libraries, such as their requests with -v=6:\n%s",
				all.FlagUsages(), logs.FlagUsages())
			return err
		},
	}
}

// logFlag is a flag of the log of client libraries. The log is hidden until one is set.
type logFlag struct{ pflag.Value }

func (l logFlag) Set(s string) error {
	klog.ClearLogger()
	return l.Value.Set(s)
}

// eachLogFlag calls do with each flag of the log of client libraries.
func eachLogFlag(do func(*pflag.Flag)) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(fs)
	fs.VisitAll(func(f *flag.Flag) {
		of := pflag.PFlagFromGoFlag(f)
		of.Name, of.Value, of.Hidden = strings.ReplaceAll(of.Name, "_", "-"), logFlag{of.Value}, true
		do(of)
	})
}

// acceptLogFlags adds the flags of the log of client libraries, as karmadactl has them, to each command that has no
// other use for the name. They are not inherited: -v is another flag in some commands.
func acceptLogFlags(cmd *cobra.Command) {
	eachLogFlag(func(f *pflag.Flag) {
		own := cmd.Flags()
		if own.Lookup(f.Name) == nil && (f.Shorthand == "" || own.ShorthandLookup(f.Shorthand) == nil) {
			own.AddFlag(f)
		}
	})
	for _, child := range cmd.Commands() {
		acceptLogFlags(child)
	}
}
