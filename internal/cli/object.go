package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// oneObject requires one object as arguments, as KIND NAME or KIND/NAME; example is used in the error.
func oneObject(example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && strings.Count(args[0], "/") == 1 || len(args) == 2 {
			return nil
		}
		return fmt.Errorf("name one object, as KIND NAME or KIND/NAME, such as %s; got %q", example, args)
	}
}

// objectOf returns the kind and name in arguments that oneObject accepted.
func objectOf(args []string) (kind, name string) {
	if len(args) == 2 {
		return args[0], args[1]
	}
	kind, name, _ = strings.Cut(args[0], "/")
	return kind, name
}
