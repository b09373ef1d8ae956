package joincli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/source/migrate"
	"github.com/argosy-io/argosy/internal/migration"
)

func NewMigrate(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring workloads that run in several clusters under the hub's management, and back, without restarting a pod",
		Long: `Brings workloads that run in several clusters under the hub's management, or ends it, without restarting a pod.
The same object in several clusters becomes one template, one policy, and an override for each cluster that differs.

A workload goes through three modes in each cluster: the hub only reads (Observe, argosy migrate plan), has all objects
and applies nothing (Shadow), or applies them (Own). A migration that was interrupted continues with the same command.
See docs/migration.md.`,
		Example: `  argosy migrate plan cloneset web -n shop --cluster eu,us
  argosy migrate in -f migration.yaml --batch 1
  argosy migrate status
  argosy migrate out cloneset web -n shop --cluster us`,
		Args: hubcli.NoArgs,
	}
	cmd.AddCommand(newMigratePlan(hub), newMigrateIn(hub), newMigrateOut(hub), newMigrateStatus(hub))
	return cmd
}

// migrateFlags are the flags of the verbs that name workloads.
type migrateFlags struct {
	file        string
	clusters    []string
	acknowledge []string
	output      string
	soak        time.Duration
}

func (f *migrateFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "filename", "f", "", "file with the workloads to migrate; - for standard input")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "C", nil, "clusters that the object lives in, comma-separated")
	cmd.Flags().StringSliceVar(&f.acknowledge, "acknowledge", nil,
		"tools that wrote the object and that you stop, comma-separated: "+strings.Join(migrate.Managers(), ", ")+
			", or a name that plan shows")
	hubcli.OutputFlag(cmd, &f.output, "output format: json or yaml")
}

// migrationArgs takes one object, or none with -f.
func migrationArgs(f *migrateFlags) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if f.file != "" {
			if len(args) > 0 {
				return errors.New("name the workloads either as arguments or with --filename")
			}
			return nil
		}
		return hubcli.OneObject("cloneset web, or a file with --filename")(cmd, args)
	}
}

// migrator runs the verbs of `argosy migrate`.
type migrator struct {
	*migration.Migration
	hub *hubcli.HubFlags
	out io.Writer
}

// newMigrator connects to the hub. Members are reached with their flags or through the hub, as the user.
func newMigrator(cmd *cobra.Command, hub *hubcli.HubFlags, members *hubcli.MemberFlags) (*migrator, error) {
	config, err := hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	m := &migrator{Migration: &migration.Migration{}, hub: hub, out: cmd.OutOrStdout()}
	m.Progress = func(format string, args ...any) { fmt.Fprintf(m.out, format, args...) }
	if m.Hub, err = newAPI(config); err != nil {
		return nil, err
	}
	if m.Client, err = client.New(config, client.Options{Scheme: hubcli.Scheme, Mapper: m.Hub.Mapper}); err != nil {
		return nil, err
	}
	m.Dial = func(ctx context.Context, cluster string) (migration.API, error) {
		there, err := memberConfig(ctx, m.Client, config, cluster, members)
		if err != nil {
			return migration.API{}, err
		}
		api, err := newAPI(there)
		if err != nil {
			return migration.API{}, Unreachable(cluster, there.Host, err)
		}
		return api, nil
	}
	m.Meaning, err = migration.Interpreter(cmd.Context(), m.Client)
	return m, err
}

// whitelist reads the file of the flag; - is standard input.
func (f *migrateFlags) whitelist(stdin io.Reader) (*migration.Whitelist, error) {
	var raw []byte
	var err error
	if f.file == "-" {
		raw, err = io.ReadAll(stdin)
	} else {
		raw, err = os.ReadFile(f.file)
	}
	if err != nil {
		return nil, err
	}
	w, err := migration.ParseWhitelist(raw)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.file, err)
	}
	return w, nil
}

// workloads returns the workloads in a file or in the arguments, with their batches.
func (m *migrator) workloads(cmd *cobra.Command, f *migrateFlags, args []string) ([]migration.Workload, error) {
	if f.file != "" {
		list, err := f.whitelist(cmd.InOrStdin())
		if err != nil {
			return nil, err
		}
		if !cmd.Flags().Changed("soak") {
			f.soak = list.Soak.Duration
		}
		return m.Expand(cmd.Context(), list, m.hub.NamespaceOrDefault())
	}
	w, err := m.resolve(args)
	if err != nil {
		return nil, err
	}
	w.Clusters, w.Acknowledged, w.Batch = f.clusters, f.acknowledge, 1
	return []migration.Workload{w}, nil
}

// resolve returns the workload in the arguments.
func (m *migrator) resolve(args []string) (migration.Workload, error) {
	kind, name := hubcli.ObjectOf(args)
	gvk, err := m.Hub.Mapper.KindFor(schema.ParseGroupResource(kind).WithVersion(""))
	if meta.IsNoMatchError(err) {
		return migration.Workload{}, fmt.Errorf("the hub does not know %q: check the name, or create its CustomResourceDefinition "+
			"on the hub first", kind)
	}
	if err != nil {
		return migration.Workload{}, fmt.Errorf("resolve %q: %w", kind, err)
	}
	w := migration.Workload{GVK: gvk, Namespace: m.hub.NamespaceOrDefault(), Name: name}
	return w, m.SetScope(&w)
}

func newMigratePlan(hub *hubcli.HubFlags) *cobra.Command {
	f := &migrateFlags{}
	cmd := &cobra.Command{
		Use:   "plan {-f FILE | KIND NAME --cluster CLUSTERS}",
		Short: "Show what a migration would write and change, and write nothing",
		Long: `Shows the batches, the template and overrides that would be created, what keeps workloads from being migrated, and
what would change in each cluster. Dry runs in the hub and in each cluster determine this. Nothing is written.

The exit code is 1 if a workload cannot be migrated, or pods would be restarted.`,
		Example: `  argosy migrate plan -f migration.yaml
  argosy migrate plan cloneset web -n shop --cluster eu,us -o yaml`,
		Args:              migrationArgs(f),
		ValidArgsFunction: hubcli.OneOfHub(hub),
	}
	f.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, list, err := startMigration(cmd, hub, f, args)
		if err != nil {
			return err
		}
		return m.showPlan(cmd.Context(), list, f.output)
	}
	return cmd
}

// check returns an error for flags that contradict each other or have a wrong value.
func (f *migrateFlags) check() error {
	switch {
	case f.file != "" && len(f.clusters)+len(f.acknowledge) > 0:
		return errors.New("--cluster and --acknowledge are for a single object: the file has clusters and acknowledge")
	case f.file == "" && len(f.clusters) == 0:
		return errors.New("name the clusters of the object with --cluster")
	case f.soak < 0:
		return errors.New("--soak: it is negative")
	}
	return errors.Join(migration.CheckClusters(f.clusters), migration.CheckAcknowledged(f.acknowledge))
}

// startMigration connects to the hub, and resolves the workloads.
func startMigration(cmd *cobra.Command, hub *hubcli.HubFlags, f *migrateFlags, args []string) (*migrator,
	[]migration.Workload, error) {
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	m, err := newMigrator(cmd, hub, &hubcli.MemberFlags{})
	if err != nil {
		return nil, nil, err
	}
	list, err := m.workloads(cmd, f, args)
	return m, list, err
}

func newMigrateIn(hub *hubcli.HubFlags) *cobra.Command {
	f := &migrateFlags{}
	var shadow, force bool
	var last int
	cmd := &cobra.Command{
		Use:   "in {-f FILE | KIND NAME --cluster CLUSTERS}",
		Short: "Bring workloads under the hub's management, one cluster after the other",
		Long: `Creates the template, the policy and the overrides of each workload, with all clusters suspended (Shadow). Then it
lets the hub write one cluster after the other (Own), and compares spec, revisions and pods before and after. If anything
differs, the cluster goes back to Shadow and the command stops.

A workload that cannot be migrated is skipped. The command stops at a workload whose pods would be restarted; earlier
ones stay migrated. Run it again to continue.`,
		Example: `  argosy migrate in cloneset web -n shop --cluster eu,us --shadow
  argosy migrate in cloneset web -n shop --cluster eu,us --soak 10m
  argosy migrate in -f migration.yaml --batch 1`,
		Args:              migrationArgs(f),
		ValidArgsFunction: hubcli.OneOfHub(hub),
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&shadow, "shadow", false, "stop in Shadow: create everything on the hub, and apply nothing")
	cmd.Flags().IntVar(&last, "batch", 0, "stop after this batch of the file (default: the last one)")
	cmd.Flags().DurationVar(&f.soak, "soak", 0, "how long the pods of a batch are watched before the next batch starts")
	cmd.Flags().BoolVar(&force, "force", false, "continue even if fields of the objects change, and pods are restarted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("batch") && last < 1 {
			return errors.New("--batch: the first batch is 1")
		}
		m, list, err := startMigration(cmd, hub, f, args)
		if err != nil {
			return err
		}
		m.Soak, m.Force = f.soak, force
		if f.output != "" {
			m.out = cmd.ErrOrStderr()
		}
		results, err := m.BringIn(cmd.Context(), list, shadow, last)
		return f.report(cmd, results, err)
	}
	return cmd
}

// report writes the results of a command for programs, and returns its error; after an interrupt that names the next
// step.
func (f *migrateFlags) report(cmd *cobra.Command, results any, err error) error {
	if err != nil && cmd.Context().Err() != nil {
		err = errors.New("interrupted: `argosy migrate status` shows the state, and the same command continues")
	}
	if f.output != "" {
		err = errors.Join(hubcli.WriteAs(cmd.OutOrStdout(), f.output, results), err)
	}
	return err
}

func newMigrateOut(hub *hubcli.HubFlags) *cobra.Command {
	f := &migrateFlags{}
	var all, shadow bool
	cmd := &cobra.Command{
		Use:   "out {-f FILE | KIND NAME | --all}",
		Short: "End the hub's management of workloads, which keep running",
		Long: `Ends the hub's management of workloads in some clusters or in all. Objects and pods stay as they are. The hub's labels,
annotations and field ownership are removed, so that kubectl, Helm, Flux or Argo CD can apply the objects without
conflicts. When the last cluster has left, the template, the policy and the overrides are deleted from the hub.

With --all, it takes out every workload that "argosy migrate status" lists. Without --namespace, it takes those of all
namespaces. It stops at the first workload that does not stay as it was.

With --shadow, the hub only stops writing: "argosy migrate in" continues from there.`,
		Example: `  argosy migrate out cloneset web -n shop
  argosy migrate out cloneset web -n shop --cluster us
  argosy migrate out -f migration.yaml --shadow
  argosy migrate out -f migration.yaml -o json
  argosy migrate out --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if !all {
				return migrationArgs(f)(cmd, args)
			}
			if f.file != "" || len(args) > 0 {
				return errors.New("--all takes out all workloads: name none, and no file")
			}
			return nil
		},
		ValidArgsFunction: hubcli.OneOfHub(hub),
	}
	cmd.Flags().StringVarP(&f.file, "filename", "f", "", "file with the workloads to take out; - for standard input")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "C", nil, "clusters to leave, comma-separated (default: all)")
	cmd.Flags().BoolVar(&all, "all", false, "take out all workloads that were migrated")
	cmd.Flags().BoolVar(&shadow, "shadow", false, "only stop writing: the hub keeps its objects")
	hubcli.OutputFlag(cmd, &f.output, "output format: json or yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := migration.CheckClusters(f.clusters); err != nil {
			return err
		}
		m, err := newMigrator(cmd, hub, &hubcli.MemberFlags{})
		if err != nil {
			return err
		}
		if f.output != "" {
			m.out = cmd.ErrOrStderr()
		}
		list, err := m.leaving(cmd, f, args, all, !shadow)
		if err != nil {
			return err
		}
		results, err := m.TakeOut(cmd.Context(), list, shadow)
		return f.report(cmd, results, err)
	}
	return cmd
}

// leaving returns the workloads to take out: all, or those in a file or in the arguments. With leftovers, all includes
// those whose template was deleted on the hub.
func (m *migrator) leaving(cmd *cobra.Command, f *migrateFlags, args []string,
	all, leftovers bool) (list []migration.Workload, err error) {
	switch {
	case all:
		list, err = m.Migrated(cmd.Context(), m.hub.Namespace, leftovers)
		if err == nil && len(list) == 0 {
			fmt.Fprintln(m.out, "No workload was migrated.")
		}
	case f.file != "":
		var wanted *migration.Whitelist
		if wanted, err = f.whitelist(cmd.InOrStdin()); err == nil {
			list, err = m.Expand(cmd.Context(), wanted, m.hub.NamespaceOrDefault())
		}
	default:
		list = make([]migration.Workload, 1)
		list[0], err = m.resolve(args)
	}
	if len(f.clusters) > 0 {
		for i := range list {
			list[i].Clusters = within(list[i].Clusters, f.clusters)
		}
		list = slices.DeleteFunc(list, func(w migration.Workload) bool { return len(w.Clusters) == 0 })
	}
	return list, err
}

// within returns those of clusters that are wanted. A workload without clusters may be in all.
func within(clusters, wanted []string) []string {
	if len(clusters) == 0 {
		return wanted
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(c string) bool { return !slices.Contains(wanted, c) })
}

func newMigrateStatus(hub *hubcli.HubFlags) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the workloads that were migrated, with their state in each cluster",
		Long: `Lists the workloads that were migrated, with their state in each cluster. Without --namespace, it lists all
namespaces. It also lists those whose template and policy were deleted on the hub while the hub still manages them in
clusters: the state is then that of the Works.`,
		Example: "  argosy migrate status\n  argosy migrate status -n shop -o json",
		Args:    hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := newMigrator(cmd, hub, &hubcli.MemberFlags{})
			if err != nil {
				return err
			}
			m.out = cmd.ErrOrStderr()
			all, err := m.Statuses(cmd.Context(), hub.Namespace)
			if err != nil {
				return err
			}
			if output != "" {
				return hubcli.WriteAs(cmd.OutOrStdout(), output, all)
			}
			return printMigrations(cmd.OutOrStdout(), all)
		},
	}
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml")
	return cmd
}

func printMigrations(out io.Writer, all []migration.Status) error {
	if len(all) == 0 {
		fmt.Fprintln(out, "No workload was migrated.")
		return nil
	}
	table := hubcli.TextTable("Object", "Cluster", "State", "Since", "Pods", "Reason")
	for _, s := range all {
		for _, name := range s.Names() {
			c := s.Clusters[name]
			pods := ""
			if c.Verified != nil {
				pods = fmt.Sprintf("%d unchanged", *c.Verified)
			}
			hubcli.AddRow(table, s.Object, name, string(c.State), c.Since, pods, c.Reason)
		}
	}
	return hubcli.PrintTable(out, table, printers.PrintOptions{})
}

// showPlan prints what a migration of the workloads would do.
func (m *migrator) showPlan(ctx context.Context, list []migration.Workload, output string) error {
	var items []*migration.Item
	refused := 0
	for _, w := range list {
		item, err := m.Plan(ctx, w)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // others are planned nevertheless
			item = &migration.Item{Object: w.String(), Batch: w.Batch, Conflicts: []migrate.Conflict{{Reason: err.Error()}}}
			for _, cluster := range w.Clusters {
				item.Clusters = append(item.Clusters, migration.Cluster{Name: cluster, State: "Unknown"})
			}
		}
		if len(item.Conflicts)+len(item.Disturbs()) > 0 {
			refused++
		}
		items = append(items, item)
	}
	var err error
	if output != "" {
		err = hubcli.WriteAs(m.out, output, items)
	} else {
		err = printMigrationPlan(m.out, items)
	}
	if err == nil && refused > 0 {
		err = fmt.Errorf("%d of %d workloads cannot be migrated as they are", refused, len(items))
	}
	return err
}

func printMigrationPlan(out io.Writer, items []*migration.Item) error {
	table := hubcli.TextTable("Batch", "Object", "Cluster", "State", "Replicas", "Result")
	for _, item := range items {
		for _, c := range item.Clusters {
			replicas := ""
			if c.Replicas > 0 {
				replicas = fmt.Sprint(c.Replicas)
			}
			if c.Autoscaler != "" {
				replicas += " (" + c.Autoscaler + ")"
			}
			result := "only labels and annotations of the hub"
			switch {
			case migration.IsManaged(c.State):
				result = "already migrated"
			case len(item.Conflicts) > 0:
				result = "conflict"
			case len(c.Disturbs) > 0:
				result = "pods would not stay unchanged"
			case len(c.Differences) > 0:
				result = fmt.Sprintf("%d fields would change", len(c.Differences))
			}
			hubcli.AddRow(table, fmt.Sprint(item.Batch), item.Object, c.Name, string(c.State), replicas, result)
		}
	}
	if err := hubcli.PrintTable(out, table, printers.PrintOptions{}); err != nil {
		return err
	}
	for _, item := range items {
		for _, line := range item.Details() {
			fmt.Fprintf(out, "%s: %s\n", item.Object, line)
		}
	}
	return nil
}
