package membercli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/scope"
)

// Orphan is an object in a member with the labels of this hub and no Work on the hub.
type Orphan struct {
	Cluster    string    `json:"cluster"`
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	// Work is the name of the Work in the object's annotation.
	Work string `json:"work"`
	// Former is the name under which the cluster was joined when the hub wrote the object, if it is not Cluster.
	Former string `json:"former,omitempty"`

	Resource schema.GroupVersionResource
}

// space returns the namespace of its Work.
func (o *Orphan) space() string { return names.ExecutionSpace(cmp.Or(o.Former, o.Cluster)) }

func (o *Orphan) String() string {
	return o.Object() + " in cluster " + o.Cluster
}

// Object returns the orphan without its cluster, such as "Deployment shop/web".
func (o *Orphan) Object() string {
	return text.Object(o.Kind, o.Namespace, o.Name)
}

// DescribeOrphans returns "3 objects of this hub without a Work, such as Deployment shop/web"; empty for none.
func DescribeOrphans(all []Orphan) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of this hub without a Work, such as %s", text.Count(len(all), "object"), all[0].Object())
}

const (
	// PageSize bounds one page of a list, askedAtOnce the kinds that are listed in parallel in a member.
	PageSize    = 500
	askedAtOnce = 4
)

// transient are kinds that are never templates and of which members have many objects.
var transient = map[schema.GroupResource]bool{{Resource: "events"}: true,
	{Group: "events.k8s.io", Resource: "events"}:       true,
	{Group: "coordination.k8s.io", Resource: "leases"}: true, {Resource: "componentstatuses"}: true,
	{Group: "metrics.k8s.io", Resource: "pods"}: true}

// FindOrphans lists the metadata of objects with the labels of the hub in members, and returns those without a Work. An
// error names the clusters that could not be listed completely; the returned orphans are correct anyway.
func FindOrphans(ctx context.Context, hub *rest.Config, clusterNames []string) ([]Orphan, error) {
	var mu sync.Mutex
	var all []Orphan
	var failed []error
	var asking sync.WaitGroup
	for _, cluster := range clusterNames {
		asking.Go(func() {
			var found []Orphan
			err := hubcli.Answers(ctx, hub, cluster)
			if err == nil {
				found, err = FindClusterOrphans(ctx, hub, proxy.Config(hub, cluster), cluster)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
			if err != nil {
				failed = append(failed, fmt.Errorf("cluster %q: %w", cluster, err))
			}
		})
	}
	asking.Wait()
	slices.SortFunc(all, func(a, b Orphan) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return all, errors.Join(failed...)
}

// FindClusterOrphans returns the orphans of one cluster, which through reaches.
func FindClusterOrphans(ctx context.Context, hub, through *rest.Config, cluster string) ([]Orphan, error) {
	through = rest.CopyConfig(through)
	through.QPS, through.WarningHandler = -1, rest.NoWarnings{} // deprecated kinds are no choice of the user
	d, err := discovery.NewDiscoveryClientForConfig(through)
	if err != nil {
		return nil, err
	}
	lists, failed := d.ServerPreferredResources() // lists has all kinds that could be read, despite an error
	if lists == nil && failed != nil {
		return nil, failed
	}
	members, err := metadata.NewForConfig(through)
	if err != nil {
		return nil, err
	}

	// 1. The objects with labels of the hub. Read Works afterwards: a new object has its Work first.
	var resources []listed
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") ||
				transient[schema.GroupResource{Group: gv.Group, Resource: r.Name}] {
				continue
			}
			resources = append(resources, listed{gv.WithResource(r.Name), r.Kind})
		}
	}
	own, err := metadata.NewForConfig(hub)
	if err != nil {
		return nil, err
	}
	self := execute.HubID("") // who may not read it sees no objects from when the cluster had another name
	if system, err := own.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem,
		metav1.GetOptions{}); err == nil {
		self = execute.HubID(system.UID)
	}
	marked, err := markedIn(ctx, members, self, cluster, resources)
	failed = errors.Join(failed, err)

	// 2. What of that has no Work.
	alone, notes, err := withoutWork(ctx, own, marked)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		if hub.WarningHandler != nil {
			hub.WarningHandler.HandleWarningHeader(299, "", fmt.Sprintf("cluster %q: %s", cluster, note))
		}
	}
	if alone = withoutEndedRuns(ctx, hub, through, alone); len(alone) == 0 {
		return nil, failed
	}

	// 3. Read the candidates again. A Work is deleted after its object, so objects of deleted Works no longer exist.
	resources = nil
	for _, o := range alone {
		if r := (listed{o.Resource, o.Kind}); !slices.Contains(resources, r) {
			resources = append(resources, r)
		}
	}
	still, err := markedIn(ctx, members, self, cluster, resources)
	there := map[types.UID]bool{}
	for _, o := range still {
		there[o.UID] = true
	}
	return slices.DeleteFunc(alone, func(o Orphan) bool { return !there[o.UID] }), errors.Join(failed, err)
}

// withoutWork returns the marked objects that have no Work. Users of the member may write the former names of the
// cluster there. Objects of those whose Works are unknown are left out, with a note.
func withoutWork(ctx context.Context, hub metadata.Interface, marked []Orphan) (alone []Orphan, notes []string,
	err error) {
	const mostFormer = 10
	former, works := 0, map[string]map[string]bool{} // nil for those that are unknown
	slices.SortFunc(marked, func(a, b Orphan) int { return strings.Compare(a.Former, b.Former) })
	for _, o := range marked {
		if _, read := works[o.space()]; read {
			continue
		}
		known := map[string]bool{}
		if o.Former != "" {
			if former++; former > mostFormer {
				works[o.space()] = nil
				continue
			}
		}
		err := eachPage(ctx, hub.Resource(workv1alpha1.GroupVersion.WithResource("works")).Namespace(o.space()), "",
			func(m *metav1.PartialObjectMetadata) { known[m.Name] = true })
		switch {
		case o.Former != "" && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)):
			known = nil
			notes = append(notes, fmt.Sprintf("objects of its former name %s are left out: list its Works: %v", o.Former, err))
		case err != nil: // without them everything would look like an orphan
			return nil, nil, fmt.Errorf("list its works: %w", err)
		}
		works[o.space()] = known
	}
	if former > mostFormer {
		notes = append(notes, fmt.Sprintf("objects of %d former names are left out: a cluster may have %d",
			former-mostFormer, mostFormer))
	}
	return slices.DeleteFunc(marked, func(o Orphan) bool {
		known := works[o.space()]
		return known == nil || known[o.Work]
	}), notes, nil
}

// withoutEndedRuns leaves out the objects of runs that have ended, and that the hub still knows. through reaches the
// cluster. What cannot be read stays.
func withoutEndedRuns(ctx context.Context, hub, through *rest.Config, alone []Orphan) []Orphan {
	runs := func(o Orphan) bool {
		return interpret.RunsOnce(schema.GroupKind{Group: o.Resource.Group, Kind: o.Kind})
	}
	if !slices.ContainsFunc(alone, runs) {
		return alone
	}
	own, err := client.New(hub, client.Options{Scheme: hubcli.Scheme})
	members, failed := dynamic.NewForConfig(through)
	if err != nil || failed != nil {
		return alone
	}
	ended := make([]bool, len(alone))
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for i, o := range alone {
		if !runs(o) {
			continue
		}
		asking.Go(func() error {
			there, err := members.Resource(o.Resource).Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
			if err != nil {
				return nil
			}
			b, _, err := scope.BindingFor(ctx, own, there.GroupVersionKind().GroupKind(), o.Namespace, o.Name)
			ended[i] = err == nil && dispatch.EndedThere(b, there)
			return nil
		})
	}
	_ = asking.Wait()
	var rest []Orphan
	for i, o := range alone {
		if !ended[i] {
			rest = append(rest, o)
		}
	}
	return rest
}

// listed is a resource that a member serves, with its kind.
type listed struct {
	schema.GroupVersionResource
	kind string
}

// markedIn returns the objects of some resources that are marked as the hub's in a member. An error names what could
// not be listed.
func markedIn(ctx context.Context, members metadata.Interface, self execute.HubID, cluster string,
	resources []listed) ([]Orphan, error) {
	marked, failed := make([][]Orphan, len(resources)), make([]error, len(resources))
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for i, r := range resources {
		asking.Go(func() (err error) {
			if marked[i], err = markedOf(ctx, members, r, self, cluster); err != nil {
				failed[i] = fmt.Errorf("list %s: %w", r.Resource, err)
			}
			return nil
		})
	}
	_ = asking.Wait()
	return slices.Concat(marked...), errors.Join(failed...)
}

func markedOf(ctx context.Context, c metadata.Interface, r listed, self execute.HubID,
	cluster string) ([]Orphan, error) {
	var found []Orphan
	err := eachPage(ctx, c.Resource(r.GroupVersionResource), workv1alpha2.ManagedLabel+"=true",
		func(m *metav1.PartialObjectMetadata) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetLabels(m.Labels)
			u.SetAnnotations(m.Annotations)
			u.SetOwnerReferences(m.OwnerReferences)
			work, ok := execute.WorkOf(u, cluster)
			former := ""
			if !ok {
				former, work = self.FormerCluster(u, cluster)
			}
			if ok || former != "" {
				found = append(found, Orphan{Cluster: cluster, APIVersion: r.GroupVersion().String(), Kind: r.kind,
					Namespace: m.Namespace, Name: m.Name,
					UID: m.UID, Work: work.Name, Former: former, Resource: r.GroupVersionResource})
			}
		})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return found, nil // the kind was removed, or has no objects
	}
	return found, err
}

func eachPage(ctx context.Context, r metadata.ResourceInterface, selector string,
	f func(*metav1.PartialObjectMetadata)) error {
	for o := (metav1.ListOptions{LabelSelector: selector, Limit: PageSize}); ; {
		page, err := r.List(ctx, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			f(&page.Items[i])
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}

// orphanFlags choose orphans.
type orphanFlags struct {
	clusters []string
	// names restricts what is listed; empty for all.
	names []string
}

func (f *orphanFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.clusters, "clusters", "C", nil, "clusters to look in (default: all)")
}

// find returns the orphans of the namespace if one is given, and of a kind and name.
func (f *orphanFlags) find(ctx context.Context, hub *hubcli.HubFlags, kind, name string) ([]Orphan, error) {
	config, err := hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: hubcli.Scheme})
	if err != nil {
		return nil, err
	}
	fleet, err := hubcli.Clusters(ctx, c, f.clusters, "")
	if err != nil {
		return nil, err
	}
	var asked []string
	for i := range fleet {
		if fleet[i].DeletionTimestamp == nil {
			asked = append(asked, fleet[i].Name)
		}
	}
	all, err := FindOrphans(ctx, config, asked)
	return slices.DeleteFunc(all, func(o Orphan) bool {
		return hub.Namespace != "" && o.Namespace != hub.Namespace || name != "" && o.Name != name || kind != "" &&
			!IsKind(kind, o)
	}), err
}

// IsKind reports whether a user who wrote kind, plural or kind.group means this one.
func IsKind(text string, o Orphan) bool {
	text, group, qualified := strings.Cut(strings.ToLower(text), ".")
	return (text == strings.ToLower(o.Kind) || text == o.Resource.Resource) && (!qualified || group == o.Resource.Group)
}

func NewOrphans(hub *hubcli.HubFlags) *cobra.Command {
	flags, output := &orphanFlags{}, ""
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "List orphans: objects in clusters with this hub's labels that the hub does not know",
		Long: `Lists the objects in member clusters that carry this hub's labels and have no Work, such as those created after the backup that the hub
was restored from. The hub does not change them. "argosy adopt" creates templates from them, "argosy orphans delete" deletes them.`,
		Example: `  argosy get orphans
  argosy orphans -C eu -o json
  argosy adopt deployment web -n shop --cluster eu
  argosy orphans delete deployment web -n shop --yes
  argosy orphans delete --all -n shop --yes`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.print(cmd, hub, output) },
	}
	flags.bind(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json or yaml")
	cmd.AddCommand(newOrphansDelete(hub))
	return cmd
}

func (f *orphanFlags) print(cmd *cobra.Command, hub *hubcli.HubFlags, output string) error {
	if err := hubcli.CheckOutput(output); err != nil {
		return err
	}
	all, err := f.find(cmd.Context(), hub, "", "")
	all = slices.DeleteFunc(all, func(o Orphan) bool { return len(f.names) > 0 && !slices.Contains(f.names, o.Name) })
	switch {
	case output != "":
		return errors.Join(hubcli.WriteAs(cmd.OutOrStdout(), output, map[string]any{"orphans": append([]Orphan{},
			all...)}), err)
	case len(all) == 0 && err == nil:
		fmt.Fprintln(cmd.ErrOrStderr(), "No orphans found")
		return nil
	}
	return errors.Join(printOrphans(cmd.OutOrStdout(), all), err)
}

func printOrphans(out io.Writer, all []Orphan) error {
	table := hubcli.TextTable("Cluster", "Namespace", "Kind", "Name")
	for _, o := range all {
		hubcli.AddRow(table, o.Cluster, hubcli.OrNone(o.Namespace), o.Kind, o.Name)
	}
	return hubcli.PrintTable(out, table, printers.PrintOptions{})
}

func newOrphansDelete(hub *hubcli.HubFlags) *cobra.Command {
	flags, all, yes := &orphanFlags{}, false, false
	cmd := &cobra.Command{
		Use:   "delete [KIND NAME]",
		Short: "Delete orphans in their clusters",
		Long: `Deletes orphans in their clusters: those of a kind and name, or with --all those of a namespace or of the whole fleet. Without --yes it
only lists what would be deleted. Each object is checked again before it is deleted, and kept if the hub manages it in the meantime or
another object has its name. Namespaces and CustomResourceDefinitions are deleted only by name, because deleting them also deletes all
objects in the namespace or of the kind.`,
		Example: "  argosy orphans delete deployment web -n shop -C eu --yes\n  argosy orphans delete --all -n shop",
		Args:    hubcli.OptionalObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name := "", ""
			switch {
			case all && len(args) == 0:
			case !all && len(args) > 0:
				if kind, name = hubcli.ObjectOf(args); name == "" {
					return errors.New("name the object, as in `argosy orphans delete deployment web -n shop`, or give --all")
				}
			default:
				return errors.New("name an object, or give --all")
			}
			found, err := flags.find(cmd.Context(), hub, kind, name)
			left := 0
			if all {
				found, left = withoutParents(found)
			}
			if err != nil {
				return err
			}
			switch {
			case len(found) == 0 && left > 0:
				return fmt.Errorf("all %d orphans are namespaces and CustomResourceDefinitions, which contain other objects: name each one to delete", left)
			case len(found) == 0 && all:
				fmt.Fprintln(cmd.ErrOrStderr(), "No orphans found")
				return nil
			case len(found) == 0:
				return errors.New("there is no such orphan")
			case left > 0:
				fmt.Fprintf(cmd.ErrOrStderr(), "%d namespaces and CustomResourceDefinitions are skipped, since they contain other objects: name each one to delete\n", left)
			}
			if !yes {
				if err := printOrphans(cmd.OutOrStdout(), found); err != nil {
					return err
				}
				return fmt.Errorf("%s would be deleted in their clusters: use --yes to delete them",
					text.Count(len(found), "object"))
			}
			config, err := hub.ToRESTConfig()
			if err != nil {
				return err
			}
			for i := range found {
				if err := found[i].delete(cmd.Context(), config); err != nil {
					return fmt.Errorf("delete %s: %w", &found[i], err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is deleted\n", &found[i])
			}
			return nil
		},
	}
	flags.bind(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "delete all orphans, or with -n those of one namespace")
	cmd.Flags().BoolVar(&yes, "yes", false, "delete; without this flag the orphans are only listed")
	return cmd
}

// withoutParents returns the orphans that take no others along when they are deleted, and how many do.
func withoutParents(all []Orphan) (rest []Orphan, left int) {
	rest = slices.DeleteFunc(slices.Clone(all), func(o Orphan) bool {
		return execute.TakesAlong(schema.GroupKind{Group: o.Resource.Group, Kind: o.Kind})
	})
	return rest, len(all) - len(rest)
}

func (o *Orphan) delete(ctx context.Context, hub *rest.Config) error {
	own, err := metadata.NewForConfig(hub)
	if err != nil {
		return err
	}
	if len(rest.IsValidPathSegmentName(o.Work)) == 0 { // no Work has another name, which would be another path of the hub
		_, err = own.Resource(workv1alpha1.GroupVersion.WithResource("works")).Namespace(o.space()).Get(ctx, o.Work,
			metav1.GetOptions{})
		if err == nil {
			return errors.New("the hub manages it now: delete its template")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	there, err := metadata.NewForConfig(proxy.Config(hub, o.Cluster))
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = there.Resource(o.Resource).Namespace(o.Namespace).Delete(ctx, o.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}, PropagationPolicy: &background})
	return client.IgnoreNotFound(err)
}
