package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
)

// computedKinds are the lists that `argosy get` computes itself, because no API serves them.
var computedKinds = []string{"orphans", "failovers"}

// computedKind returns the computed list that args name, in singular or plural; empty for none.
func computedKind(args []string) string {
	if len(args) != 1 {
		return ""
	}
	for _, kind := range computedKinds {
		if name := strings.ToLower(args[0]); name == kind || name+"s" == kind {
			return kind
		}
	}
	return ""
}

// newGet is kubectl's get against the hub. Computed lists, the table of clusters, and objects in members are our own.
func newGet(hub *hubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	where := &scopeFlags{}
	out := &painter{out: streams.Out}
	streams.Out = out
	cmd := get.NewCmdGet(hub.calledBy, cmdutil.NewFactory(&place{hubFlags: hub}), streams)
	where.bind(cmd, scopeHub, scopeMembers, scopeAll)
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
	cmd.ValidArgsFunction = silent(hub, completion.ResourceTypeAndNameCompletionFunc)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		output, _ := cmd.Flags().GetString("output")
		if output == "" || output == "wide" {
			out.on = colors(cmd, out.out)
			defer out.flush()
		}
		switch computedKind(args) {
		case "orphans":
			chosen, _ := cmd.Flags().GetStringSlice("clusters")
			return (&orphanFlags{clusters: chosen}).print(cmd, hub, output)
		case "failovers":
			return getFailovers(cmd, hub, output)
		}
		places, err := where.places(cmd.Context(), hub, false)
		if err != nil {
			return err
		}
		if len(places) != 1 || places[0].cluster != "" {
			return getFrom(cmd, args, places, streams)
		}
		names, ok := clusterTable(cmd.Flags(), args)
		if !ok {
			if err := fatal(func() { kubectl(cmd, args) }); err != nil {
				return err
			}
			hint(cmd, args)
			return nil
		}
		c, err := hub.client()
		if err != nil {
			return err
		}
		selector, _ := cmd.Flags().GetString("selector")
		noHeaders, _ := cmd.Flags().GetBool("no-headers")
		list, err := clusters(cmd.Context(), c, names, selector)
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

// newAPIResources is kubectl's, which the help of get and describe names.
func newAPIResources(hub *hubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := apiresources.NewCmdAPIResources(&place{hubFlags: hub}, streams)
	kubectl := cmd.Run
	cmd.Run = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return fatal(func() { kubectl(cmd, args) }) }
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

func clusters(ctx context.Context, c client.Client, names []string,
	selector string) ([]clusterv1alpha1.Cluster, error) {
	if len(names) > 0 {
		list := make([]clusterv1alpha1.Cluster, len(names))
		for i, name := range names {
			if err := c.Get(ctx, types.NamespacedName{Name: name}, &list[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	matching, err := labels.Parse(selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	var list clusterv1alpha1.ClusterList
	if err := c.List(ctx, &list, client.MatchingLabelsSelector{Selector: matching}); err != nil {
		return nil, err
	}
	return list.Items, nil
}

func printClusters(out io.Writer, list []clusterv1alpha1.Cluster, now time.Time, o printers.PrintOptions) error {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string"}, {Name: "Version", Type: "string"}, {Name: "Mode", Type: "string"},
		{Name: "Ready", Type: "string"}, {Name: "Age", Type: "string"}, {Name: "Taints", Type: "string"},
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
			duration.HumanDuration(now.Sub(c.CreationTimestamp.Time)), orNone(strings.Join(overview.Repelling(c), ",")),
			orNone(strings.Join(c.Spec.Zones, ",")), orNone(c.Spec.Region), orNone(c.Spec.Provider),
			orNone(c.Spec.APIEndpoint), orNone(c.Spec.ProxyURL),
			orNone(membership.OpenKruise(c.Status.APIEnablements).String()),
		}})
	}
	return printTable(out, table, o)
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}

// exitError ends the process with another code than 1, as a command in a pod did.
type exitError struct {
	error
	code int
}

// kubectlRuns counts the verbs of kubectl that run: the handler of their errors is a global variable of kubectl.
var kubectlRuns struct {
	sync.Mutex
	count int
}

// failure is an error of a verb of kubectl.
type failure struct {
	message string
	code    int
}

// fatal runs a verb of kubectl, which ends the process on an error, and returns the error instead.
func fatal(run func()) (err error) {
	kubectlRuns.Lock()
	if kubectlRuns.count++; kubectlRuns.count == 1 {
		cmdutil.BehaviorOnFatal(func(message string, code int) { panic(failure{message, code}) })
	}
	kubectlRuns.Unlock()
	defer func() {
		kubectlRuns.Lock()
		defer kubectlRuns.Unlock()
		if kubectlRuns.count--; kubectlRuns.count == 0 {
			cmdutil.DefaultBehaviorOnFatal()
		}
	}()
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = errors.New(strings.TrimPrefix(strings.TrimSpace(p.message), "error: "))
			if p.code != cmdutil.DefaultErrorExitCode {
				err = exitError{err, p.code}
			}
		default:
			panic(p)
		}
	}()
	run()
	return nil
}
