package joincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/grant"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/scope"
)

func NewAccess(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access",
		Short: "Give groups roles in clusters, and list who has them",
		Long: `Gives groups of users roles in clusters of the fleet, and lists who may do what where. The hub keeps the bindings in the clusters.
Only administrators of the hub may grant and revoke.`,
		Args: hubcli.NoArgs,
	}
	cmd.AddCommand(newAccessGrant(hub), newAccessRevoke(hub), newAccessList(hub))
	return cmd
}

// granting is the hub as the verbs of access see it.
type granting struct {
	addons
	config *rest.Config
	errOut io.Writer
}

func newGranting(cmd *cobra.Command, hub *hubcli.HubFlags) (granting, error) {
	a, err := newAddonsOf(cmd, hub)
	if err != nil {
		return granting{}, err
	}
	config, err := hub.ToRESTConfig()
	return granting{a, config, cmd.ErrOrStderr()}, err
}

// grantFlags are the flags that describe a grant.
type grantFlags struct {
	role, selector string
	clusters       []string
}

// bind adds the flags, and has the command run with the grant that they describe.
func (f *grantFlags) bind(cmd *cobra.Command, hub *hubcli.HubFlags,
	run func(context.Context, granting, grant.Grant) error) *cobra.Command {
	cmd.Flags().StringVar(&f.role, "role", "", "ClusterRole of the clusters: view, edit, admin or another one")
	cmd.Flags().StringVar(&f.selector, "clusters", "", "labels of clusters, such as env=prod")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "C", nil, "names of clusters, separated by commas")
	_ = cmd.RegisterFlagCompletionFunc("clusters", cobra.NoFileCompletions)
	cmd.Args, cmd.ValidArgsFunction = hubcli.OneArg("the name of a group"), cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		g, err := grant.New(args[0], f.role, hub.Namespace, f.selector, f.clusters)
		if err != nil {
			return err
		}
		a, err := newGranting(cmd, hub)
		if err != nil {
			return err
		}
		return run(cmd.Context(), a, g)
	}
	return cmd
}

func newAccessGrant(hub *hubcli.HubFlags) *cobra.Command {
	proxied := false
	cmd := &cobra.Command{
		Use:   "grant GROUP --role ROLE --clusters LABEL=VALUE",
		Short: "Give a group a role in clusters",
		Long: `Gives a group a role in all clusters with a label, or in those that --cluster names: in the namespace of --namespace, or else in all.
The hub stores the binding as an EnclosedManifest, so that it grants nothing on the hub.

To send requests through the hub, the group also needs the right to use clusters/proxy. With --proxy, it gets it on the hub for the
clusters that are selected now; run the command again when others have joined.`,
		Example: `  argosy access grant shop-developers --role view --clusters env=prod --proxy
  argosy access grant shop-developers --role edit -n shop --cluster eu,us`,
	}
	cmd.Flags().BoolVar(&proxied, "proxy", false, "also let the group use clusters/proxy of the selected clusters")
	return (&grantFlags{}).bind(cmd, hub, func(ctx context.Context, a granting, g grant.Grant) error {
		return a.grant(ctx, g, proxied)
	})
}

func (a granting) grant(ctx context.Context, g grant.Grant, proxied bool) error {
	if g.Everywhere() {
		return errors.New("select clusters by label with --clusters label=value, or name them with --cluster a,b")
	}
	if err := a.known(ctx, g.Clusters); err != nil {
		return err
	}
	clusters, err := hubcli.Clusters(ctx, a.client, g.Clusters, g.Selector)
	if err != nil {
		return fmt.Errorf("read the clusters of the hub: %w", err)
	}
	noRole, err := a.checkRole(ctx, g, clusters)
	if err != nil {
		return err
	}
	t, p := &releasev1alpha1.EnclosedManifest{}, &policyv1alpha1.ClusterPropagationPolicy{}
	// The template first: users who may not write it leave nothing behind.
	t.Name, p.Name = g.Name(), g.Name()
	if err := createOrUpdate(ctx, a.client, t, func() {
		want := g.Template()
		metav1.SetMetaDataLabel(&t.ObjectMeta, wellknown.AccessLabel, "true")
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, wellknown.AccessLabel, want.Annotations[wellknown.AccessLabel])
		t.Spec = want.Spec
	}); err != nil {
		return fmt.Errorf("write the template %s: %w", t.Name, err)
	}
	if err := createOrUpdate(ctx, a.client, p, func() {
		want := g.Policy()
		metav1.SetMetaDataLabel(&p.ObjectMeta, wellknown.AccessLabel, "true")
		p.Spec.ResourceSelectors, p.Spec.Placement = want.Spec.ResourceSelectors, want.Spec.Placement
	}); err != nil {
		return fmt.Errorf("write the policy %s: %w", p.Name, err)
	}
	if role, binding := g.Proxy(clusters); proxied && len(clusters) > 0 {
		if err := errors.Join(createOrReplace(ctx, a.client, role), createOrReplace(ctx, a.client, binding)); err != nil {
			return fmt.Errorf("let the group use clusters/proxy: %w", err)
		}
	}
	text.Fprintf(a.out, "granted role %s in %s to group %q\n", g.Role, g.Scope(), g.Group)
	lets, err := proxyUsers(ctx, a.client)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		text.Fprintf(a.errOut, "Warning: no cluster has %s: the grant applies to clusters that get it later\n", g.Selector)
	}
	for i := range clusters {
		for _, missing := range g.Lacks(&clusters[i], lets, noRole) {
			text.Fprintf(a.errOut, "Warning: cluster %s: %s\n", clusters[i].Name, missing)
		}
	}
	return nil
}

// proxyUsers returns who may use the proxy of clusters on the hub.
func proxyUsers(ctx context.Context, hub client.Client) (access.Grants, error) {
	var known rbacv1.ClusterRoleList
	var bound rbacv1.ClusterRoleBindingList
	if err := errors.Join(hub.List(ctx, &known), hub.List(ctx, &bound)); err != nil {
		return access.Grants{}, fmt.Errorf("list who may use clusters/proxy: %w", err)
	}
	return access.Derive(known.Items, bound.Items), nil
}

// checkRole returns the clusters that lack the role, or an error if it is known nowhere.
func (a granting) checkRole(ctx context.Context, g grant.Grant,
	clusters []clusterv1alpha1.Cluster) (noRole map[string]bool, err error) {
	onHub := a.client.Get(ctx, client.ObjectKey{Name: g.Role}, &rbacv1.ClusterRole{})
	if client.IgnoreNotFound(onHub) != nil {
		return nil, fmt.Errorf("read ClusterRole %s on the hub: %w", g.Role, onHub)
	}
	if noRole = a.lackRole(ctx, g.Role, clusters); onHub != nil && len(noRole) == len(clusters) {
		return nil, fmt.Errorf("there is no ClusterRole %q, neither on the hub nor in the clusters: create it there, or "+
			"grant view, edit or admin", g.Role)
	}
	return noRole, nil
}

// lackRole asks the clusters, as the user, for a ClusterRole, and returns those that lack it. One that does not answer
// counts as one that has it.
func (a granting) lackRole(ctx context.Context, role string, clusters []clusterv1alpha1.Cluster) map[string]bool {
	var asking sync.WaitGroup
	var mu sync.Mutex
	noRole := map[string]bool{}
	for i := range clusters {
		asking.Go(func() {
			config := proxy.Config(a.config, clusters[i].Name)
			config.Timeout = hubcli.Timeout(config, hubcli.AskTimeout)
			c, err := rbacclient.NewForConfig(config)
			if err == nil {
				_, err = c.ClusterRoles().Get(ctx, role, metav1.GetOptions{})
			}
			if mu.Lock(); apierrors.IsNotFound(err) && hubcli.ClusterErrorDetails(err) == nil {
				noRole[clusters[i].Name] = true
			}
			mu.Unlock()
		})
	}
	asking.Wait()
	return noRole
}

// granted is a grant of the hub, with its state in clusters.
type granted struct {
	grant.Grant
	In []grant.State `json:"in"`
}

// read returns all grants, sorted by group, role and namespace.
func (a granting) read(ctx context.Context) (all []granted, err error) {
	var templates releasev1alpha1.EnclosedManifestList
	if err := a.client.List(ctx, &templates, client.HasLabels{wellknown.AccessLabel}); err != nil {
		return nil, fmt.Errorf("list the grants: %w", err)
	}
	for i := range templates.Items {
		g, ok := grant.Read(&templates.Items[i])
		if !ok {
			text.Fprintf(a.errOut, "Warning: the EnclosedManifest %s was a grant, and someone has changed it: delete it, and "+
				"grant again\n", templates.Items[i].Name)
			continue
		}
		all = append(all, granted{Grant: g, In: []grant.State{}})
	}
	slices.SortFunc(all, func(a, b granted) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all, nil
}

func newAccessRevoke(hub *hubcli.HubFlags) *cobra.Command {
	timeout := 30 * time.Second
	cmd := &cobra.Command{
		Use:   "revoke GROUP --role ROLE",
		Short: "Take a role in clusters from a group",
		Long: `Takes a role from a group that "access grant" gave it, in the same namespace: in the clusters of --clusters or --cluster as they
were granted, or else in all. Other bindings of the clusters stay.`,
		Example: `  argosy access revoke shop-developers --role view --clusters env=prod
  argosy access revoke shop-developers --role edit -n shop`,
	}
	cmd.Flags().DurationVar(&timeout, "wait", timeout, "how long to wait until the clusters have removed it")
	return (&grantFlags{}).bind(cmd, hub, func(ctx context.Context, a granting, g grant.Grant) error {
		return a.revoke(ctx, g, timeout)
	})
}

// revoke deletes the grant g or, if that names no clusters, all of its group, role and namespace.
func (a granting) revoke(ctx context.Context, g grant.Grant, timeout time.Duration) error {
	all, err := a.read(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, known := range all {
		if known.Group == g.Group && known.Role == g.Role && known.Namespace == g.Namespace &&
			(g.Everywhere() || known.Name() == g.Name()) {
			names = append(names, known.Name())
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("group %q was not granted role %s in %s by this command: `argosy access list` shows all grants",
			g.Group, g.Role, g.Scope())
	}
	for _, name := range names {
		meta := metav1.ObjectMeta{Name: name}
		// The right on the hub first: it ends at once. The template last: without it the grant is not found again.
		for _, obj := range []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: meta},
			&rbacv1.ClusterRole{ObjectMeta: meta}, &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta},
			&releasev1alpha1.EnclosedManifest{ObjectMeta: meta}} {
			if err := a.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %T %s: %w", obj, name, err)
			}
		}
	}
	if err := a.gone(ctx, names, timeout); err != nil {
		return fmt.Errorf("the grant is revoked, but not all clusters have removed it; one that does not respond does so "+
			"when it responds again: %w", err)
	}
	text.Fprintf(a.out, "revoked role %s in %s from group %q\n", g.Role, g.Scope(), g.Group)
	return nil
}

func newAccessList(hub *hubcli.HubFlags) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the roles that groups have in clusters, and what they lack",
		Long: `Lists what "access grant" gave to groups: where it is applied, and what is missing where, such as a cluster that refuses the binding,
a ClusterRole that a cluster does not have, or the right to use clusters/proxy on the hub.`,
		Example: "  argosy access list\n  argosy access list -o json",
		Args:    hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := newGranting(cmd, hub)
			if err != nil {
				return err
			}
			all, err := a.states(cmd.Context())
			if err != nil {
				return err
			}
			if output != "" {
				return hubcli.WriteAs(a.out, output, map[string]any{"grants": append([]granted{}, all...)})
			}
			return a.print(all)
		},
	}
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml (default: a table)")
	return cmd
}

// states returns all grants with their state in clusters.
func (a granting) states(ctx context.Context) ([]granted, error) {
	all, err := a.read(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	lets, err := proxyUsers(ctx, a.client)
	if err != nil {
		return nil, err
	}
	clusters, err := hubcli.Clusters(ctx, a.client, nil, "")
	if err != nil {
		return nil, fmt.Errorf("list the clusters of the hub: %w", err)
	}
	noRole := map[string]map[string]bool{}
	for i := range all {
		g := &all[i]
		b, _, err := scope.BindingFor(ctx, a.client, releasev1alpha1.EnclosedManifestKind, "", g.Name())
		if err != nil {
			return nil, err
		}
		if noRole[g.Role] == nil {
			noRole[g.Role] = a.lackRole(ctx, g.Role, clusters)
		}
		g.In = append(g.In, g.States(clusters, b, lets, noRole[g.Role])...)
	}
	return all, nil
}

func (a granting) print(all []granted) error {
	if len(all) == 0 {
		fmt.Fprintln(a.errOut, "No grants found")
		return nil
	}
	table := hubcli.TextTable("GROUP", "ROLE", "NAMESPACE", "CLUSTERS", "APPLIED IN", "MISSING")
	for _, g := range all {
		var applied, missing []string
		for _, s := range g.In {
			if s.Applied {
				applied = append(applied, s.Cluster)
			}
			if len(s.Missing) > 0 {
				missing = append(missing, s.Cluster+": "+strings.Join(s.Missing, ", "))
			}
		}
		hubcli.AddRow(table, g.Group, g.Role, cmp.Or(g.Namespace, "<all>"), cmp.Or(g.Selector, strings.Join(g.Clusters, ",")),
			hubcli.OrNone(strings.Join(applied, ",")), hubcli.OrNone(strings.Join(missing, "; ")))
	}
	return hubcli.PrintTable(a.out, table, printers.PrintOptions{})
}
