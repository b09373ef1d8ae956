package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/version"
)

// versions is the output of `version -o json`.
type versions struct {
	version.Build
	// KubernetesVersion is the release of the built-in API server and libraries, such as v1.36.3.
	KubernetesVersion string `json:"kubernetesVersion"`
}

func newVersion() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Long: `Shows the version of this binary, the commit that it was built from with its date, and the Kubernetes release that it
embeds. It does not connect to a hub: "argosy status" and /version of the hub's API show the version of a hub.`,
		Example: "  argosy version\n  argosy version -o json",
		Args:    hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Build: version.Get(), KubernetesVersion: version.Kubernetes()}
			if output != "" {
				return hubcli.WriteAs(cmd.OutOrStdout(), output, v)
			}
			return v.print(cmd.OutOrStdout())
		},
	}
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml")
	return cmd
}

func (v versions) print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "argosy %s\nKubernetes %s, %s, %s\n", v.Build, v.KubernetesVersion, v.GoVersion, v.Platform)
	return err
}

// showVersion has --version of root and of every command under it print the version and do nothing else.
func showVersion(root *cobra.Command) {
	// It is defined here, before Kubernetes' libraries define a flag of this name that commands would not heed.
	root.PersistentFlags().Bool("version", false, "print the version and exit")
	// Cobra adds these two as late as at the start of a run.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Version = version.Get().String()
		cmd.SetVersionTemplate("argosy {{.Version}}\n")
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
}
