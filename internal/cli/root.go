// Package cli is the argosy command: one file per verb. A verb reads flags and prints; other packages do the work.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/interpretcli"
)

// verbs returns the commands, in the order of help.
func verbs(hub *hubFlags) []*cobra.Command {
	return []*cobra.Command{
		newUp(),
		newConfig(),
		newInstall(),
		newUninstall(),
		newKubeconfig(),
		newConsole(hub),
		newJoin(hub),
		newUnjoin(hub),
		newToken(hub),
		newRegister(hub),
		newUnregister(hub),
		newAgent(),
		newAdopt(hub),
		newMigrate(hub),
		newTaint(hub),
		newCordon(hub),
		newUncordon(hub),
		newBrake(hub),
		newAddons(hub),
		newRollout(hub),
		newRelease(hub),
		newStatus(hub),
		newOrphans(hub),
		newBackup(),
		newRestore(hub),
		newDefrag(),
		newGet(hub, std),
		newAPIResources(hub, std),
		newDescribe(hub, std),
		newLogs(hub, std),
		newExec(hub, std),
		newTop(hub, std),
		newAttach(hub, std),
		newWhy(hub),
		newSimulate(hub),
		newSecrets(hub),
		newCertificates(),
		newConvert(),
		interpretcli.New(hub),
		newSim(),
		newSimMember(),
		newDemo(),
		newDocs(),
		newVersion(),
	}
}

// Main runs the command line args until it ends or ctx does, and returns the exit code. args[0] is the name of the
// binary.
func Main(ctx context.Context, args []string, out, errOut io.Writer) int {
	if name, ok := strings.CutPrefix(filepath.Base(args[0]), "kubectl_complete-"); ok {
		// kubectl completes a plugin by an executable with this name.
		args = append([]string{"kubectl-" + name, cobra.ShellCompRequestCmd}, args[1:]...)
	}
	root := newRoot(args[0])
	if cmd, _, err := root.Find(args[1:]); err != nil || cmd.Annotations[servesAnnotation] == "" {
		quietLibraries()
	}
	root.SetArgs(args[1:])
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = unknownSubcommand(cmd)
	}
	if err != nil {
		err = explainUsage(root, args[1:], err)
		fmt.Fprintf(errOut, "%s: %v\n", root.CommandPath(), err)
		var exit exitError
		if errors.As(err, &exit) {
			return exit.code
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
	hub := &hubFlags{calledBy: use}
	hub.bind(root.PersistentFlags())
	color := colorMode(colorModes[0])
	root.PersistentFlags().Var(&color, "color", "color output: "+strings.Join(colorModes, ", ")+
		"; auto enables color on a terminal unless NO_COLOR is set")
	root.AddCommand(verbs(hub)...)
	root.SetFlagErrorFunc(flagError)
	showVersion(root)
	hideHelpOfUnknown(root)
	nameHelp(root)
	completeFlags(root, hub)
	completeAsPlugin(root)
	return root
}
