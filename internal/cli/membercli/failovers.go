package membercli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/why"
)

// getFailovers prints the failovers of the hub, or those of a namespace, and only of workloads with some names.
func getFailovers(cmd *cobra.Command, hub *hubcli.HubFlags, output string, names []string) error {
	if err := hubcli.CheckOutput(output); err != nil {
		return err
	}
	config, err := hub.ToRESTConfig()
	if err != nil {
		return err
	}
	moves, missing, err := FailoversOf(cmd.Context(), config, hub.Namespace)
	if err != nil {
		return err
	}
	moves = slices.DeleteFunc(moves, func(m failover.Move) bool {
		return len(names) > 0 && !slices.Contains(names, m.Name)
	})
	if len(missing) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "Only failovers under way are shown, and not what they wait for: %s\n",
			roles.Sentence(missing))
	}
	if output != "" {
		return hubcli.WriteAs(cmd.OutOrStdout(), output, map[string]any{"failovers": append([]failover.Move{}, moves...)})
	}
	if len(moves) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "No failovers found")
		return nil
	}
	return PrintFailovers(cmd.OutOrStdout(), moves, time.Now())
}

// FailoversOf reads the facts from the hub, and plans the failovers of a namespace, or of all; see why.Failovers.
func FailoversOf(ctx context.Context, hub *rest.Config, namespace string) ([]failover.Move, []roles.Missing, error) {
	hub = rest.CopyConfig(hub)
	hub.QPS = -1 // a template is read for each failover
	c, _, err := why.Connect(hub)
	if err != nil {
		return nil, nil, err
	}
	return why.Failovers(ctx, c, why.SchedulerOf(ctx, hub), why.RoomOf(hub), namespace, time.Now())
}

func PrintFailovers(out io.Writer, moves []failover.Move, now time.Time) error {
	table := hubcli.TextTable("Namespace", "Kind", "Name", "From", "To", "Reason", "Waiting for", "Since")
	for _, m := range moves {
		waits := hubcli.OrNone(string(m.WaitingFor))
		if m.Ended != nil {
			waits = "ended " + duration.HumanDuration(now.Sub(*m.Ended)) + " ago"
		}
		since := "<unknown>"
		if m.Since != nil {
			since = duration.HumanDuration(now.Sub(*m.Since))
		}
		hubcli.AddRow(table, hubcli.OrNone(m.Namespace), m.Kind, m.Name, m.From, hubcli.OrNone(m.Destination()),
			hubcli.OrNone(m.Reason), waits, since)
	}
	return hubcli.PrintTable(out, table, printers.PrintOptions{})
}
