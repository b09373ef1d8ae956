package cli

import (
	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/interpretcli"
)

func newInterpret(hub *hubFlags) *cobra.Command { return interpretcli.New(hub) }
