package joincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
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
	roles, err := a.checkRole(ctx, g, clusters)
	if err != nil {
		return err
	}
	lets, err := proxyUsers(ctx, a.client)
	if err != nil {
		return err
	}
	// The template first: users who may not write it leave nothing behind.
	t, want := g.Template(), g.Template()
	if err := createOrUpdate(ctx, a.client, t, func() {
		metav1.SetMetaDataLabel(&t.ObjectMeta, wellknown.AccessLabel, "true")
		metav1.SetMetaDataAnnotation(&t.ObjectMeta, wellknown.AccessLabel, want.Annotations[wellknown.AccessLabel])
		t.Spec = want.Spec
	}); err != nil {
		return fmt.Errorf("write the template %s: %w", t.Name, err)
	}
	if err := a.send(ctx, g); err != nil {
		return err
	}
	if proxied {
		role, binding := g.Proxy(clusters)
		lets = access.Derive([]rbacv1.ClusterRole{*role}, []rbacv1.ClusterRoleBinding{*binding})
		if len(clusters) == 0 {
			err = a.delete(ctx, binding, role)
		} else {
			err = errors.Join(createOrReplace(ctx, a.client, role), createOrReplace(ctx, a.client, binding))
		}
		if err != nil {
			return fmt.Errorf("let the group use clusters/proxy: %w", err)
		}
	}
	text.Fprintf(a.out, "granted role %s in %s to group %q\n", g.Role, g.Scope(), g.Group)
	if len(clusters) == 0 {
		text.Fprintf(a.errOut, "Warning: no cluster has %s: the grant applies to clusters that get it later\n", g.Selector)
	}
	for i := range clusters {
		for _, missing := range g.Lacks(&clusters[i], lets, roles) {
			text.Fprintf(a.errOut, "Warning: cluster %s: %s\n", clusters[i].Name, missing)
		}
	}
	return nil
}

// send writes the policy of a grant, whole: a setting of others may keep the binding in clusters.
func (a granting) send(ctx context.Context, g grant.Grant) error {
	p, want := g.Policy(), g.Policy()
	if err := createOrUpdate(ctx, a.client, p, func() {
		metav1.SetMetaDataLabel(&p.ObjectMeta, wellknown.AccessLabel, "true")
		p.Spec = want.Spec
	}); err != nil {
		return fmt.Errorf("write the policy %s: %w", p.Name, err)
	}
	return nil
}

// delete deletes those objects that exist.
func (a granting) delete(ctx context.Context, all ...client.Object) error {
	for _, obj := range all {
		if err := a.client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

// proxyUsers returns who may use the proxy of clusters on the hub. Its error is of one request: one that joins several
// would be taken for any of them.
func proxyUsers(ctx context.Context, hub client.Client) (access.Grants, error) {
	var known rbacv1.ClusterRoleList
	var bound rbacv1.ClusterRoleBindingList
	err := hub.List(ctx, &known)
	if err == nil {
		err = hub.List(ctx, &bound)
	}
	if err != nil {
		return access.Grants{}, fmt.Errorf("list who may use clusters/proxy: %w", err)
	}
	return access.Derive(known.Items, bound.Items), nil
}

// checkRole returns what lackRole does, or an error if the role is known nowhere.
func (a granting) checkRole(ctx context.Context, g grant.Grant,
	clusters []clusterv1alpha1.Cluster) (said map[string]string, err error) {
	onHub := a.client.Get(ctx, client.ObjectKey{Name: g.Role}, &rbacv1.ClusterRole{})
	if client.IgnoreNotFound(onHub) != nil {
		return nil, fmt.Errorf("read ClusterRole %s on the hub: %w", g.Role, onHub)
	}
	said = a.lackRole(ctx, g.Role, clusters)
	if onHub != nil && !slices.ContainsFunc(clusters, func(c clusterv1alpha1.Cluster) bool {
		return said[c.Name] != grant.NoRole
	}) {
		return nil, fmt.Errorf("there is no ClusterRole %q, neither on the hub nor in the clusters: create it there, or "+
			"grant view, edit or admin", g.Role)
	}
	return said, nil
}

// askedAtOnce bounds the clusters that a command asks in parallel: each request takes a connection of the hub.
const askedAtOnce = 16

// lackRole asks the clusters, as the user, for a ClusterRole. It returns grant.NoRole for those that lack it, and
// grant.UnknownRole for those that refuse to tell. One that does not answer counts as one that has it.
func (a granting) lackRole(ctx context.Context, role string, clusters []clusterv1alpha1.Cluster) map[string]string {
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	var mu sync.Mutex
	said := map[string]string{}
	for i := range clusters {
		asking.Go(func() error {
			config := proxy.Config(a.config, clusters[i].Name)
			config.Timeout = hubcli.Timeout(config, hubcli.AskTimeout)
			c, err := rbacclient.NewForConfig(config)
			if err == nil {
				_, err = c.ClusterRoles().Get(ctx, role, metav1.GetOptions{})
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsForbidden(err):
				said[clusters[i].Name] = grant.UnknownRole
			case apierrors.IsNotFound(err) && hubcli.ClusterErrorDetails(err) == nil:
				said[clusters[i].Name] = grant.NoRole
			}
			return nil
		})
	}
	_ = asking.Wait() // no request returns an error
	return said
}

// granted is a grant of the hub, with its state in clusters.
type granted struct {
	grant.Grant
	In []grant.State `json:"in"`
	// proxied are the clusters that its role on the hub names.
	proxied []string
}

// read returns all grants, sorted by group, role and namespace. broken are those of which someone has changed the
// template: it is not known what they grant. left are the names of objects of these and of no grant.
func (a granting) read(ctx context.Context) (all, broken []granted, left []string, err error) {
	var templates releasev1alpha1.EnclosedManifestList
	var policies policyv1alpha1.ClusterPropagationPolicyList
	var roles rbacv1.ClusterRoleList
	var bindings rbacv1.ClusterRoleBindingList
	for _, list := range []client.ObjectList{&templates, &policies, &roles, &bindings} {
		if err := a.client.List(ctx, list, client.HasLabels{wellknown.AccessLabel}); err != nil {
			return nil, nil, nil, fmt.Errorf("list the grants: %w", err)
		}
	}
	known := map[string]bool{}
	proxied := map[string][]string{}
	for i := range roles.Items {
		proxied[roles.Items[i].Name] = access.Clusters(roles.Items[i].Rules)
	}
	for i := range templates.Items {
		t := &templates.Items[i]
		g, ok := grant.Read(t)
		known[t.Name] = true
		if ok {
			all = append(all, granted{Grant: g, In: []grant.State{}, proxied: proxied[t.Name]})
			continue
		}
		text.Fprintf(a.errOut, "Warning: the EnclosedManifest %s was a grant, and someone has changed it: grant again as "+
			"before, or revoke the grant\n", t.Name)
		left = append(left, t.Name)
		if g.Name() == t.Name {
			broken = append(broken, granted{Grant: g})
		}
	}
	for _, list := range []client.ObjectList{&policies, &roles, &bindings} {
		_ = meta.EachListItem(list, func(obj runtime.Object) error {
			if o := obj.(client.Object); !known[o.GetName()] {
				text.Fprintf(a.errOut, "Warning: the %s %s is left of a grant: grant again as before, and revoke it, or delete "+
					"it\n", strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List"), o.GetName())
				left = append(left, o.GetName())
			}
			return nil
		})
	}
	slices.SortFunc(all, func(a, b granted) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all, broken, left, nil
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
	all, broken, left, err := a.read(ctx)
	if err != nil {
		return err
	}
	var revoked []grant.Grant
	var names, others []string
	for _, known := range append(all, broken...) {
		switch {
		case known.Group != g.Group || known.Role != g.Role:
		case known.Namespace == g.Namespace && (g.Everywhere() || known.Name() == g.Name()):
			revoked, names = append(revoked, known.Grant), append(names, known.Name())
		default:
			others = append(others, known.Scope()+" of clusters "+known.selection())
		}
	}
	// The flags name the objects, too, if the template says something else, or is gone.
	if !slices.Contains(names, g.Name()) && slices.Contains(left, g.Name()) {
		revoked, names = append(revoked, g), append(names, g.Name())
	}
	if len(names) == 0 {
		return fmt.Errorf("group %q was not granted role %s in %s by this command: `argosy access list` shows all grants",
			g.Group, g.Role, g.Scope())
	}
	for _, g := range revoked {
		if err := a.end(ctx, g); err != nil {
			return err
		}
	}
	if err := a.gone(ctx, names, timeout); err != nil {
		return fmt.Errorf("the grant is revoked on the hub, but not all clusters have removed the role; a cluster that does "+
			"not respond removes it when it responds again: %w", err)
	}
	text.Fprintf(a.out, "revoked role %s in %s from group %q\n", g.Role, g.Scope(), g.Group)
	if len(others) > 0 {
		text.Fprintf(a.out, "other grants still give it this role: in %s\n", strings.Join(others, "; in "))
	}
	return nil
}

// end deletes the objects of a grant.
func (a granting) end(ctx context.Context, g grant.Grant) error {
	meta := metav1.ObjectMeta{Name: g.Name()}
	// The right on the hub first: it ends at once.
	if err := a.delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: meta}); err != nil {
		return err
	}
	t, p := &releasev1alpha1.EnclosedManifest{ObjectMeta: meta},
		&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: meta}
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the policy %s: %w", p.Name, err)
	}
	if ptr.Deref(p.Spec.PreserveResourcesOnDeletion, false) {
		return fmt.Errorf("the group keeps the role in clusters, because ClusterPropagationPolicy %s has "+
			"preserveResourcesOnDeletion: grant it again, which removes this setting, and then revoke it", p.Name)
	}
	// The template last: without it the grant is not found again.
	return a.delete(ctx, p, t)
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
	all, _, _, err := a.read(ctx)
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
	roles := map[string]map[string]string{}
	for i := range all {
		g := &all[i]
		b, _, err := scope.BindingFor(ctx, a.client, releasev1alpha1.EnclosedManifestKind, "", g.Name())
		if err != nil {
			return nil, err
		}
		if roles[g.Role] == nil {
			roles[g.Role] = a.lackRole(ctx, g.Role, slices.DeleteFunc(slices.Clone(clusters),
				func(c clusterv1alpha1.Cluster) bool {
					return !slices.ContainsFunc(all, func(o granted) bool { return o.Role == g.Role && o.Selects(&c) })
				}))
		}
		g.In = append(g.In, g.States(clusters, b, g.proxied, lets, roles[g.Role])...)
	}
	return all, nil
}

// selection returns the clusters for people.
func (g granted) selection() string { return cmp.Or(g.Selector, strings.Join(g.Clusters, ",")) }

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
		hubcli.AddRow(table, g.Group, g.Role, cmp.Or(g.Namespace, "<all>"), g.selection(),
			hubcli.OrNone(strings.Join(applied, ",")), hubcli.OrNone(strings.Join(missing, "; ")))
	}
	return hubcli.PrintTable(a.out, table, printers.PrintOptions{})
}
