package hubcli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/migration"
)

// OneObject requires one object as arguments, as KIND NAME or KIND/NAME; example is used in the error.
func OneObject(example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 1 && strings.Count(args[0], "/") == 1 || len(args) == 2 && !strings.Contains(args[0], "/") {
			return nil
		}
		return fmt.Errorf("name one object, as KIND NAME or KIND/NAME, such as %s; got %q", example, args)
	}
}

// ObjectOf returns the kind and name in arguments that OneObject accepted.
func ObjectOf(args []string) (kind, name string) {
	if len(args) == 2 {
		return args[0], args[1]
	}
	kind, name, _ = strings.Cut(args[0], "/")
	return kind, name
}

// ObjectName names an object for people.
func ObjectName(u *unstructured.Unstructured) string { return migration.NameOf(u) }
