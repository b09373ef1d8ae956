package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
)

func TestColorIsForTerminalsByDefault(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		noColor string
		want    bool
	}{
		{"a pipe", nil, "", false},
		{"a pipe, and the user wants it", []string{"--color=always"}, "", true},
		{"the flag outranks NO_COLOR", []string{"--color=always"}, "1", true},
		{"never", []string{"--color=never"}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", c.noColor)
			root := newRoot("argosy")
			var got bool
			root.AddCommand(&cobra.Command{Use: "probe",
				Run: func(cmd *cobra.Command, _ []string) { got = hubcli.Colors(cmd, &bytes.Buffer{}) }})
			root.SetArgs(append([]string{"probe"}, c.args...))
			if err := root.Execute(); err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("colors are %v, want %v", got, c.want)
			}
		})
	}
	root := newRoot("argosy")
	root.SetArgs([]string{"version", "--color", "blue"})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "auto, always, never") {
		t.Errorf("--color blue ends with %v, want the values that there are", err)
	}
}
