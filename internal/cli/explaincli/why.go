package explaincli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	corepods "github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/why"
)

// NewWhy explains the state of one template. Findings are no errors; only an unanswered question is one.
func NewWhy(hub *hubcli.HubFlags) *cobra.Command {
	var cluster, output string
	cmd := &cobra.Command{
		Use:   "why KIND NAME",
		Short: "Explain an object: its policy, its placement, and its state in each member",
		Long: `Explain an object of the hub: which policy claims it and why not the others, where the scheduler placed it and why,
what overrides changed, what was sent, how the members responded, how healthy it is there, and what keeps its pods from running.
For a policy: which templates it claims, which policies claim the others that it selects, which selectors match nothing, and which clusters
it selects. For a cluster: what is placed there, and what is not and why. For a ManifestWork: the state of each of its objects.

Problems come first, each with the next step to take. KIND is a kind, plural or short name, with ".group" if it is ambiguous.`,
		Example: `  argosy why deployment web -n shop
  argosy why deploy/web -n shop --cluster eu
  argosy why propagationpolicy web -n shop
  argosy why cluster eu
  argosy why manifestwork web -n eu
  argosy why statefulset.apps.kruise.io db -n shop -o json`,
		Args:              hubcli.OneObject("deployment web"),
		ValidArgsFunction: hubcli.OneOfHub(hub),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := why.Query{Cluster: cluster}
			q.Kind, q.Name = hubcli.ObjectOf(args)
			config, err := hub.ToRESTConfig()
			if err != nil {
				return err
			}
			if q.Namespace, _, err = hub.ToRawKubeConfigLoader().Namespace(); err != nil {
				return fmt.Errorf("kubeconfig of the hub: %w", err)
			}
			q.Room, q.Scheduler, q.Pods = why.RoomOf(config), why.SchedulerOf(cmd.Context(), config), why.PodsOfBinding(config)
			q.Troubled = func(ctx context.Context) []corepods.Workload {
				// A user who may not read them sees the states by health alone.
				seen, _ := why.PodsOf(ctx, config)
				return seen.Workloads
			}
			q.Orphans = func(ctx context.Context, cluster string) (names []string) {
				ctx, cancel := context.WithTimeout(ctx, hubcli.RequestTimeout)
				defer cancel()
				// Orphans that were found are correct despite an error; this user may not be allowed to list all.
				found, _ := membercli.FindOrphans(ctx, config, []string{cluster})
				for i := range found {
					names = append(names, found[i].Object())
				}
				return names
			}
			c, mapper, err := why.Connect(config)
			if err != nil {
				return err
			}
			answer, err := why.Explain(cmd.Context(), c, mapper, q)
			if err != nil {
				return err
			}
			if output != "" {
				return hubcli.WriteAs(cmd.OutOrStdout(), output, answer)
			}
			out, flush := hubcli.ColoredOutput(cmd)
			defer flush()
			return answer.Write(out)
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "show only this cluster, in full detail")
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml")
	return cmd
}
