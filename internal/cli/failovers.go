package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/argosy-io/argosy/internal/core/failover"
	"github.com/argosy-io/argosy/internal/why"
)

// getFailovers prints the failovers of the hub, or those of a namespace.
func getFailovers(cmd *cobra.Command, hub *hubFlags, output string) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	config, err := hub.ToRESTConfig()
	if err != nil {
		return err
	}
	c, _, err := why.Connect(config)
	if err != nil {
		return err
	}
	moves, err := why.Failovers(cmd.Context(), c, why.SchedulerOf(cmd.Context(), config), why.RoomOf(config), time.Now())
	if err != nil {
		return err
	}
	moves = slices.DeleteFunc(moves, func(m failover.Move) bool { return hub.namespace != "" && m.Namespace != hub.namespace })
	switch output {
	case "json":
		return writeJSON(cmd.OutOrStdout(), map[string]any{"failovers": append([]failover.Move{}, moves...)})
	case "yaml":
		return writeYAML(cmd.OutOrStdout(), map[string]any{"failovers": append([]failover.Move{}, moves...)})
	}
	if len(moves) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "No failovers found")
		return nil
	}
	return printFailovers(cmd.OutOrStdout(), moves, time.Now())
}

func printFailovers(out io.Writer, moves []failover.Move, now time.Time) error {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Namespace", Type: "string"}, {Name: "Kind", Type: "string"}, {Name: "Name", Type: "string"}, {Name: "From", Type: "string"},
		{Name: "To", Type: "string"}, {Name: "Reason", Type: "string"}, {Name: "Waiting for", Type: "string"}, {Name: "Since", Type: "string"},
	}}
	for _, m := range moves {
		waits := orNone(string(m.WaitingFor))
		if m.Ended != nil {
			waits = "ended " + duration.HumanDuration(now.Sub(*m.Ended)) + " ago"
		}
		since := "<unknown>"
		if m.Since != nil {
			since = duration.HumanDuration(now.Sub(*m.Since))
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{orNone(m.Namespace), m.Kind, m.Name, m.From, orNone(m.Destination()), orNone(m.Reason), waits, since}})
	}
	return printTable(out, table, printers.PrintOptions{})
}
