// Package membercli has the verbs that read members through the hub.
package membercli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/attach"
	kubectldescribe "k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/exec"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

// StdStreams are the streams of kubectl's verbs.
var StdStreams = genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}

// place is the hub, or a member through the hub's proxy. Like HubFlags it is the client factory of kubectl's verbs.
type place struct {
	*hubcli.HubFlags
	// Cluster is empty for the hub.
	Cluster string
}

// ToRESTConfig returns the configuration of a client of the place.
func (p *place) ToRESTConfig() (*rest.Config, error) {
	config, err := p.HubFlags.ToRESTConfig()
	if p.Cluster == "" && errors.Is(err, hubcli.ErrPlainCluster) {
		return p.Locate() // like karmadactl, which uses the member's own kubeconfig
	}
	if err != nil || p.Cluster == "" {
		return config, err
	}
	return proxy.Config(config, p.Cluster), nil
}

// ToDiscoveryClient reads the kinds of the place once.
func (p *place) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return hubcli.DiscoverOnce(p.ToRESTConfig())
}

// ToRESTMapper understands plurals, short names and kinds of the place.
func (p *place) ToRESTMapper() (meta.RESTMapper, error) {
	mapper, err := hubcli.MapperOf(p.ToDiscoveryClient())
	if err != nil {
		return nil, err
	}
	return placeMapper{mapper}, nil
}

// placeMapper returns a typed error for a kind that the place does not serve. kubectl turns the mapper's own error into
// text.
type placeMapper struct{ meta.RESTMapper }

func (m placeMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(gk, versions...)
	if meta.IsNoMatchError(err) {
		return nil, &notServedError{gk}
	}
	return mapping, err
}

// notServedError means that a place does not serve a kind. kubectl's own error has only the plural that the user typed.
type notServedError struct{ kind schema.GroupKind }

func (e *notServedError) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", e.kind.String())
}

// answers returns why requests to a member would fail. kubectl reads the kinds first and does not report the reason.
func (p *place) answers(ctx context.Context) error {
	if p.Cluster == "" {
		return nil
	}
	config, err := p.HubFlags.ToRESTConfig()
	if err != nil {
		return err
	}
	return hubcli.Answers(ctx, config, p.Cluster)
}

// String returns the name of the place in a table.
func (p *place) String() string {
	if p.Cluster == "" {
		return "Karmada"
	}
	return p.Cluster
}

// ScopeFlags select the places of a verb: the hub, members or, for some verbs, both.
type ScopeFlags struct {
	scope    string
	Clusters []string
	// all: a separate flag selected all clusters.
	all bool
}

const (
	ScopeHub     = "karmada"
	ScopeMembers = "members"
	ScopeAll     = "all"
)

// Bind also accepts --cluster for --clusters and the reverse, and --labels for --selector, because karmadactl's verbs
// differ in them.
func (s *ScopeFlags) Bind(cmd *cobra.Command, scopes ...string) {
	usage := "member clusters, comma-separated (default: all)"
	switch {
	case len(scopes) > 0 && slices.Contains(scopes, ScopeAll):
		usage = "member clusters, comma-separated (default: the hub, or all members with -s members)"
	case len(scopes) > 0:
		usage = "member cluster (default: the hub, with -s karmada)"
	}
	if len(scopes) > 0 {
		cmd.Flags().StringVarP(&s.scope, "operation-scope", "s", "", "control planes to query: "+strings.Join(scopes, ", ")+
			"; karmada is the hub (default: members if --cluster is given, otherwise karmada)")
	}
	cmd.Flags().StringSliceVarP(&s.Clusters, "cluster", "C", nil, usage)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "clusters":
			name = "cluster"
		case "labels":
			name = "selector"
		}
		return pflag.NormalizedName(name)
	})
}

// Places returns the selected places: the hub first, then members by name, or in the order of the flag. members is the
// default scope.
func (s *ScopeFlags) Places(ctx context.Context, hub *hubcli.HubFlags, members bool) ([]*place, error) {
	scope := s.scope
	switch {
	case s.all && len(s.Clusters) > 0:
		return nil, errors.New("--all-clusters and --cluster cannot be used together")
	case scope == ScopeHub && len(s.Clusters) > 0:
		return nil, errors.New("--operation-scope=karmada and --cluster cannot be used together: karmada is the hub")
	case scope == "" && (members || len(s.Clusters) > 0):
		scope = ScopeMembers
	case scope == "":
		scope = ScopeHub
	}
	var out []*place
	switch scope {
	case ScopeHub:
		return []*place{{HubFlags: hub}}, nil
	case ScopeAll:
		out = append(out, &place{HubFlags: hub})
	case ScopeMembers:
	default:
		return nil, fmt.Errorf("--operation-scope must be karmada, members or all, not %q", scope)
	}
	c, err := hub.Client()
	if err != nil {
		return nil, err
	}
	list, err := hubcli.Clusters(ctx, c, nil, "")
	// Who names a cluster need not be allowed to list them.
	if err != nil && (len(s.Clusters) == 0 || !apierrors.IsForbidden(err)) {
		return nil, fmt.Errorf("list the clusters of the hub: %w", err)
	}
	var fleet []string
	for i := range list {
		fleet = append(fleet, list[i].Name)
	}
	slices.Sort(fleet)
	names := s.Clusters
	if len(names) == 0 {
		names = fleet
	}
	if len(names) == 0 && scope == ScopeMembers {
		return nil, errors.New("the fleet has no clusters: join one with `argosy join`")
	}
	for _, name := range names {
		if err == nil && !slices.Contains(fleet, name) {
			return nil, fmt.Errorf("there is no cluster %q: the fleet has %s", name, hubcli.OrNone(strings.Join(fleet, ", ")))
		}
		out = append(out, &place{HubFlags: hub, Cluster: name})
	}
	return out, nil
}

// onePlace returns the one place that a verb is about.
func (s *ScopeFlags) onePlace(ctx context.Context, hub *hubcli.HubFlags) (*place, error) {
	switch {
	case len(s.Clusters) > 1:
		return nil, fmt.Errorf("name one cluster with --cluster, not %s", strings.Join(s.Clusters, ", "))
	case len(s.Clusters) == 0 && s.scope != ScopeHub:
		return nil, errors.New("name the cluster with --cluster: pods run in members; `argosy get pods -s members` lists them with their clusters")
	}
	if len(s.Clusters) == 0 {
		return &place{HubFlags: hub}, nil
	}
	places, err := s.Places(ctx, hub, true)
	if err != nil {
		return nil, err
	}
	return places[len(places)-1], nil
}

// hubOrMember returns the hub, or the one member that the flags name.
func (s *ScopeFlags) hubOrMember(ctx context.Context, hub *hubcli.HubFlags) (*place, error) {
	switch {
	case len(s.Clusters) > 1:
		return nil, fmt.Errorf("name one cluster with --cluster, not %s", strings.Join(s.Clusters, ", "))
	case s.scope == ScopeAll:
		return nil, fmt.Errorf("--operation-scope must be karmada or members, not %q", s.scope)
	case len(s.Clusters) == 0 && s.scope == ScopeMembers:
		return nil, errors.New("name the cluster with --cluster: members can serve different APIs")
	}
	places, err := s.Places(ctx, hub, false)
	if err != nil {
		return nil, err
	}
	return places[len(places)-1], nil
}

// NewExec, NewAttach and NewDescribe are kubectl's, for members. The first two take their client configuration as
// kubectl's own factory completes it, which NewMatchVersionFlags does.
func NewExec(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	in := &place{HubFlags: hub}
	cmd := exec.NewCmdExec(cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(in)), streams)
	cmd.Example = `  argosy exec web-1 -n shop -C eu -- date
  argosy exec deploy/web -n shop -C eu -it -- sh`
	return inOne(cmd, hub, in)
}

func NewAttach(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	in := &place{HubFlags: hub}
	cmd := attach.NewCmdAttach(cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(in)), streams)
	cmd.Example = "  argosy attach web-1 -n shop -C eu -it"
	return inOne(cmd, hub, in)
}

// inOne runs a verb of kubectl for pods in the one named cluster.
func inOne(cmd *cobra.Command, hub *hubcli.HubFlags, in *place) *cobra.Command {
	cmd.ValidArgsFunction = hubcli.KubectlCompletion(hub, completion.PodResourceNameCompletionFunc)
	return inPlace(cmd, hub, in, (*ScopeFlags).onePlace)
}

// inPlace runs a verb of kubectl in the place that flags choose.
func inPlace(cmd *cobra.Command, hub *hubcli.HubFlags, in *place,
	choose func(*ScopeFlags, context.Context, *hubcli.HubFlags) (*place, error)) *cobra.Command {
	where := &ScopeFlags{}
	where.Bind(cmd, ScopeHub, ScopeMembers)
	kubectl := cmd.Run
	cmd.Run = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := choose(where, cmd.Context(), hub)
		if err != nil {
			return err
		}
		if err := at.answers(cmd.Context()); err != nil {
			return err
		}
		*in = *at
		return at.explain(hubcli.Fatal(func() { kubectl(cmd, args) }))
	}
	return cmd
}

func NewDescribe(hub *hubcli.HubFlags, streams genericiooptions.IOStreams) *cobra.Command {
	in, where := &place{HubFlags: hub}, &ScopeFlags{}
	out := &bytes.Buffer{}
	shown := &hubcli.Painter{Out: streams.Out} // kubectl prints texts of members as they are
	to := genericiooptions.IOStreams{In: streams.In, Out: out, ErrOut: &hubcli.Painter{Out: streams.ErrOut}}
	cmd := kubectldescribe.NewCmdDescribe(hub.CalledBy, cmdutil.NewFactory(in), to)
	cmd.Example = `  argosy describe deployment web -n shop
  argosy describe pod web-1 -n shop -C eu
  argosy describe deployment web -n shop -s members`
	where.Bind(cmd, ScopeHub, ScopeMembers, ScopeAll)
	cmd.Run = nil
	cmd.ValidArgsFunction = hubcli.KubectlCompletion(hub, completion.ResourceTypeAndNameCompletionFunc)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		places, err := where.Places(cmd.Context(), hub, false)
		if err != nil {
			return err
		}
		var found found
		defer shown.Flush()
		for _, at := range places {
			out.Reset()
			err := at.answers(cmd.Context())
			if err == nil {
				err = at.explain(at.describe(cmd, args, to))
			}
			found.note(at, err)
			if out.Len() == 0 {
				continue
			}
			if len(places) > 1 {
				fmt.Fprintf(shown, "# Cluster %s\n", at)
			}
			if _, err := io.Copy(shown, out); err != nil {
				return err
			}
		}
		return found.err()
	}
	return cmd
}

// describe runs kubectl's verb in the place. Its error is kubectl's own, with its type.
func (p *place) describe(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) error {
	flags := kubectldescribe.NewDescribeFlags(cmdutil.NewFactory(p), streams)
	own := &cobra.Command{Use: cmd.Use}
	flags.AddFlags(own)
	if err := copyFlags(cmd.Flags(), own.Flags()); err != nil {
		return err
	}
	o, err := flags.ToOptions(p.CalledBy, args)
	if err != nil {
		return err
	}
	return o.Run()
}

// explain adds to an error where it is from. How a command in a pod ended is no error of the place.
func (p *place) explain(err error) error {
	var exit hubcli.ExitError
	if err == nil || errors.As(err, &exit) || p.Cluster == "" || hubcli.ClusterErrorDetails(err) != nil {
		return err
	}
	text := roles.InCluster(p.Cluster, err.Error()) // a stream may have it
	if at := fmt.Sprintf("cluster %q", p.Cluster); !strings.HasPrefix(text, at) {
		text = at + ": " + text
	}
	return &hubcli.Sentence{Text: text, Err: err}
}

// found joins the results of several places. That an object does not exist in some of them is no error if it exists in
// another.
type found struct {
	mu      sync.Mutex
	any     bool
	absent  []error
	failing []error
}

func (f *found) note(at *place, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.any = true
	case at.lacks(err):
		f.absent = append(f.absent, err)
	default:
		f.failing = append(f.failing, err)
	}
}

func (f *found) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := slices.Clone(f.failing)
	if !f.any {
		errs = append(errs, f.absent...)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// lacks reports whether the place answered that it has no such object or kind. That the hub has no such cluster, or a
// pod no log, is another error.
func (p *place) lacks(err error) bool {
	if errors.As(err, new(*logError)) {
		return false
	}
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		return !slices.ContainsFunc(several.Errors(), func(err error) bool { return !p.lacks(err) })
	}
	if about := hubcli.ClusterErrorDetails(err); about != nil && p.Cluster != "" {
		return false
	}
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || errors.As(err, new(*notServedError))
}

// copyFlags sets the flags of to to the values of those with the same name in from.
func copyFlags(from, to *pflag.FlagSet) error {
	var errs []error
	to.VisitAll(func(f *pflag.Flag) {
		given := from.Lookup(f.Name)
		if given == nil || !given.Changed {
			return
		}
		f.Changed = true
		list, ok := given.Value.(pflag.SliceValue)
		into, both := f.Value.(pflag.SliceValue)
		if ok && both {
			errs = append(errs, into.Replace(list.GetSlice()))
			return
		}
		errs = append(errs, f.Value.Set(given.Value.String()))
	})
	return errors.Join(errs...)
}
