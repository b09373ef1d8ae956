package hubcli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// usageError returns an error for a wrong command line: what is wrong, and an example of a correct one.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	if example == "" {
		return fmt.Errorf("%s; see `%s --help`", text, cmd.CommandPath())
	}
	return fmt.Errorf("%s; for example: %s", text, example)
}

// NoArgs is for commands that take flags only, or a subcommand.
func NoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return unknownCommand(cmd, args[0])
	}
	return usageError(cmd, "`%s` takes no argument %q", cmd.CommandPath(), args[0])
}

// OneArg is for commands that take one argument, which what describes.
func OneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usageError(cmd, "%s is missing", what)
		case 1:
			return nil
		}
		return usageError(cmd, "too many arguments: only %s is expected, got %q", what, args)
	}
}

// SomeArgs requires one or more arguments, described by what.
func SomeArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError(cmd, "%s is missing", what)
		}
		return nil
	}
}

// OptionalObject is for commands that take an object as KIND NAME or KIND/NAME, or none.
func OptionalObject(cmd *cobra.Command, args []string) error {
	if len(args) > 2 {
		return usageError(cmd, "too many arguments: only KIND NAME is expected, got %q", args)
	}
	return nil
}

// FlagError replaces Cobra's error for a wrong flag by one with the correct spelling.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name, known := unknown.GetSpecifiedName(), []string{}
		if all := unknown.GetSpecifiedShortnames(); all == name {
			return fmt.Errorf("unknown flag -%s; `%s --help` lists the flags", name, cmd.CommandPath())
		} else if all != "" {
			return fmt.Errorf("unknown flag -%s in -%s; `%s --help` lists the flags", name, all, cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if meant := text.Meant(name, known); meant != "" {
			return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, meant)
		}
		return fmt.Errorf("unknown flag --%s; `%s --help` lists the flags", name, cmd.CommandPath())
	case errors.As(err, &bare):
		return fmt.Errorf("--%s needs a value: %s", bare.GetFlag().Name, bare.GetFlag().Usage)
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		return fmt.Errorf("--%s %q is not valid: %w; it is: %s", flag.Name, invalid.GetValue(), invalid.Unwrap(), flag.Usage)
	}
	return err
}

// ExplainUsage replaces Cobra's own errors for an unknown command and for a missing required flag.
func ExplainUsage(root *cobra.Command, args []string, err error) error {
	cmd, _, unknown := root.Find(args)
	if unknown != nil {
		known := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--help" || a == "-h" })
		root.FParseErrWhitelist.UnknownFlags = true // flags of the unknown command
		_ = root.ParseFlags(known)
		name := root.Flags().Arg(0)
		if slices.Contains(kubectlVerbs, name) {
			return fmt.Errorf("%s does not have the command %q of kubectl; use kubectl with the kubeconfig of the hub: `%s`",
				root.CommandPath(), name, kubectlFor(root, args))
		}
		return unknownCommand(root, name)
	}
	required := cmd.ValidateRequiredFlags()
	if required == nil || required.Error() != err.Error() {
		return err
	}
	var missing []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed && len(f.Annotations[cobra.BashCompOneRequiredFlag]) > 0 {
			missing = append(missing, "--"+f.Name)
		}
	})
	return usageError(cmd, "%s is missing", strings.Join(missing, " "))
}

// kubectlVerbs are commands of kubectl that users try here.
var kubectlVerbs = []string{"auth", "autoscale", "cp", "diff", "expose", "kustomize", "port-forward", "replace", "run",
	"scale", "set", "wait"}

// kubectlFor returns the command line args as one of kubectl for the same hub.
func kubectlFor(root *cobra.Command, args []string) string {
	line := []string{"kubectl"}
	file, own := hubHere()
	if hub := (&HubFlags{Kubeconfig: root.Flag("kubeconfig").Value.String()}); own && !hub.Named() {
		line = append(line, "--kubeconfig", file)
	} else if !hub.Named() {
		line = append([]string{"sudo"}, append(line, "--kubeconfig", file)...)
	}
	for _, a := range args {
		line = append(line, strings.Replace(a, "--karmada-context", "--context", 1))
	}
	return strings.Join(line, " ")
}

// UnknownSubcommand returns an error if a command that only groups others was run with an argument that is none of
// them. Cobra shows help for it and returns no error.
func UnknownSubcommand(cmd *cobra.Command) error {
	flags := cmd.Flags()
	if cmd.Runnable() || !cmd.HasParent() || flags.NArg() == 0 || flags.Changed("help") || flags.Changed("version") {
		return nil
	}
	return unknownCommand(cmd, flags.Arg(0))
}

// HideHelpOfUnknown keeps Cobra from showing help where Main reports an unknown subcommand.
func HideHelpOfUnknown(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if UnknownSubcommand(cmd) == nil {
			help(cmd, args)
		}
	})
}

// unknownCommand returns the error for a name that is not a subcommand of cmd, with the nearest name that is one.
func unknownCommand(cmd *cobra.Command, name string) error {
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if nearest := text.Meant(name, known); nearest != "" {
		return fmt.Errorf("unknown command %q for %q; did you mean %q?", name, cmd.CommandPath(), nearest)
	}
	return fmt.Errorf("unknown command %q for %q; `%s --help` lists the commands", name, cmd.CommandPath(),
		cmd.CommandPath())
}
