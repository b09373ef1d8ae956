package hubcli

import (
	"errors"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// ExitError ends the process with another code than 1, as a command in a pod did.
type ExitError struct {
	Err  error
	Code int
}

func (e ExitError) Error() string { return e.Err.Error() }

// kubectlRuns counts the verbs of kubectl that run: the handler of their errors is a global variable of kubectl.
var kubectlRuns struct {
	sync.Mutex
	count int
}

// failure is an error of a verb of kubectl.
type failure struct {
	message string
	code    int
}

// Fatal runs a verb of kubectl, which ends the process on an error, and returns the error instead.
func Fatal(run func()) (err error) {
	kubectlRuns.Lock()
	if kubectlRuns.count++; kubectlRuns.count == 1 {
		cmdutil.BehaviorOnFatal(func(message string, code int) { panic(failure{message, code}) })
	}
	kubectlRuns.Unlock()
	defer func() {
		kubectlRuns.Lock()
		defer kubectlRuns.Unlock()
		if kubectlRuns.count--; kubectlRuns.count == 0 {
			cmdutil.DefaultBehaviorOnFatal()
		}
	}()
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = errors.New(strings.TrimPrefix(strings.TrimSpace(p.message), "error: "))
			if p.code != cmdutil.DefaultErrorExitCode {
				err = ExitError{err, p.code}
			}
		default:
			panic(p)
		}
	}()
	run()
	return nil
}

// FromKubectl makes a command of kubectl, with those below it, one of ours: it returns its errors, a command that only
// groups others shows its help, and completion is silent without a hub.
func FromKubectl(cmd *cobra.Command, hub *HubFlags) *cobra.Command {
	run, complete := cmd.Run, cmd.ValidArgsFunction
	cmd.Run = nil
	if cmd.HasSubCommands() {
		cmd.Args = NoArgs
	}
	if !cmd.HasSubCommands() || cmd.Flags().Lookup("filename") != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return Fatal(func() { run(cmd, args) }) }
	}
	if complete != nil {
		cmd.ValidArgsFunction = KubectlCompletion(hub, func(cmdutil.Factory) cobra.CompletionFunc { return complete })
	}
	for _, child := range cmd.Commands() {
		FromKubectl(child, hub)
	}
	return cmd
}
