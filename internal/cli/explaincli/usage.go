package explaincli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	coreusage "github.com/argosy-io/argosy/internal/core/explain/usage"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/usage"
	"github.com/argosy-io/argosy/internal/why"
)

// usageFlags are the flags of `argosy usage`.
type usageFlags struct {
	*hubcli.HubFlags
	where      membercli.ScopeFlags
	everywhere bool
	by, output string
	since      string
	prices     map[string]string
}

// NewUsage shows what workloads request and use.
func NewUsage(hub *hubcli.HubFlags) *cobra.Command {
	u := &usageFlags{HubFlags: hub}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what workloads request and use in all clusters, by namespace, cluster or label",
		Long: `Shows what the workloads of the hub request, their limits and quotas, and what their pods use, summed
over all clusters. Prices of an hour of a core, a GiB or a unit add what the requests cost in 30 days.
See docs/usage.md.`,
		Example: `  argosy usage -n shop
  argosy usage -A
  argosy usage -A --by cluster
  argosy usage -A --by label=team --price cpu=0.03,memory=0.004
  argosy usage -A --by label=team -o csv > usage.csv`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := u.query()
			if err != nil {
				return err
			}
			out, flush := hubcli.ColoredOutput(cmd)
			defer flush()
			return u.run(cmd.Context(), q, out, cmd.ErrOrStderr())
		},
	}
	u.where.Bind(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&u.everywhere, "all-namespaces", "A", false, "show all namespaces")
	fs.StringVar(&u.by, "by", coreusage.Namespace, "the groups: namespace, cluster, or label=KEY for the values of "+
		"a label of workloads, else of their namespaces")
	fs.StringToStringVar(&u.prices, "price", nil, "the price of an hour of a core, a GiB or a unit of each resource, "+
		"such as cpu=0.03,memory=0.004")
	fs.StringVar(&u.since, "since", usage.SinceDefault, "compare requests with those so long ago, such as 12h or 7d, "+
		"from the release history; 0 for no comparison")
	fs.StringVarP(&u.output, "output", "o", "", "output format: json, yaml or csv (default: a table)")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml", "csv"},
		cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{coreusage.Namespace, coreusage.Cluster,
		coreusage.Label + "="}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	_ = cmd.RegisterFlagCompletionFunc("cluster", hubcli.CompleteNames(hub, "clusters.cluster.karmada.io"))
	return cmd
}

// query returns the question of the flags.
func (u *usageFlags) query() (q usage.Query, err error) {
	if u.output != "csv" && hubcli.CheckOutput(u.output) != nil {
		return q, fmt.Errorf("--output must be json, yaml or csv, not %q", u.output)
	}
	if q, err = usage.ParseQuery(u.by, u.since, u.prices, time.Now()); err != nil {
		return q, fmt.Errorf("--%w", err)
	}
	q.Clusters = u.where.Clusters
	if !u.everywhere {
		q.Namespace = u.NamespaceOrDefault()
	}
	return q, nil
}

func (u *usageFlags) run(ctx context.Context, q usage.Query, out, errOut io.Writer) error {
	config, err := u.ToRESTConfig()
	if err != nil {
		return err
	}
	c, _, err := why.Connect(config)
	if err != nil {
		return err
	}
	report, err := usage.Read(ctx, c, config, q)
	if err != nil {
		return err
	}
	columns, lines := report.Lines()
	switch {
	case u.output == "csv":
		_, err = io.WriteString(out, report.CSV())
	case u.output != "":
		return hubcli.WriteAs(out, u.output, report)
	case len(lines) == 0 && q.Namespace != "":
		_, err = fmt.Fprintf(out, "no workload in namespace %s requests or uses anything; -A shows all namespaces\n",
			q.Namespace)
	case len(lines) == 0:
		_, err = fmt.Fprintln(out, "no workload requests or uses anything")
	default:
		table := hubcli.TextTable(columns...)
		for _, line := range lines {
			cells := make([]any, len(line))
			for i, cell := range line {
				cells[i] = hubcli.OrNone(cell)
			}
			hubcli.AddRow(table, cells...)
		}
		err = hubcli.PrintTable(out, table, printers.PrintOptions{})
	}
	for _, note := range report.Notes {
		text.Fprintf(errOut, "UNKNOWN: %s\n", note)
	}
	if len(report.Missing) > 0 {
		text.Fprintf(errOut, "UNKNOWN: %s\n", roles.Sentence(report.Missing))
	}
	return err
}
