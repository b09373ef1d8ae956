// Package cli is the argosy command: one file per verb. A verb reads flags and prints; other packages do the work.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/cli/explaincli"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/interpretcli"
	"github.com/argosy-io/argosy/internal/cli/joincli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	"github.com/argosy-io/argosy/internal/cli/objectcli"
	"github.com/argosy-io/argosy/internal/cli/operatecli"
	"github.com/argosy-io/argosy/internal/cli/releasecli"
)

// verbs returns the commands, in the order of help.
func verbs(hub *hubcli.HubFlags) []*cobra.Command {
	return []*cobra.Command{
		operatecli.NewUp(),
		operatecli.NewConfig(),
		operatecli.NewInstall(),
		operatecli.NewUninstall(),
		operatecli.NewInit(),
		operatecli.NewDeinit(),
		operatecli.NewKubeconfig(),
		operatecli.NewConsole(hub),
		joincli.NewJoin(hub),
		joincli.NewUnjoin(hub),
		joincli.NewToken(hub),
		joincli.NewRegister(hub),
		joincli.NewUnregister(hub),
		joincli.NewAgent(),
		joincli.NewAdopt(hub),
		joincli.NewPromote(hub),
		joincli.NewMigrate(hub),
		joincli.NewTaint(hub),
		joincli.NewCordon(hub),
		joincli.NewUncordon(hub),
		operatecli.NewBrake(hub),
		joincli.NewAddons(hub),
		joincli.NewAccess(hub),
		releasecli.NewRollout(hub),
		releasecli.NewRelease(hub),
		explaincli.NewStatus(hub),
		explaincli.NewUsage(hub),
		membercli.NewOrphans(hub),
		operatecli.NewBackup(),
		operatecli.NewRestore(hub),
		operatecli.NewDefrag(),
		membercli.NewGet(hub, membercli.StdStreams),
		membercli.NewExplain(hub, membercli.StdStreams),
		membercli.NewAPIResources(hub, membercli.StdStreams),
		membercli.NewAPIVersions(hub, membercli.StdStreams),
		objectcli.NewApply(hub, membercli.StdStreams),
		objectcli.NewCreate(hub, membercli.StdStreams),
		objectcli.NewDelete(hub, membercli.StdStreams),
		objectcli.NewEdit(hub, membercli.StdStreams),
		objectcli.NewPatch(hub, membercli.StdStreams),
		objectcli.NewLabel(hub, membercli.StdStreams),
		objectcli.NewAnnotate(hub, membercli.StdStreams),
		membercli.NewDescribe(hub, membercli.StdStreams),
		membercli.NewLogs(hub, membercli.StdStreams),
		membercli.NewExec(hub, membercli.StdStreams),
		membercli.NewTop(hub, membercli.StdStreams),
		membercli.NewSearch(hub, membercli.StdStreams),
		membercli.NewAttach(hub, membercli.StdStreams),
		membercli.NewCredential(hub),
		explaincli.NewWhy(hub),
		explaincli.NewSimulate(hub),
		operatecli.NewSecrets(hub),
		operatecli.NewCertificates(),
		operatecli.NewConvert(),
		interpretcli.New(hub),
		operatecli.NewSim(),
		operatecli.NewSimMember(),
		operatecli.NewDemo(),
		newDocs(),
		newVersion(),
		newOptions(),
	}
}

// withoutHub are the verbs that use no connection to a hub, so that flags of it would have no effect.
var withoutHub = strings.Fields("up config install uninstall init deinit kubeconfig agent backup defrag certificates " +
	"convert sim sim-member demo")

// Main runs the command line args until it ends or ctx does, and returns the exit code. args[0] is the name of the
// binary.
func Main(ctx context.Context, args []string, out, errOut io.Writer) int {
	if name, ok := strings.CutPrefix(filepath.Base(args[0]), "kubectl_complete-"); ok {
		// kubectl completes a plugin by an executable with this name.
		args = append([]string{"kubectl-" + name, cobra.ShellCompRequestCmd}, args[1:]...)
	}
	root := newRoot(args[0])
	if cmd, _, err := root.Find(args[1:]); err != nil || cmd.Annotations[hubcli.ServesAnnotation] == "" {
		hubcli.QuietLibraries()
	}
	root.SetArgs(args[1:])
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = hubcli.UnknownSubcommand(cmd)
	}
	if err != nil {
		err = hubcli.NameRights(hubcli.ExplainUsage(root, args[1:], err), needsOf(root, cmd)...)
		fmt.Fprintf(errOut, "%s: %s\n", root.CommandPath(), hubcli.Harmless(err.Error()))
		var exit hubcli.ExitError
		if errors.As(err, &exit) {
			return exit.Code
		}
		return 1
	}
	return 0
}

// newRoot returns the command under the name it was called by: karmadactl for scripts written for that, kubectl-NAME as
// a kubectl plugin, argosy otherwise.
func newRoot(path string) *cobra.Command {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	use := "argosy"
	switch name {
	case "karmadactl":
		use = name
	case "kubectl-karmada", "kubectl-argosy":
		use = "kubectl " + strings.TrimPrefix(name, "kubectl-")
	}
	root := &cobra.Command{
		Use:   use,
		Short: "Argosy turns many Kubernetes clusters into one fleet",
		// Cobra cuts Use at the first space for the name it prints.
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: use},
		SilenceUsage:  true, // an error is one sentence, without the usage
		SilenceErrors: true,
	}
	hub := &hubcli.HubFlags{CalledBy: use}
	hub.Bind(root.PersistentFlags())
	color := hubcli.ColorMode(hubcli.ColorModes[0])
	root.PersistentFlags().Var(&color, "color", "color output: "+strings.Join(hubcli.ColorModes, ", ")+
		"; auto enables color on a terminal unless NO_COLOR is set")
	root.AddCommand(verbs(hub)...)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		verb := cmd
		for verb.HasParent() && verb.Parent() != root {
			verb = verb.Parent()
		}
		root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Changed && f.Hidden && slices.Contains(withoutHub, verb.Name()) {
				err = fmt.Errorf("%s sends no requests to a hub: leave out --%s", cmd.CommandPath(), f.Name)
			}
		})
		return err
	}
	root.SetFlagErrorFunc(hubcli.FlagError)
	showVersion(root)
	acceptLogFlags(root)
	hubcli.HideHelpOfUnknown(root)
	nameHelp(root)
	completeFlags(root, hub)
	completeAsPlugin(root)
	return root
}
