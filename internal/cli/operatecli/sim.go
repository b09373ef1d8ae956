package operatecli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/internal/sim/member"
)

// NewSim is `argosy sim`: a fleet of simulated members, in the foreground.
func NewSim() *cobra.Command {
	var members, nodes int
	var dir, kubeconfig, release string
	var zones []string
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Run simulated member clusters",
		Long: "Run simulated member clusters, each a real API server with fake nodes on which pods become ready at once.\n" +
			"They stop with this command. An image with \":bad\" in its name never becomes ready. Containers run no program: their\n" +
			"logs have their start and end, and exec and attach know a few commands, such as echo, env, hostname and sh.",
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if members < 1 || nodes < 0 {
				return fmt.Errorf("--members must be at least 1 and --nodes not negative")
			}
			if dir == "" {
				if dir, err = os.MkdirTemp("", "argosy-sim-"); err != nil {
					return fmt.Errorf("create a folder for the members: %w", err)
				}
				defer os.RemoveAll(dir)
			}
			kubeconfig = cmp.Or(kubeconfig, filepath.Join(dir, "kubeconfig"))
			out := cmd.OutOrStdout()
			o := sim.Options{Dir: dir, Log: out}
			for i := range members {
				o.Members = append(o.Members, sim.Member{
					Name: fmt.Sprintf("member%d", i+1), Nodes: nodes,
					Region: fmt.Sprintf("region%d", i%2+1), Zone: fmt.Sprintf("zone%d", i+1), Zones: zones,
					Provider: "sim", OpenKruise: release,
				})
			}
			fmt.Fprintf(out, "Starting %d simulated members in %s\n", members, dir)
			fleet, err := sim.Start(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := fleet.WriteKubeconfig(kubeconfig); err != nil {
				_ = fleet.Stop()
				return err
			}
			describe(out, fleet, kubeconfig)

			ended := make(chan *sim.Running, members)
			for _, m := range fleet.Members() {
				go func() {
					<-m.Done()
					ended <- m
				}()
			}
			select {
			case <-cmd.Context().Done():
				fmt.Fprintln(out, "Stopping")
			case m := <-ended:
				fmt.Fprintf(out, "Member %s ended; stopping the others\n", m.Name)
			}
			return fleet.Stop()
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&members, "members", 2, "number of member clusters")
	flags.IntVar(&nodes, "nodes", 3, "number of fake nodes in each")
	flags.StringSliceVar(&zones, "zones", nil,
		"zones of the nodes in each, in turn, separated by commas (default: one zone for each member)")
	flags.StringVar(&release, "openkruise", "1.8",
		"OpenKruise release to simulate, which determines the versions of its kinds: 1.8, 1.9 or 1.10")
	flags.StringVar(&kubeconfig, "kubeconfig-out", "",
		"kubeconfig file to write, with a context per member (default: in the folder of --dir)")
	flags.StringVar(&dir, "dir", "", "folder for the members' data, reused by a later run (default: a temporary folder)")
	return cmd
}

// describe prints what runs, and what can be done with it.
func describe(out io.Writer, fleet *sim.Fleet, kubeconfig string) {
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tCONTEXT\tSERVER\tNODES\tPID\tMEMORY")
	for _, m := range fleet.Members() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d MiB\n", m.Name, m.Name, m.Server, m.Nodes, m.PID(), m.RSS()>>20)
	}
	_ = table.Flush()
	fmt.Fprintf(out, "\nInspect one:\n  kubectl --kubeconfig %s --context %s get nodes\n\nJoin them to a hub:\n",
		kubeconfig, fleet.Members()[0].Name)
	for _, m := range fleet.Members() {
		fmt.Fprintf(out, "  argosy join %s --cluster-kubeconfig %s --cluster-context %s\n", m.Name, kubeconfig, m.Name)
	}
	fmt.Fprintln(out, "\nCtrl-C stops them.")
}

// NewSimMember returns the command that a member's child process runs.
func NewSimMember() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:         sim.ChildVerb,
		Short:       "Serve one simulated member for a parent process",
		Hidden:      true,
		Args:        hubcli.NoArgs,
		Annotations: map[string]string{hubcli.ServesAnnotation: "true"},
		RunE:        func(*cobra.Command, []string) error { return member.Main(dir) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the member's folder")
	return cmd
}
