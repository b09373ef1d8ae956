package membercli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
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

	clusters                                        []string
	selector, fields, image, owner, filter, orderBy string
	olderThan, newerThan, output                    string
	ready, notReady, noHeaders, labels              bool
	limit                                           int
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
	f.StringSliceVarP(&s.clusters, "clusters", "C", nil, "search only in these clusters")
	f.StringVarP(&s.selector, "selector", "l", "", "only objects with these labels, such as app=web")
	f.StringVar(&s.fields, "field-selector", "", "only objects with these fields, such as spec.nodeName=node-1")
	f.StringVar(&s.image, "image", "", "only objects with this image, with or without registry and tag")
	f.BoolVar(&s.ready, "ready", false, "only objects that are ready")
	f.BoolVar(&s.notReady, "not-ready", false, "only objects that are not ready")
	f.StringVar(&s.owner, "owner", "", "only objects of this controller, as KIND/NAME, such as cloneset/web")
	f.StringVar(&s.olderThan, "older-than", "", "only objects of this age or older, such as 12h or 90d")
	f.StringVar(&s.newerThan, "newer-than", "", "only objects of this age or newer")
	f.StringVar(&s.filter, "filter", "", "only objects for which this CEL expression about `object` and `cluster` is true")
	f.StringVar(&s.orderBy, "order-by", "", "age (the oldest first), cluster, name or namespace; -age reverses it")
	f.IntVar(&s.limit, "limit", 500, "the maximum number of objects; 0 is all")
	f.StringVarP(&s.output, "output", "o", "", "output format: wide, name, json or yaml (default: a table)")
	f.BoolVar(&s.noHeaders, "no-headers", false, "print no header")
	f.BoolVar(&s.labels, "show-labels", false, "print the labels of the objects")
	return cmd
}

// params returns the parameters of the request.
func (s *searchFlags) params(mapper meta.RESTMapper) (url.Values, error) {
	if s.ready && s.notReady {
		return nil, errors.New("--ready and --not-ready cannot be used together")
	}
	if !slices.Contains([]string{"", "wide", "name", "json", "yaml"}, s.output) {
		return nil, fmt.Errorf("--output must be wide, name, json or yaml, not %q", s.output)
	}
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set(search.ParamClusters, strings.Join(s.clusters, ","))
	set("labelSelector", s.selector)
	set("fieldSelector", s.fields)
	set(search.ParamImage, s.image)
	set(search.ParamFilter, s.filter)
	set(search.ParamOrderBy, s.orderBy)
	if s.ready || s.notReady {
		set(search.ParamReady, strconv.FormatBool(s.ready))
	}
	if s.limit > 0 {
		set("limit", strconv.Itoa(s.limit))
	}
	for name, age := range map[string]string{search.ParamMinAge: s.olderThan, search.ParamMaxAge: s.newerThan} {
		if age == "" {
			continue
		}
		parsed, err := hubcli.Age(age)
		if err != nil {
			return nil, fmt.Errorf("--older-than and --newer-than: %w", err)
		}
		set(name, parsed.String())
	}
	if s.owner != "" {
		kind, name, ok := strings.Cut(s.owner, "/")
		if !ok || kind == "" || name == "" {
			return nil, fmt.Errorf("--owner %q is not KIND/NAME, such as cloneset/web", s.owner)
		}
		if gvr, err := resourceOf(mapper, kind); err == nil {
			if gvk, err := mapper.KindFor(gvr); err == nil {
				kind = gvk.Kind
			}
		}
		set(search.ParamOwner, kind+"/"+name)
	}
	return v, nil
}

// resourceOf returns the resource that a user names: as the hub knows it, or in the form RESOURCE.VERSION.GROUP.
func resourceOf(mapper meta.RESTMapper, name string) (schema.GroupVersionResource, error) {
	full, group := schema.ParseResourceArg(name)
	if full != nil {
		if gvr, err := mapper.ResourceFor(*full); err == nil {
			return gvr, nil
		}
	}
	gvr, err := mapper.ResourceFor(group.WithVersion(""))
	if meta.IsNoMatchError(err) && full != nil {
		return *full, nil // only members serve it
	}
	return gvr, err
}

func (s *searchFlags) run(ctx context.Context, name string) error {
	mapper, err := s.ToRESTMapper()
	if err != nil {
		return err
	}
	gvr, err := resourceOf(mapper, name)
	if err != nil {
		return err
	}
	params, err := s.params(mapper)
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
	path := search.CachePath + "/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		path = search.CachePath + "/api/" + gvr.Version
	}
	if s.Namespace != "" {
		path += "/namespaces/" + url.PathEscape(s.Namespace)
	}
	request := hub.RESTClient().Get().AbsPath(path + "/" + gvr.Resource)
	for name, values := range params {
		request.Param(name, values[0])
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
	if next != "" || s.orderBy != "" && n == s.limit {
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
