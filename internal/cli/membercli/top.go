package membercli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/util/completion"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/member"
)

// NewTop shows the resource usage in members, with the flags of karmadactl.
func NewTop(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the CPU and memory that pods or nodes of member clusters use",
		Long: `Shows the CPU and memory that pods or nodes of member clusters use. The metrics-server of each cluster measures it, which takes a minute
for a new pod. Clusters that do not respond or have no metrics-server are named, and the others are shown.`,
	}
	pods := &top{HubFlags: hub, streams: streams, pods: true}
	podCmd := pods.command("pods", []string{"pod", "po"}, `  argosy top pods -n shop
  argosy top pods -A -C eu,us --sort-by memory
  argosy top pods -l app=web -n shop --containers`)
	podCmd.Short = "Show the CPU and memory that pods of member clusters use"
	podCmd.ValidArgsFunction = hubcli.KubectlCompletion(hub, completion.PodResourceNameCompletionFunc)
	podCmd.Flags().BoolVarP(&pods.allNamespaces, "all-namespaces", "A", false, "show pods of all namespaces")
	podCmd.Flags().BoolVar(&pods.containers, "containers", false, "show a row for each container")
	podCmd.Flags().BoolVar(&pods.sum, "sum", false, "add a row with the sum to the table")
	podCmd.Flags().StringVar(&pods.fields, "field-selector", "",
		"show only pods with these fields, such as metadata.name=web-1")
	nodes := &top{HubFlags: hub, streams: streams}
	nodeCmd := nodes.command("nodes", []string{"node", "no"}, `  argosy top nodes
  argosy top nodes -C eu --sort-by cpu`)
	nodeCmd.Short = "Show the CPU and memory that nodes of member clusters use"
	nodeCmd.ValidArgsFunction = cobra.NoFileCompletions
	nodeCmd.Flags().BoolVar(&nodes.capacity, "show-capacity", false,
		"show percentages of the capacity of nodes instead of what pods can use")
	cmd.AddCommand(podCmd, nodeCmd)
	return cmd
}

// top shows the usage of pods or nodes.
type top struct {
	*hubcli.HubFlags
	streams genericiooptions.IOStreams
	pods    bool

	where                            ScopeFlags
	selector, fields, sortBy, output string
	allNamespaces, containers, sum   bool
	noHeaders, capacity              bool
}

func (t *top) command(name string, aliases []string, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name + " [NAME | -l SELECTOR]",
		Aliases: aliases,
		Example: example,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	t.where.Bind(cmd)
	cmd.Flags().StringVarP(&t.selector, "selector", "l", "", "show only objects with these labels, such as app=web")
	cmd.Flags().StringVar(&t.sortBy, "sort-by", "",
		"cpu or memory: the highest usage first (default: by cluster and name)")
	cmd.Flags().Bool("use-protocol-buffers", true, "has no effect: scripts for karmadactl use it")
	_ = cmd.Flags().MarkHidden("use-protocol-buffers") // it fails for unknown flags only
	cmd.Flags().BoolVar(&t.noHeaders, "no-headers", false, "print no header")
	hubcli.OutputFlag(cmd, &t.output, "output format: json or yaml (default: a table)")
	return cmd
}

// resourceUsage is what a pod, a container or a node uses.
type resourceUsage struct {
	Cluster   string              `json:"cluster"`
	Namespace string              `json:"namespace,omitempty"`
	Name      string              `json:"name"`
	Container string              `json:"container,omitempty"`
	Usage     corev1.ResourceList `json:"usage"`
	// Available is the allocatable amount of a node, or its capacity with --show-capacity; nil for pods and if unknown.
	Available corev1.ResourceList `json:"available,omitempty"`
}

func (t *top) run(ctx context.Context, name string) error {
	switch {
	case name != "" && t.selector+t.fields != "":
		return errors.New("a name and a selector cannot be used together")
	case name != "" && t.allNamespaces:
		return errors.New("a name and --all-namespaces cannot be used together")
	case !slices.Contains([]string{"", "cpu", "memory"}, t.sortBy):
		return fmt.Errorf("--sort-by must be cpu or memory, not %q", t.sortBy)
	}
	namespace := ""
	if t.pods && !t.allNamespaces {
		var err error
		if namespace, _, err = t.ToRawKubeConfigLoader().Namespace(); err != nil {
			return err
		}
	}
	places, err := t.where.Places(ctx, t.HubFlags, true)
	if err != nil {
		return err
	}
	var reading sync.WaitGroup
	var found found
	byPlace := make([][]resourceUsage, len(places))
	for i, at := range places {
		reading.Go(func() {
			err := at.answers(ctx)
			if err == nil {
				byPlace[i], err = t.read(ctx, at, namespace, name)
			}
			found.note(at, at.explain(err))
		})
	}
	reading.Wait()
	all := slices.Concat(byPlace...)
	if t.sortBy != "" {
		slices.SortStableFunc(all, func(a, b resourceUsage) int {
			x, y := a.Usage[corev1.ResourceName(t.sortBy)], b.Usage[corev1.ResourceName(t.sortBy)]
			return y.Cmp(x)
		})
	}
	err = found.err()
	if len(all) == 0 && err != nil {
		return err
	}
	return errors.Join(t.print(all, namespace), err)
}

// read returns the usage in a cluster, sorted by namespace and name. An empty namespace or name means all.
func (t *top) read(ctx context.Context, at *place, namespace, name string) ([]resourceUsage, error) {
	config, err := at.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if t.pods {
		var list metricsv1beta1.PodMetricsList
		if err := t.get(ctx, c, namespace, "pods", name, &list); err != nil {
			return nil, err
		}
		return t.podUsage(at.Cluster, list.Items), nil
	}
	var list metricsv1beta1.NodeMetricsList
	if err := t.get(ctx, c, "", "nodes", name, &list); err != nil {
		return nil, err
	}
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: t.selector, ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	available := map[string]corev1.ResourceList{}
	for i := range nodes.Items {
		available[nodes.Items[i].Name] = nodes.Items[i].Status.Allocatable
		if t.capacity {
			available[nodes.Items[i].Name] = nodes.Items[i].Status.Capacity
		}
	}
	var rows []resourceUsage
	for _, m := range list.Items {
		rows = append(rows, resourceUsage{Cluster: at.Cluster, Name: m.Name, Usage: m.Usage, Available: available[m.Name]})
	}
	slices.SortFunc(rows, func(a, b resourceUsage) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

// get reads the metrics of all selected objects, or of the named one, into a list.
func (t *top) get(ctx context.Context, c kubernetes.Interface, namespace, resource, name string, list any) error {
	request := c.Discovery().RESTClient().Get().AbsPath("apis/metrics.k8s.io/v1beta1").
		NamespaceIfScoped(namespace, namespace != "").Resource(resource)
	if name != "" {
		request = request.Name(name)
	}
	for param, selector := range map[string]string{"labelSelector": t.selector, "fieldSelector": t.fields} {
		if selector != "" {
			request = request.Param(param, selector)
		}
	}
	result := request.Do(ctx)
	err := result.Error()
	if apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err) { // the API itself is not found
		return fmt.Errorf("metrics.k8s.io: %w: install metrics-server there", member.ErrNoMetrics)
	}
	if err != nil {
		return err
	}
	data, err := result.Raw()
	if err != nil {
		return err
	}
	if name != "" {
		data = slices.Concat([]byte(`{"items":[`), data, []byte(`]}`))
	}
	if err := json.Unmarshal(data, list); err != nil {
		return fmt.Errorf("decode metrics of %s: %w", resource, err)
	}
	return nil
}

// podUsage returns the usage of pods, or of their containers, sorted by namespace and name.
func (t *top) podUsage(cluster string, pods []metricsv1beta1.PodMetrics) []resourceUsage {
	slices.SortFunc(pods, func(a, b metricsv1beta1.PodMetrics) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	var rows []resourceUsage
	for _, m := range pods {
		pod := resourceUsage{Cluster: cluster, Namespace: m.Namespace, Name: m.Name, Usage: corev1.ResourceList{}}
		for _, c := range m.Containers {
			if t.containers {
				rows = append(rows, resourceUsage{Cluster: cluster, Namespace: m.Namespace, Name: m.Name, Container: c.Name,
					Usage: c.Usage})
			}
			addResources(pod.Usage, c.Usage)
		}
		if !t.containers {
			rows = append(rows, pod)
		}
	}
	return rows
}

// addResources adds amounts to a list.
func addResources(to, more corev1.ResourceList) {
	for name, q := range more {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

func (t *top) print(rows []resourceUsage, namespace string) error {
	if t.output != "" {
		return hubcli.WriteAs(t.streams.Out, t.output, append([]resourceUsage{}, rows...))
	}
	if len(rows) == 0 {
		what := "nodes"
		if t.pods {
			what = "pods"
		}
		if namespace != "" {
			what += " in namespace " + namespace
		}
		fmt.Fprintf(t.streams.ErrOut, "no metrics of %s found\n", what)
		return nil
	}
	var columns []string
	if t.allNamespaces {
		columns = append(columns, "Namespace")
	}
	switch {
	case t.containers:
		columns = append(columns, "Pod", "Cluster", "Name", "CPU(cores)", "Memory(bytes)")
	case t.pods:
		columns = append(columns, "Name", "Cluster", "CPU(cores)", "Memory(bytes)")
	default:
		columns = append(columns, "Name", "Cluster", "CPU(cores)", "CPU%", "Memory(bytes)", "Memory%")
	}
	table, total := hubcli.TextTable(columns...), corev1.ResourceList{}
	for _, u := range rows {
		hubcli.AddRow(table, t.cells(u)...)
		addResources(total, u.Usage)
	}
	if t.sum {
		hubcli.AddRow(table, t.cells(resourceUsage{Name: "TOTAL", Usage: total})...)
	}
	return hubcli.PrintTable(t.streams.Out, table, printers.PrintOptions{NoHeaders: t.noHeaders})
}

func (t *top) cells(u resourceUsage) []any {
	var cells []any
	if t.allNamespaces {
		cells = append(cells, u.Namespace)
	}
	cells = append(cells, u.Name, u.Cluster)
	if t.containers {
		cells = append(cells, u.Container)
	}
	cells = append(cells, fmt.Sprintf("%dm", u.Usage.Cpu().MilliValue()))
	if !t.pods {
		cells = append(cells, percent(u.Usage.Cpu().MilliValue(), u.Available.Cpu().MilliValue()))
	}
	cells = append(cells, fmt.Sprintf("%dMi", u.Usage.Memory().Value()/(1<<20)))
	if !t.pods {
		cells = append(cells, percent(u.Usage.Memory().Value(), u.Available.Memory().Value()))
	}
	return cells
}

// percent returns a share of a whole such as "5%", or "<unknown>" if the whole is unknown.
func percent(part, whole int64) string {
	if whole <= 0 {
		return "<unknown>"
	}
	return fmt.Sprintf("%d%%", part*100/whole)
}
