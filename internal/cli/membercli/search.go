package membercli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/search"
)

// searchFlags are the flags of a search.
type searchFlags struct {
	*hubcli.HubFlags
	streams genericiooptions.IOStreams

	question          search.Question
	output            string
	noHeaders, labels bool
}

// NewSearch searches objects of all members in the caches of the hub.
func NewSearch(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	s := &searchFlags{HubFlags: hub, streams: streams}
	cmd := &cobra.Command{
		Use:   "search RESOURCE",
		Short: "Search objects of all member clusters",
		Long: `Searches objects of all member clusters that you may read, in all namespaces unless --namespace is given.
The hub keeps the objects of a searched resource in memory for some minutes, or as long as a ResourceRegistry
selects it. So the first search may take seconds. Clusters that are left out because they do not respond are named.`,
		Example: `  argosy search pods --image nginx:1.28 --not-ready
  argosy search pods --owner cloneset/web -n shop -C eu,us
  argosy search deployments --older-than 90d --order-by age --limit 20
  argosy search pods --filter 'object.status.containerStatuses.exists(c, c.restartCount > 5)'`,
		Args:              hubcli.OneArg("the resource to search, such as pods"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			s.streams.Out, s.streams.ErrOut = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return s.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	s.question.Bind(f)
	f.StringVarP(&s.output, "output", "o", "", "output format: wide, name, json or yaml (default: a table)")
	f.BoolVar(&s.noHeaders, "no-headers", false, "print no header")
	f.BoolVar(&s.labels, "show-labels", false, "print the labels of the objects")
	return cmd
}

func (s *searchFlags) run(ctx context.Context, name string) error {
	if !slices.Contains([]string{"", "wide", "name", "json", "yaml"}, s.output) {
		return fmt.Errorf("--output must be wide, name, json or yaml, not %q", s.output)
	}
	mapper, err := s.ToRESTMapper()
	if err != nil {
		return err
	}
	config, err := s.ToRESTConfig()
	if err != nil {
		return err
	}
	hub, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	s.question.Resource, s.question.Namespace = name, s.Namespace
	request, gvr, err := s.question.Request(hub.RESTClient(), mapper)
	if err != nil {
		return err
	}
	table := s.output == "" || s.output == "wide"
	if table {
		request.SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	}
	answer := request.Do(ctx)
	if err := answer.Error(); err != nil { // that of Raw does not have the reason
		return err
	}
	raw, err := answer.Raw()
	if err != nil {
		return err
	}
	if table {
		return s.printTable(raw)
	}
	return s.print(raw, gvr)
}

// printTable prints the table of an answer, and how to see what it lacks.
func (s *searchFlags) printTable(raw []byte) error {
	table := &metav1.Table{}
	if err := json.Unmarshal(raw, table); err != nil {
		return fmt.Errorf("read the answer of the hub: %w", err)
	}
	if len(table.Rows) == 0 {
		fmt.Fprintln(s.streams.ErrOut, "No resources found")
		return nil
	}
	for i := range table.Rows {
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(table.Rows[i].Object.Raw, object); err != nil {
			return fmt.Errorf("read the answer of the hub: %w", err)
		}
		table.Rows[i].Object.Object = object
	}
	if err := hubcli.PrintTable(s.streams.Out, table, printers.PrintOptions{Wide: s.output == "wide",
		NoHeaders: s.noHeaders, WithNamespace: s.Namespace == "", ShowLabels: s.labels}); err != nil {
		return err
	}
	s.more(len(table.Rows), table.Continue)
	return nil
}

func (s *searchFlags) more(n int, next string) {
	if s.question.More(n, next) {
		fmt.Fprintf(s.streams.ErrOut, "There may be more than these %d objects: give a higher --limit, or 0 for all\n", n)
	}
}

// print prints an answer as names, JSON or YAML.
func (s *searchFlags) print(raw []byte, gvr schema.GroupVersionResource) error {
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("read the answer of the hub: %w", err)
	}
	if s.output == "name" {
		for i := range list.Items {
			fmt.Fprintf(s.streams.Out, "%s/%s\n", gvr.GroupResource(), hubcli.Harmless(list.Items[i].Name))
		}
		s.more(len(list.Items), list.Continue)
		return nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("read the answer of the hub: %w", err)
	}
	s.more(len(list.Items), list.Continue)
	return hubcli.WriteAs(s.streams.Out, s.output, value)
}
