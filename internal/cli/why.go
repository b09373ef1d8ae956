package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/why"
)

// newWhy explains what became of one template. What it finds is no error: that is for questions without an answer.
func newWhy(hub *hubFlags) *cobra.Command {
	var cluster, output string
	cmd := &cobra.Command{
		Use:   "why KIND NAME",
		Short: "Say what became of an object: its policy, its placement, and what each member made of it",
		Long: `Say what became of an object of the hub: which policy holds it and why not the others, where the scheduler put it and why,
what overrides changed, what was sent, what the members answered, and how healthy it is there.
Of a policy: which templates it holds, who holds the others that it selects, which selectors match nothing, and which clusters it means.
Of a cluster: what is placed there, and what is kept out for which reason. Of a ManifestWork: what became of each of its objects.

What is wrong comes first, each with the next thing to do. KIND is a kind, plural or short name, with ".group" if several have it.`,
		Example: `  argosy why deployment web -n shop
  argosy why deploy/web -n shop --cluster eu
  argosy why propagationpolicy web -n shop
  argosy why cluster eu
  argosy why manifestwork web -n eu
  argosy why statefulset.apps.kruise.io db -n shop -o json`,
		Args: oneObject("deployment web"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			q := why.Query{Cluster: cluster}
			q.Kind, q.Name = objectOf(args)
			config, err := hub.ToRESTConfig()
			if err != nil {
				return err
			}
			if q.Namespace, _, err = hub.ToRawKubeConfigLoader().Namespace(); err != nil {
				return fmt.Errorf("kubeconfig of the hub: %w", err)
			}
			q.Room, q.Scheduler = why.RoomOf(config), why.SchedulerOf(cmd.Context(), config)
			c, mapper, err := why.Connect(config)
			if err != nil {
				return err
			}
			answer, err := why.Ask(cmd.Context(), c, mapper, q)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				return writeJSON(cmd.OutOrStdout(), answer)
			case "yaml":
				return writeYAML(cmd.OutOrStdout(), answer)
			}
			return answer.Write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "tell of this cluster only, and all that is known there")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml, for programs")
	return cmd
}
