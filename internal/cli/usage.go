package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/argosy-io/argosy/internal/core/interpret/lint"
)

// usageError is an error for a command line that cannot be run: what is wrong with it, and an example of a right one.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	if example == "" {
		return fmt.Errorf("%s; see `%s --help`", text, cmd.CommandPath())
	}
	return fmt.Errorf("%s; for example: %s", text, example)
}

// noArgs is for commands that take flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError(cmd, "`%s` takes no argument %q", cmd.CommandPath(), args[0])
}

// oneArg is for commands that take one argument; what says what it is.
func oneArg(what string) cobra.PositionalArgs {
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

// someArgs is for commands that take one or more arguments; what says what each is.
func someArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError(cmd, "%s is missing", what)
		}
		return nil
	}
}

// optionalObject is for commands that take an object as KIND NAME or KIND/NAME, or none.
func optionalObject(cmd *cobra.Command, args []string) error {
	if len(args) > 2 {
		return usageError(cmd, "too many arguments: only KIND NAME is expected, got %q", args)
	}
	return nil
}

// flagError says in our words which flag of a command line is wrong.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name, known := unknown.GetSpecifiedName(), []string{}
		if all := unknown.GetSpecifiedShortnames(); all != "" {
			return fmt.Errorf("unknown flag -%s in -%s; `%s --help` lists the flags", name, all, cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		if meant := lint.Meant(name, known); meant != "" {
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

// explainUsage returns our own words for the errors that Cobra makes itself: an unknown command, and a flag that is
// required.
func explainUsage(root *cobra.Command, args []string, err error) error {
	cmd, _, unknown := root.Find(args)
	if unknown != nil {
		return unknownCommand(root, args)
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

func unknownCommand(root *cobra.Command, args []string) error {
	name := ""
	if root.ParseFlags(args) == nil {
		name = root.Flags().Arg(0)
	}
	var known []string
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			known = append(known, cmd.Name())
		}
	}
	if meant := lint.Meant(name, known); meant != "" {
		return fmt.Errorf("unknown command %q; did you mean %s?", name, meant)
	}
	return fmt.Errorf("unknown command %q; `%s --help` lists the commands", name, root.CommandPath())
}
