package explaincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/explain/simulate"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// simulation has the flags of simulate.
type simulation struct {
	files, taints, scale   []string
	down, drained, removed []string
	unhealthy              []string
	fleet, output          string
	scheduler              string
	plugins                []string
	all, failOnUnplaced    bool
}

func NewSimulate(hub *hubcli.HubFlags) *cobra.Command {
	s := &simulation{}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Show what a change would do to the fleet, without making it",
		Long: `Show what a change would do to the fleet, without making it.

The scheduler runs on a copy of the fleet: the hub's, which is only read, or a file written by "simulate record" or by
hand. Each placement takes capacity from those after it, in the order of the hub: what happens to clusters comes first,
then the objects of -f in their order, and then --scale. Other workloads follow by schedule priority, age and name. Pods
that leave free their capacity after all of this: only workloads that wait for it take it.

  --cluster-down     the cluster stops responding: workloads that fail over leave it, others stay, and no new ones are placed there
  --cluster-drained  the cluster gets a NoExecute taint, and its workloads are rescheduled, as with a WorkloadRebalancer
  --cluster-removed  the cluster leaves the fleet, as with unjoin: its workloads are rescheduled to other clusters
  --unhealthy        the workloads in the cluster become unhealthy and stay so: those with spec.failover.application leave it
  --taint            the cluster gets a taint: new workloads that do not tolerate it avoid the cluster; with NoExecute, those there leave it
  --scale            a workload gets another number of replicas
  -f                 templates, policies and overrides are applied as on the hub, in every form that it accepts; clusters
                     and their nodes are added or changed; the workloads of a WorkloadRebalancer are rescheduled

Interpreter webhooks are not called, and what a member does with its share is not simulated. A workload that does not fit is
a result, not an error; with --fail-on-unplaced the exit code is 1.`,
		Example: `  argosy simulate --cluster-removed m1
  argosy simulate --cluster-down m1 --scale shop/cloneset/web=40
  argosy simulate --scale shop/cloneset/web=40 --taint m2=maintenance:NoSchedule
  argosy simulate record > fleet.yaml
  argosy simulate --fleet fleet.yaml -f policies/ -o json`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd, hub) },
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&s.files, "filename", "f", nil,
		"file or folder with templates, policies, overrides or clusters to apply in the simulation; - is standard input")
	flags.StringSliceVar(&s.down, "cluster-down", nil, "clusters that stop responding, comma-separated")
	flags.StringSliceVar(&s.drained, "cluster-drained", nil, "clusters that are drained, comma-separated")
	flags.StringSliceVar(&s.removed, "cluster-removed", nil, "clusters that leave the fleet, comma-separated")
	flags.StringSliceVar(&s.unhealthy, "unhealthy", nil,
		"clusters in which workloads with application failover are unhealthy, comma-separated")
	flags.StringArrayVar(&s.taints, "taint", nil,
		"CLUSTER=KEY:EFFECT or CLUSTER=KEY=VALUE:EFFECT, a taint put on a cluster")
	flags.StringArrayVar(&s.scale, "scale", nil, "[NAMESPACE/]KIND/NAME=N, a workload and its replicas")
	flags.StringVar(&s.fleet, "fleet", "", "file with the fleet to simulate on, instead of the hub's")
	flags.StringVar(&s.scheduler, "scheduler-name", "", "name of the scheduler, as in argosy up (default: the hub's)")
	flags.StringSliceVar(&s.plugins, "plugins", nil,
		"scheduler plugins to run, as in argosy up: * enables all, -NAME disables one (default: the hub's)")
	flags.StringVarP(&s.output, "output", "o", "", "output format: json, or a table if empty")
	flags.BoolVar(&s.all, "all", false, "also show workloads that do not change (JSON always has them)")
	flags.BoolVar(&s.failOnUnplaced, "fail-on-unplaced", false,
		"exit with code 1 if a workload cannot be placed or a cluster is over its capacity")
	cmd.AddCommand(newSimulateRecord(hub))
	return cmd
}

func (s *simulation) run(cmd *cobra.Command, hub *hubcli.HubFlags) error {
	if s.output != "" && s.output != "json" {
		return fmt.Errorf("-o %s is not supported: use json, or leave it out for a table", s.output)
	}
	change, err := s.change(cmd.InOrStdin(), hub.NamespaceOrDefault())
	if err != nil {
		return err
	}
	fleet, warnings, err := s.load(cmd.Context(), cmd.InOrStdin(), hub, change)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		text.Fprintf(cmd.ErrOrStderr(), "Warning: %s\n", w)
	}
	report, err := simulate.Run(cmd.Context(), fleet, change)
	if err != nil {
		return err
	}
	if s.output == "json" {
		err = hubcli.WriteJSON(cmd.OutOrStdout(), report)
	} else {
		out, flush := hubcli.ColoredOutput(cmd)
		err = report.Print(out, s.all)
		flush()
	}
	if err == nil && s.failOnUnplaced && !report.Summary.Fits() {
		err = fmt.Errorf("workloads that do not fit: %d, clusters that lack room: %d", report.Summary.Unplaced,
			report.Summary.ShortClusters)
	}
	return err
}

// change returns the simulated change. It reports all invalid flags at once.
func (s *simulation) change(in io.Reader, namespace string) (simulate.Change, error) {
	c := simulate.Change{Namespace: namespace, Down: s.down, Drained: s.drained, Removed: s.removed,
		Unhealthy: s.unhealthy}
	var errs []error
	for _, flag := range s.taints {
		t, err := simulate.ParseTaint(flag)
		errs, c.Taints = append(errs, err), append(c.Taints, t)
	}
	for _, flag := range s.scale {
		t, err := simulate.ParseScale(flag)
		errs, c.Scale = append(errs, err), append(c.Scale, t)
	}
	if s.fleet == "-" && slices.Contains(s.files, "-") {
		errs = append(errs, errors.New("standard input is both --fleet and -f: name a file for one of them"))
	}
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	var err error
	c.Objects, err = hubcli.ReadObjects(in, s.files...)
	return c, err
}

func (s *simulation) load(ctx context.Context, in io.Reader, hub *hubcli.HubFlags,
	c simulate.Change) (*simulate.Fleet, []string, error) {
	var objects []simulate.Object
	r, err := &fleetReader{}, error(nil)
	if s.fleet != "" {
		objects, err = hubcli.ReadObjects(in, s.fleet)
	} else if r, err = newFleetReader(hub); err == nil {
		objects, err = r.Read(ctx, simulate.Kinds(c.Objects))
	}
	if err != nil {
		return nil, nil, err
	}
	fleet, err := simulate.Load(objects, c.Namespace)
	if err != nil {
		return nil, nil, err
	}
	warnings := r.Warnings
	if s.fleet != "" {
		warnings = fleet.Warnings()
	}
	fleet, err = s.scheduled(fleet.WithoutNamespace(r.ClusterScoped...))
	return fleet, warnings, err
}

// scheduled returns the fleet with the scheduler that the flags configure, or else with the hub's or the recorded
// configuration.
func (s *simulation) scheduled(fleet *simulate.Fleet) (*simulate.Fleet, error) {
	settings := fleet.Scheduler()
	settings.Name = cmp.Or(s.scheduler, settings.Name)
	if len(s.plugins) > 0 {
		var err error
		if settings.Plugins, err = schedule.ParsePlugins(s.plugins); err != nil {
			return nil, fmt.Errorf("--plugins: %w", err)
		}
	}
	return fleet.ScheduledBy(settings), nil
}

func newSimulateRecord(hub *hubcli.HubFlags) *cobra.Command {
	var output string
	var kinds []string
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Write the hub's fleet to standard output, for use with simulate --fleet",
		Long: `Write the hub's fleet to standard output, for use with simulate --fleet.

The output is a YAML stream of objects: clusters with their nodes, requests and quotas; policies, overrides, bindings and customizations;
and the templates of the kinds that policies select. You can also write such a file by hand: see docs/simulate.md. It contains no
secret data: a Secret has only its metadata and type, and a cluster has no credentials and no address. The same fleet always gives the
same file. For thousands of workloads, -o json is faster to read.`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "yaml" && output != "json" {
				return fmt.Errorf("-o %s is not supported: use yaml or json", output)
			}
			r, err := newFleetReader(hub)
			if err != nil {
				return err
			}
			also, err := r.parseKinds(kinds)
			if err != nil {
				return err
			}
			objects, err := r.Read(cmd.Context(), also)
			if err != nil {
				return err
			}
			for _, w := range r.Warnings {
				text.Fprintf(cmd.ErrOrStderr(), "Warning: %s\n", w)
			}
			return WriteObjects(cmd.OutOrStdout(), objects, output == "json")
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "output format: yaml, or json with one object per line")
	cmd.Flags().StringSliceVar(&kinds, "kinds", nil,
		"record templates of these kinds too, such as statefulsets.apps, for policies that do not exist yet")
	return cmd
}
