package explaincli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/explain/simulate"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/why"
)

// fleetReader reads a fleet from a hub, page by page, and writes nothing.
type fleetReader struct {
	config *rest.Config
	client dynamic.Interface
	mapper meta.RESTMapper
	// ClusterScoped are the cluster-scoped kinds that were read.
	ClusterScoped []schema.GroupKind
	// missing are the rights that the user lacks.
	missing  []roles.Missing
	Warnings []string
}

func newFleetReader(hub *hubcli.HubFlags) (*fleetReader, error) {
	config, err := hub.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper, err := hub.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	return &fleetReader{config: config, client: client, mapper: mapper}, nil
}

// FleetReaderFor returns a reader with a client configuration of its own.
func FleetReaderFor(config *rest.Config) (*fleetReader, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	_, mapper, err := why.Connect(config)
	if err != nil {
		return nil, err
	}
	return &fleetReader{config: config, client: client, mapper: mapper}, nil
}

// steering are the kinds that decide where templates go, and where they are.
var steering = []schema.GroupKind{
	{Group: "cluster.karmada.io", Kind: "Cluster"},
	{Group: "policy.karmada.io", Kind: "PropagationPolicy"},
	{Group: "policy.karmada.io", Kind: "ClusterPropagationPolicy"},
	{Group: "policy.karmada.io", Kind: "OverridePolicy"}, {Group: "policy.karmada.io", Kind: "ClusterOverridePolicy"},
	{Group: "policy.karmada.io", Kind: "FederatedResourceQuota"},
	{Group: "work.karmada.io", Kind: "ResourceBinding"}, {Group: "work.karmada.io", Kind: "ClusterResourceBinding"},
	{Group: "config.karmada.io", Kind: "ResourceInterpreterCustomization"},
	{Group: "config.karmada.io", Kind: "ResourceInterpreterWebhookConfiguration"},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
}

// page is the page size of lists from the hub.
const page = 500

// Read returns the fleet of the hub: what steers, and the templates of the kinds that it or the caller names. Nothing
// secret is in it.
func (r *fleetReader) Read(ctx context.Context, also []schema.GroupKind) ([]simulate.Object, error) {
	var all []simulate.Object
	for _, gk := range steering {
		some, err := r.list(ctx, gk)
		if meta.IsNoMatchError(err) {
			return nil, hubcli.NotServed(r.config, "the kind "+gk.String(), err)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if len(r.missing) > 0 {
		return nil, fmt.Errorf("you may not list these kinds, which a simulation reads in all namespaces:\n  %s\n%s",
			strings.Join(lacked(r.missing), "\n  "), roles.How(r.missing))
	}
	kinds := append(simulate.Kinds(all), also...)
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	for _, gk := range slices.Compact(kinds) {
		if !propagate.Propagable(gk) || slices.Contains(steering, gk) {
			continue
		}
		some, err := r.list(ctx, gk)
		if meta.IsNoMatchError(err) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the hub does not serve %s: there are no templates of it", gk))
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if len(r.missing) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"templates that you may not list are simulated by their bindings alone: %s; "+
				"%s", strings.Join(lacked(r.missing), "; "), roles.How(r.missing)))
	}
	nodes, err := r.nodes(ctx, all)
	return append(all, nodes...), err
}

// lacked returns what a user may not list, a line for each API group.
func lacked(missing []roles.Missing) (lines []string) {
	resources := map[string][]string{}
	for _, m := range missing {
		group := cmp.Or(m.Group, "core")
		resources[group] = append(resources[group], m.Resource)
	}
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		lines = append(lines, group+": "+strings.Join(resources[group], ", "))
	}
	return lines
}

// recorded returns the settings of a hub as a document has them.
func recorded(set why.Scheduler) *simulate.Scheduler {
	s := &simulate.Scheduler{Name: set.Name, Plugins: set.Plugins.String(), KeepEmpty: set.KeepEmpty,
		QuotasOff: set.QuotasOff}
	if set.Failover != (failover.Options{}) {
		s.Failover = &set.Failover
	}
	return s
}

// nodes returns documents with the facts that the hub's scheduler uses: its configuration, and the nodes of each
// cluster.
func (r *fleetReader) nodes(ctx context.Context, all []simulate.Object) ([]simulate.Object, error) {
	var placed []capacity.Workload
	for _, o := range all {
		if o.GroupVersionKind().Group != workv1alpha2.GroupVersion.Group {
			continue
		}
		w := capacity.Workload{}
		for field, into := range map[string]*string{"namespace": &w.Namespace, "kind": &w.Kind, "name": &w.Name} {
			*into, _, _ = unstructured.NestedString(o.Object, "spec", "resource", field)
		}
		placed = append(placed, w)
	}
	apart := capacity.PodsOf(placed)

	var documents []simulate.Object
	add := func(s *simulate.Scheduler, members ...simulate.DocumentCluster) error {
		u, err := simulate.DocumentOf(s, members...)
		if err == nil {
			documents = append(documents, simulate.Object{Unstructured: u, Source: "hub"})
		}
		return err
	}
	if err := add(recorded(why.SchedulerOf(ctx, r.config))); err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.GroupVersionKind().GroupKind() != steering[0] {
			continue
		}
		record, err := why.NodesOf(ctx, r.config, o.GetName())
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
			r.Warnings = append(r.Warnings, fmt.Sprintf(
				"nodes are unknown, so the resource summaries of the clusters are used: %s",
				cmp.Or(roles.Denied(err.Error()), err.Error())))
			break
		}
		if err != nil {
			return nil, fmt.Errorf("ask the hub for the nodes of cluster %q: %w", o.GetName(), err)
		}
		if record == nil {
			continue
		}
		if err := add(nil, simulate.DocumentCluster{Name: o.GetName(), Record: record.Summed(apart)}); err != nil {
			return nil, err
		}
	}
	return documents, nil
}

// list returns all objects of a kind as they are recorded, sorted by namespace and name.
func (r *fleetReader) list(ctx context.Context, gk schema.GroupKind) ([]simulate.Object, error) {
	mapping, err := r.mapper.RESTMapping(gk)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		r.ClusterScoped = append(r.ClusterScoped, gk)
	}
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
		return r.client.Resource(mapping.Resource).List(ctx, o)
	})
	p.PageSize = page
	var all []simulate.Object
	err = p.EachListItem(ctx, metav1.ListOptions{}, func(obj apiruntime.Object) error {
		u := obj.(*unstructured.Unstructured)
		if !slices.Contains(steering, gk) && propagate.Excluded(match.TemplateOf(u)) {
			return nil
		}
		all = append(all, simulate.Object{Unstructured: simulate.Recorded(u), Source: "hub"})
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil, nil // its definition and objects were deleted in the meantime
	}
	if lacks := why.MissingOf(err, "list", ""); lacks != nil {
		r.missing = append(r.missing, *lacks) // to name all together
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gk, err)
	}
	slices.SortFunc(all, func(a, b simulate.Object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return all, nil
}

// parseKinds finds the kinds that a user named as plurals, short names or kinds, with a group or without.
func (r *fleetReader) parseKinds(names []string) (kinds []schema.GroupKind, err error) {
	var errs []error
	for _, name := range names {
		gvk, err := r.mapper.KindFor(schema.ParseGroupResource(name).WithVersion(""))
		if err != nil {
			errs = append(errs, fmt.Errorf("--kinds %s: %w", name, err))
			continue
		}
		kinds = append(kinds, gvk.GroupKind())
	}
	return kinds, errors.Join(errs...)
}

// WriteObjects writes a stream of documents: as YAML, or as one line of JSON each, which is YAML too.
func WriteObjects(out io.Writer, objects []simulate.Object, asJSON bool) error {
	w := bufio.NewWriter(out)
	for i, o := range objects {
		var text []byte
		var err error
		if asJSON {
			text, err = o.MarshalJSON()
			text = []byte(hubcli.EscapeJSON(string(text)))
		} else {
			text, err = hubcli.YAML(o.Object)
		}
		if err != nil {
			return fmt.Errorf("write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if i > 0 {
			_, _ = w.WriteString("---\n") // Flush returns the error
		}
		_, _ = w.Write(append(bytes.TrimRight(text, "\n"), '\n'))
	}
	return w.Flush()
}
