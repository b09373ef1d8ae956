package membercli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// ComputedKinds are the lists that `argosy get` computes itself, because no API serves them.
var ComputedKinds = []string{"orphans", "failovers"}

// computedKind returns the computed list that args name, in singular or plural; empty for none. Names may follow.
func computedKind(args []string) string {
	if len(args) == 0 {
		return ""
	}
	for _, kind := range ComputedKinds {
		if name := strings.ToLower(args[0]); name == kind || name+"s" == kind {
			return kind
		}
	}
	return ""
}

// NewGet is kubectl's get against the hub. Computed lists, the table of clusters, and objects in members are our own.
func NewGet(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	where := &ScopeFlags{}
	out := &hubcli.Painter{Out: streams.Out}
	streams.Out = out
	cmd := get.NewCmdGet(hub.CalledBy, cmdutil.NewFactory(&place{HubFlags: hub}), streams)
	where.Bind(cmd, ScopeHub, ScopeMembers, ScopeAll)
	cmd.Example += `

		# List the pods of all clusters of the fleet
		argosy get pods -A --operation-scope members

		# Watch a deployment on the hub and in two clusters
		argosy get deployment web -n shop -s all -C eu,us -w

		# List orphans: objects in clusters with this hub's labels that the hub does not know, such as after a restore
		argosy get orphans

		# List workloads that should leave a cluster, are leaving it, or have left it within the last hour
		argosy get failovers`
	kubectl := cmd.Run
	cmd.Run = nil
	cmd.ValidArgsFunction = hubcli.KubectlCompletion(hub, completion.ResourceTypeAndNameCompletionFunc)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		output, _ := cmd.Flags().GetString("output")
		if output == "" || output == "wide" {
			out.On = hubcli.Colors(cmd, out.Out)
			defer out.Flush()
		}
		computed := output
		if output == "wide" {
			computed = "" // they have no more columns
		}
		switch computedKind(args) {
		case "orphans":
			chosen, _ := cmd.Flags().GetStringSlice("clusters")
			return (&orphanFlags{clusters: chosen, names: args[1:]}).print(cmd, hub, computed)
		case "failovers":
			return getFailovers(cmd, hub, computed, args[1:])
		}
		places, err := where.Places(cmd.Context(), hub, false)
		if err != nil {
			return err
		}
		if len(places) != 1 || places[0].Cluster != "" {
			return getFrom(cmd, args, places, streams)
		}
		// karmadactl shows the cluster of each object, also for the hub.
		if hub.IsKarmadactl() && (output == "" || output == "wide") && !cmd.Flags().Changed("raw") {
			err := getFrom(cmd, args, places, streams)
			if err == nil {
				hint(cmd, args)
			}
			return err
		}
		names, ok := clusterTable(cmd.Flags(), args)
		if !ok {
			if err := hubcli.Fatal(func() { kubectl(cmd, args) }); err != nil {
				return err
			}
			hint(cmd, args)
			return nil
		}
		c, err := hub.Client()
		if err != nil {
			return err
		}
		selector, _ := cmd.Flags().GetString("selector")
		noHeaders, _ := cmd.Flags().GetBool("no-headers")
		list, err := hubcli.Clusters(cmd.Context(), c, names, selector)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), "No resources found")
			return nil
		}
		return printClusters(out, list, time.Now(), printers.PrintOptions{Wide: output == "wide", NoHeaders: noHeaders})
	}
	return cmd
}

// twins are names of kinds that both Kubernetes and OpenKruise have; kubectl uses those of Kubernetes.
var twins = map[string]string{
	"statefulset": "statefulsets", "statefulsets": "statefulsets", "sts": "statefulsets",
	"daemonset": "daemonsets", "daemonsets": "daemonsets", "ds": "daemonsets",
}

// hint prints that OpenKruise has a kind with the same name, if a user lists a kind of Kubernetes.
func hint(cmd *cobra.Command, args []string) {
	output, _ := cmd.Flags().GetString("output")
	if len(args) != 1 || output != "" && output != "wide" {
		return
	}
	for name := range strings.SplitSeq(strings.ToLower(args[0]), ",") {
		if twin := twins[name]; twin != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "These are the %s of Kubernetes. For those of OpenKruise: %s get %s.apps.kruise.io\n",
				twin, cmd.Root().Name(), twin)
		}
	}
}

// clusterTable reports whether the user asked for the table of clusters, and for which clusters. kubectl handles any
// other use.
func clusterTable(flags *pflag.FlagSet, args []string) (names []string, ok bool) {
	if len(args) == 0 || !slices.Contains([]string{"cluster", "clusters", "clusters.cluster.karmada.io"},
		strings.ToLower(args[0])) {
		return nil, false
	}
	ok = true
	flags.Visit(func(f *pflag.Flag) {
		if f.Hidden { // of the connection, or of the log
			return
		}
		switch f.Name {
		case "output":
			ok = ok && (f.Value.String() == "" || f.Value.String() == "wide")
		case "kubeconfig", "karmada-context", "color", "operation-scope", "namespace", "all-namespaces", "no-headers":
		case "selector":
			ok = ok && len(args) == 1
		default:
			ok = false
		}
	})
	return args[1:], ok
}

func printClusters(out io.Writer, list []clusterv1alpha1.Cluster, now time.Time, o printers.PrintOptions) error {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string"}, {Name: "Version", Type: "string"}, {Name: "Mode", Type: "string"},
		{Name: "Ready", Type: "string"}, {Name: "Age", Type: "string"}, {Name: "Taints", Type: "string"},
		{Name: "Brake", Type: "string"},
		{Name: "Zones", Type: "string", Priority: 1}, {Name: "Region", Type: "string", Priority: 1},
		{Name: "Provider", Type: "string", Priority: 1},
		{Name: "API-Endpoint", Type: "string", Priority: 1}, {Name: "Proxy-URL", Type: "string", Priority: 1},
		{Name: "Kruise", Type: "string", Priority: 1},
	}}
	for i := range list {
		c := &list[i]
		ready := string(metav1.ConditionUnknown)
		if cond := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); cond != nil {
			ready = string(cond.Status)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			c.Name, c.Status.KubernetesVersion, string(c.Spec.SyncMode), ready,
			duration.HumanDuration(now.Sub(c.CreationTimestamp.Time)), hubcli.OrNone(strings.Join(overview.Repelling(c), ",")),
			hubcli.OrNone(text.Names(c.Status.Brakes, 3)),
			hubcli.OrNone(strings.Join(c.Spec.Zones, ",")), hubcli.OrNone(c.Spec.Region), hubcli.OrNone(c.Spec.Provider),
			hubcli.OrNone(c.Spec.APIEndpoint), hubcli.OrNone(c.Spec.ProxyURL),
			hubcli.OrNone(membership.OpenKruise(c.Status.APIEnablements).String()),
		}})
	}
	return hubcli.PrintTable(out, table, o)
}
