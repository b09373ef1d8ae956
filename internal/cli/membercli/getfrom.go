package membercli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/liggitt/tabwriter"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// cachedFrom annotates objects with their cluster, as Karmada's search does.
const cachedFrom = "resource.karmada.io/cached-from-cluster"

// getFrom runs get in members, and perhaps on the hub. It prints one table with a column for the cluster, or one list
// of objects that are annotated with their cluster. kubectl runs once per place, and the results are joined.
func getFrom(cmd *cobra.Command, args []string, places []*place, streams genericiooptions.IOStreams) error {
	var found found
	g := &gathered{out: streams.Out, parts: make([][]part, len(places))}
	g.watching, _ = cmd.Flags().GetBool("watch")
	if only, _ := cmd.Flags().GetBool("watch-only"); only {
		g.watching = true
	}
	if raw, _ := cmd.Flags().GetString("raw"); raw != "" {
		return errors.New("--raw requests go to the hub; it serves the API of a member below /apis/cluster.karmada.io/v1alpha1/clusters/NAME/proxy")
	}
	messages := make([]bytes.Buffer, len(places))
	var asking sync.WaitGroup
	for i, at := range places {
		asking.Go(func() {
			err := at.explain(g.getFromPlace(cmd, args, at, i, &messages[i]))
			if err != nil && !at.lacks(err) && g.watching {
				fmt.Fprintln(streams.ErrOut, hubcli.NameRights(err)) // the other watches continue
			}
			found.note(at, err)
		})
	}
	asking.Wait()
	if err := g.print(); err != nil {
		return err
	}
	err := found.err()
	if err == nil && !g.wrote && len(messages) > 0 && !g.watching {
		_, _ = streams.ErrOut.Write(messages[0].Bytes()) // "nothing found", which is the same for all places
	}
	return err
}

// gathered has what kubectl would have printed for several places.
type gathered struct {
	out      io.Writer
	watching bool

	mu    sync.Mutex
	parts [][]part // by place
	// real creates kubectl's own printers. A watch uses one printer, so that there is one header.
	real  func(*meta.RESTMapping, *bool, bool, bool) (printers.ResourcePrinterFunc, error)
	live  printers.ResourcePrinterFunc
	tabs  *tabwriter.Writer
	human bool
	wrote bool
}

// part has the objects of one kind from one place, and how to print them.
type part struct {
	mapping             *meta.RESTMapping
	namespace, withKind bool
	obj                 runtime.Object
}

// getFromPlace runs kubectl for a place. said gets its messages for the user.
func (g *gathered) getFromPlace(cmd *cobra.Command, args []string, at *place, i int, messages io.Writer) error {
	if err := at.answers(cmd.Context()); err != nil {
		return err
	}
	o := get.NewGetOptions("argosy", genericiooptions.IOStreams{In: bytes.NewReader(nil), Out: io.Discard,
		ErrOut: messages})
	own := &cobra.Command{}
	o.PrintFlags.AddFlags(own)
	flags := own.Flags()
	flags.BoolVar(&o.Watch, "watch", false, "")
	flags.BoolVar(&o.WatchOnly, "watch-only", false, "")
	flags.BoolVar(&o.OutputWatchEvents, "output-watch-events", false, "")
	flags.BoolVar(&o.IgnoreNotFound, "ignore-not-found", false, "")
	flags.BoolVar(&o.AllNamespaces, "all-namespaces", false, "")
	flags.StringVar(&o.LabelSelector, "selector", "", "")
	flags.StringVar(&o.FieldSelector, "field-selector", "", "")
	flags.StringVar(&o.Subresource, "subresource", "", "")
	flags.Int64Var(&o.ChunkSize, "chunk-size", cmdutil.DefaultChunkSize, "")
	flags.StringSliceVar(&o.Filenames, "filename", nil, "")
	flags.StringVar(&o.Kustomize, "kustomize", "", "")
	flags.BoolVar(&o.Recursive, "recursive", false, "")
	if err := copyFlags(cmd.Flags(), flags); err != nil {
		return err
	}
	factory := cmdutil.NewFactory(at)
	if err := o.Complete(factory, cmd, args); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.real == nil {
		g.real, g.human = o.ToPrinter, o.IsHumanReadablePrinter
	}
	g.mu.Unlock()
	o.ToPrinter = func(mapping *meta.RESTMapping, show *bool, namespace, withKind bool) (printers.ResourcePrinterFunc,
		error) {
		return func(obj runtime.Object, _ io.Writer) error {
			if show != nil && !*show {
				return nil
			}
			return g.take(at, i, part{mapping, namespace, withKind, obj})
		}, nil
	}
	return o.Run(factory, args)
}

// take keeps a part, or prints it if it is of a watch.
func (g *gathered) take(at *place, i int, p part) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var err error
	if event, ok := p.obj.(*metav1.WatchEvent); ok {
		event.Object.Object, err = g.mark(at, p.mapping, event.Object.Object)
	} else {
		p.obj, err = g.mark(at, p.mapping, p.obj)
	}
	if err != nil {
		return err
	}
	if !g.watching {
		g.parts[i] = append(g.parts[i], p)
		return nil
	}
	if g.live == nil {
		if g.live, err = g.real(p.mapping, nil, p.namespace, p.withKind); err != nil {
			return err
		}
		g.tabs = printers.GetNewTabWriter(g.out) // it keeps the widths of columns
	}
	if err := g.live(p.obj, g.tabs); err != nil {
		return err
	}
	return g.tabs.Flush()
}

// mark adds the place to an object, to the items of a list, or to the rows of a table.
func (g *gathered) mark(at *place, mapping *meta.RESTMapping, obj runtime.Object) (runtime.Object, error) {
	if table, ok, err := tableOf(obj); ok || err != nil {
		if err == nil {
			// Pods have no adoption: only their workloads are managed.
			addColumns(table, at, mapping != nil && mapping.GroupVersionKind.GroupKind().String() != "Pod")
		}
		return table, err
	}
	if at.Cluster == "" {
		return obj, nil
	}
	if meta.IsListType(obj) {
		return obj, meta.EachListItem(obj, func(item runtime.Object) error { return annotate(item, at) })
	}
	return obj, annotate(obj, at)
}

func annotate(obj runtime.Object, at *place) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	fields.SetAnnotation(m, cachedFrom, at.Cluster)
	return nil
}

// tableOf returns the table that a server answered with, if it did.
func tableOf(obj runtime.Object) (*metav1.Table, bool, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u.GetKind() != "Table" || u.GroupVersionKind().Group != metav1.GroupName {
		return nil, false, nil
	}
	table := &metav1.Table{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, table); err != nil {
		return nil, false, err
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		if len(row.Object.Raw) == 0 {
			continue
		}
		var err error
		if row.Object.Object, err = runtime.Decode(unstructured.UnstructuredJSONScheme, row.Object.Raw); err != nil {
			return nil, false, err
		}
	}
	return table, true, nil
}

// addColumns inserts CLUSTER after the first column and, if adoption is true, ADOPTION at the end: whether the hub
// manages the object in the member. In a watch, only the first event of a table has the columns.
func addColumns(table *metav1.Table, at *place, adoption bool) {
	if len(table.ColumnDefinitions) > 0 {
		table.ColumnDefinitions = slices.Insert(table.ColumnDefinitions, 1,
			metav1.TableColumnDefinition{Name: "Cluster", Type: "string"})
	}
	if adoption && len(table.ColumnDefinitions) > 0 {
		table.ColumnDefinitions = append(table.ColumnDefinitions,
			metav1.TableColumnDefinition{Name: "Adoption", Type: "string"})
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		row.Cells = slices.Insert(row.Cells, min(1, len(row.Cells)), any(at.String()))
		if adoption {
			row.Cells = append(row.Cells, managed(row.Object.Object, at))
		}
	}
}

func managed(obj runtime.Object, at *place) string {
	if at.Cluster == "" {
		return "-"
	}
	if u, is := obj.(*unstructured.Unstructured); is {
		if _, managed := execute.WorkOf(u, at.Cluster); managed {
			return "Y"
		}
	}
	return "N"
}

// print prints the result: the tables of a kind as one, in the order of the places, or the objects as one list.
func (g *gathered) print() error {
	if g.watching || g.real == nil {
		return nil
	}
	if !g.human {
		return g.printObjects()
	}
	var kinds []part
	for _, parts := range g.parts {
		for _, p := range parts {
			table, ok := p.obj.(*metav1.Table)
			if !ok {
				return fmt.Errorf("a server returned no table for %s: use -o yaml", p.mapping.Resource.Resource)
			}
			if len(table.Rows) == 0 {
				continue
			}
			at := slices.IndexFunc(kinds, func(k part) bool {
				return k.mapping.Resource.GroupResource() == p.mapping.Resource.GroupResource() &&
					titles(k.obj.(*metav1.Table)) == titles(table)
			})
			if at < 0 {
				kinds = append(kinds, p)
				continue
			}
			k := kinds[at].obj.(*metav1.Table)
			k.Rows = append(k.Rows, table.Rows...)
		}
	}
	for i, k := range kinds {
		if i > 0 {
			fmt.Fprintln(g.out)
		}
		printer, err := g.real(k.mapping, nil, k.namespace, k.withKind)
		if err != nil {
			return err
		}
		w := printers.GetNewTabWriter(g.out)
		if err := printer(k.obj, w); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		g.wrote = true
	}
	return nil
}

func titles(t *metav1.Table) string {
	var names []string
	for _, c := range t.ColumnDefinitions {
		names = append(names, c.Name)
	}
	return strings.Join(names, "\t")
}

// printObjects prints a single object directly, and several as a List.
func (g *gathered) printObjects() error {
	all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List",
		"metadata": map[string]any{"resourceVersion": ""}}}
	listed := false
	for _, parts := range g.parts {
		for _, p := range parts {
			add := func(item runtime.Object) error {
				fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
				all.Items = append(all.Items, unstructured.Unstructured{Object: fields})
				return err
			}
			if !meta.IsListType(p.obj) {
				if err := add(p.obj); err != nil {
					return err
				}
				continue
			}
			listed = true
			if err := meta.EachListItem(p.obj, add); err != nil {
				return err
			}
		}
	}
	if len(all.Items) == 0 && !listed {
		return nil // no place serves it, which is reported elsewhere
	}
	g.wrote = true
	printer, err := g.real(nil, nil, false, false)
	if err != nil {
		return err
	}
	if len(all.Items) == 1 && !listed {
		return printer(&all.Items[0], g.out)
	}
	return printer(all, g.out)
}
