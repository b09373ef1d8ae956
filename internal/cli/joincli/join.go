// Package joincli has the verbs by which clusters and workloads enter the fleet and leave it.
package joincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/member"
)

func NewJoin(hub *hubcli.HubFlags) *cobra.Command {
	j := &Join{}
	flags := &hubcli.MemberFlags{}
	cmd := &cobra.Command{
		Use:   "join NAME --cluster-kubeconfig FILE",
		Short: "Join a cluster to the fleet",
		Long: `Creates a service account for the hub in the cluster, and stores its token on the hub. The kubeconfig is used only for that;
its user needs the rights that the account gets: with --role full all rights in the cluster, with --role minimal
what the hub needs for the kinds that it knows (docs/member-rights.md).
Joining a cluster again under the same name creates a new token and revokes the old one. It keeps all rights, or the role minimal, unless --role is given.
A cluster that another running hub manages is refused, unless --take-over is given.`,
		Example: "  argosy join eu --cluster-kubeconfig eu.kubeconfig --cluster-region eu-west\n" +
			"  argosy join eu --cluster-kubeconfig eu.kubeconfig --role minimal\n" +
			"  argosy join eu --cluster-kubeconfig eu.kubeconfig --take-over",
		Args: hubcli.OneArg("the name of the cluster"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.Name, j.Namespace, j.Flags, j.Out = args[0], flags.Namespace, flags.String(), cmd.OutOrStdout()
			// The name first: it needs no hub to be wrong.
			if err := ValidName(j.Name); err != nil {
				return err
			}
			if j.Role != "" && !slices.Contains(joinRoles, j.Role) {
				return fmt.Errorf("--role must be %s, not %q", strings.Join(joinRoles, " or "), j.Role)
			}
			var err error
			if j.Endpoint, err = flags.Endpoint(j.Name); err != nil {
				return err
			}
			if j.Member, err = j.Endpoint.Client(); err != nil {
				return Unreachable(j.Name, j.Endpoint.Config.Host, err)
			}
			if j.Hub, err = hub.Client(); err != nil {
				return err
			}
			if config, err := hub.ToRESTConfig(); err == nil {
				j.HubAddress = config.Host
				j.orphans = func(ctx context.Context) ([]membercli.Orphan, error) {
					return membercli.FindClusterOrphans(ctx, config, j.Endpoint.Config, j.Name)
				}
			}
			return j.Run(cmd.Context())
		},
	}
	flags.Bind(cmd.Flags())
	_ = cmd.MarkFlagRequired("cluster-kubeconfig") // fails only for an unknown flag
	cmd.Flags().StringVar(&j.Provider, "cluster-provider", "", "provider of the cluster")
	cmd.Flags().StringVar(&j.Region, "cluster-region", "", "region of the cluster")
	cmd.Flags().StringSliceVar(&j.Zones, "cluster-zones", nil, "zones of the cluster, separated by commas")
	cmd.Flags().BoolVar(&j.TakeOver, "take-over", false,
		"join the cluster even if another hub manages it: that hub stops writing there, and its objects stay")
	cmd.Flags().BoolVar(&j.dryRun, "dry-run", false, "check everything and change nothing")
	cmd.Flags().StringVar(&j.Role, "role", "",
		"rights of the hub in the cluster: full or minimal (default: full; minimal if it has fewer there now)")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(joinRoles, cobra.ShellCompDirectiveNoFileComp))
	as := &hub.Overrides.AuthInfo
	cmd.Flags().StringVar(&as.Impersonate, "karmada-as", "", "user to act as on the hub; needs the right to impersonate")
	cmd.Flags().StringSliceVar(&as.ImpersonateGroups, "karmada-as-group", nil, "groups of that user, comma-separated")
	cmd.Flags().StringVar(&as.ImpersonateUID, "karmada-as-uid", "", "UID of that user")
	return cmd
}

// Join adds a cluster to the fleet.
type Join struct {
	Name, Namespace  string
	Flags            string // give the cluster's kubeconfig to another command
	Provider, Region string
	Zones            []string
	dryRun           bool
	// Role has the hub's rights in the member: one of joinRoles; empty for what they are, or full in a new member.
	Role string
	// TakeOver joins a member of another hub; again means that this hub managed it before.
	TakeOver, again bool
	fleet           clusterv1alpha1.ClusterList // the hub's clusters
	// hubID is the hub's identity in members, HubAddress its address.
	hubID, HubAddress string

	Hub, Member client.Client
	Endpoint    hubcli.Endpoint
	// orphans returns the orphans of this hub in the member; nil if unknown.
	orphans func(context.Context) ([]membercli.Orphan, error)
	Out     io.Writer
	// Progress is called with the name of each completed step; may be nil.
	Progress func(step, detail string)
}

// joinRoles are the roles of the hub in a member.
var joinRoles = []string{"full", roleMinimal}

const roleMinimal = "minimal"

// report names a step that is done.
func (j *Join) report(step, detail string) {
	if j.Progress != nil {
		j.Progress(step, detail)
	}
}

func ValidName(name string) error {
	if len(name) > membership.NameLimit {
		return fmt.Errorf("cluster name %q has %d characters; it must be no more than %d characters", name, len(name),
			membership.NameLimit)
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("cluster name %q: %s", name, strings.Join(wrong, "; "))
	}
	return nil
}

func (j *Join) Run(ctx context.Context) error {
	// 1. Which cluster is it, and may it have the name?
	id, err := member.ClusterID(ctx, j.Member)
	if err != nil {
		return Unreachable(j.Name, j.Endpoint.Config.Host, err)
	}
	j.report("reached", j.Endpoint.Config.Host)
	if j.hubID, err = member.Identity(ctx, j.Hub); err != nil {
		return err
	}
	if system, err := member.Identity(ctx, j.Member); err == nil && system == j.hubID {
		return fmt.Errorf("--cluster-kubeconfig is for the hub itself (%s), which cannot be a member of its own fleet; give the kubeconfig of cluster %q", j.Endpoint.Config.Host, j.Name)
	}
	if err := j.Hub.List(ctx, &j.fleet); err != nil {
		return fmt.Errorf("list the clusters of the hub: %w", err)
	}
	if j.again, err = joinable(j.Name, id, j.fleet.Items); err != nil {
		return err
	}
	lease, err := j.checkOwnership(ctx)
	if err != nil {
		return err
	}
	was := tenure.Read(lease)
	ours := j.again && was == nil || was != nil && was.Hub == j.hubID
	if j.again {
		fmt.Fprintf(j.Out, "cluster(%s) was joined before; its token and endpoint are renewed\n", j.Name)
	}
	if j.dryRun {
		fmt.Fprintf(j.Out, "cluster(%s) can be joined (dry run: nothing was changed)\n", j.Name)
		return nil
	}

	j.report("permitted", "")

	// 2. Its accounts.
	account, err := j.account(ctx, "karmada-"+j.Name)
	if err != nil {
		return err
	}
	acting, err := j.account(ctx, hubcli.Impersonator)
	if err != nil {
		return err
	}
	if err := j.authorize(ctx, "karmada-"+j.Name); err != nil {
		return err
	}

	j.report("accounts", j.Namespace)
	if err := j.writeOwnership(ctx, lease); err != nil {
		return err
	}
	j.report("claimed", "")

	// 3. Their tokens in the hub, and the Cluster, which then owns them.
	if err := ensure(ctx, j.Hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: j.Namespace}}, nil); err != nil {
		return fmt.Errorf("in the hub: %w", err)
	}
	secrets := []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Name}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Name + "-impersonator"}},
	}
	data := []map[string][]byte{
		{member.CABundleKey: j.caBundle(ctx), member.TokenKey: []byte(account.token)},
		{member.TokenKey: []byte(acting.token)},
	}
	for i, secret := range secrets {
		if err := ensure(ctx, j.Hub, secret, func() { secret.Data = data[i] }); err != nil {
			return fmt.Errorf("in the hub: %w", err)
		}
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: j.Name}}
	if err := createOrUpdate(ctx, j.Hub, cluster, func() { j.describe(cluster, id) }); err != nil {
		return fmt.Errorf("write cluster %s in the hub: %w", j.Name, err)
	}
	for i, secret := range secrets {
		own := func() {
			secret.Data = data[i]
			// The type is fixed by the scheme; it cannot fail to be found.
			_ = controllerutil.SetOwnerReference(cluster, secret, hubcli.Scheme)
		}
		if err := ensure(ctx, j.Hub, secret, own); err != nil {
			return fmt.Errorf("in the hub: %w", err)
		}
	}

	j.report("registered", "")

	// 4. The old tokens are good for nothing from now on.
	for _, of := range []credentials{account, acting} {
		if err := j.revoke(ctx, of, ours); err != nil {
			return err
		}
	}
	if j.Role == roleMinimal {
		fmt.Fprintf(j.Out, "cluster(%s): the hub has the role minimal there\n", j.Name)
	}
	fmt.Fprintf(j.Out, "cluster(%s) is joined successfully\n", j.Name)
	j.reportOrphans(ctx)
	return nil
}

// reportOrphans prints what an earlier membership left in the member. The join does not fail if that is unknown.
func (j *Join) reportOrphans(ctx context.Context) {
	if j.orphans == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hubcli.RequestTimeout)
	defer cancel()
	found, _ := j.orphans(ctx)
	former := slices.DeleteFunc(slices.Clone(found), func(o membercli.Orphan) bool { return o.Former == "" })
	found = slices.DeleteFunc(found, func(o membercli.Orphan) bool { return o.Former != "" })
	if what := membercli.DescribeOrphans(found); what != "" {
		fmt.Fprintf(j.Out, "cluster(%s) has %s: the hub takes over what its policies place there; "+
			"`argosy orphans -C %s` lists the rest\n", j.Name, what, j.Name)
	}
	if what := membercli.DescribeOrphans(former); what != "" {
		fmt.Fprintf(j.Out, "cluster(%[1]s) has %[2]s, from when this hub joined it as %[3]q: `argosy orphans -C %[1]s` lists "+
			"them, and `argosy orphans delete KIND NAME -C %[1]s --yes` deletes one\n", j.Name, what, former[0].Former)
	}
}

// joinable reports whether a cluster may be joined under a name, and whether it was before.
func joinable(name, id string, members []clusterv1alpha1.Cluster) (again bool, err error) {
	for i := range members {
		m := &members[i]
		switch {
		case m.Name != name && m.Spec.ID == id:
			return false, fmt.Errorf("this cluster is a member under the name %q already (id %s); unjoin that first, or use that name", m.Name, id)
		case m.Name != name:
		case m.DeletionTimestamp != nil:
			return false, fmt.Errorf("cluster %q is being removed; join it again when `argosy get clusters` no longer lists it",
				name)
		case m.Spec.SyncMode == clusterv1alpha1.Pull:
			return false, fmt.Errorf("cluster %q is registered in Pull mode; unregister it before joining it in Push mode", name)
		case m.Spec.ID != id:
			return false, fmt.Errorf("the name %q belongs to another cluster (id %s, at %s; this one has id %s); choose another name", name, m.Spec.ID, m.Spec.APIEndpoint, id)
		default:
			again = true
		}
	}
	return again, nil
}

// Unreachable returns an error with what to do about a member that did not respond properly.
func Unreachable(name, host string, err error) error {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return &hubcli.Sentence{Text: fmt.Sprintf("not authorized in cluster %q at %s: %s; use a --cluster-kubeconfig with cluster-admin rights", name, host, denial(err)), Err: err}
	}
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return &hubcli.Sentence{Text: fmt.Sprintf("cluster %q at %s responds, but not as a healthy cluster: %s; check the cluster, --cluster-kubeconfig and --cluster-context", name, host, err), Err: err}
	case member.Untrusted(err):
		return &hubcli.Sentence{Text: fmt.Sprintf("the certificate of cluster %q at %s is not trusted: %s; "+
			"check certificate-authority-data and tls-server-name in --cluster-kubeconfig",
			name, host, hubcli.NoResponseCause(err, hubcli.RequestTimeout)), Err: err}
	}
	return &hubcli.Sentence{Text: fmt.Sprintf("cluster %q at %s is not responding: %s; check that it is running and reachable "+
		"from this machine, and --cluster-kubeconfig and --cluster-context",
		name, host, hubcli.NoResponseCause(err, hubcli.RequestTimeout)), Err: err}
}

// denial returns the API server's reason for a forbidden request.
func denial(err error) string {
	if apierrors.IsUnauthorized(err) {
		return "the credentials are missing or not valid"
	}
	// client-go does not read the message of a refused discovery, which is about no kind.
	var status apierrors.APIStatus
	if errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Kind == "") {
		return "the credentials are missing, or their user may not read the API"
	}
	return hubcli.NoResponseCause(err, hubcli.RequestTimeout)
}

// account creates a service account in the member, and a token of it.
func (j *Join) account(ctx context.Context, name string) (credentials, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: j.Namespace}}
	for _, step := range []struct {
		obj client.Object
		set func()
	}{
		{namespace, func() {
			if namespace.ResourceVersion == "" {
				// so that unjoin may delete it
				metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, wellknown.CreatedAnnotation, "true")
			}
		}},
		{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: name}}, nil},
	} {
		if err := ensure(ctx, j.Member, step.obj, step.set); err != nil {
			return credentials{}, fmt.Errorf("in cluster %q: %w", j.Name, err)
		}
	}
	token, anchor, err := member.IssueToken(ctx, j.Member, j.Namespace, name, j.hubID)
	if err != nil {
		return credentials{}, fmt.Errorf("in cluster %q: %w", j.Name, err)
	}
	return credentials{account: name, token: token, anchor: anchor}, nil
}

// credentials are an account in the member, its token, and the Secret that the token is bound to.
type credentials struct{ account, token, anchor string }

// revoke deletes the earlier tokens of this hub in the member, but not those of others. The lease records whose member
// it was.
func (j *Join) revoke(ctx context.Context, of credentials, ours bool) error {
	endless := ""
	if ours {
		endless = of.account // created by hubs and tools that know no other tokens
	}
	if err := member.RevokeTokens(ctx, j.Member, j.Namespace, of.account, j.hubID, of.anchor, endless); err != nil {
		return fmt.Errorf("in cluster %q: the new token is in use, but the old one is not revoked; join the cluster again: %w", j.Name, err)
	}
	return nil
}

func controllerRole(account string) string { return "karmada-controller-manager:" + account }

// authorize gives the account its rights in the member.
func (j *Join) authorize(ctx context.Context, account string) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: controllerRole(account)}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: controllerRole(account)}}
	rules, err := j.rules(ctx, role, account)
	if err != nil {
		return err
	}
	err = errors.Join(
		ensure(ctx, j.Member, role, func() { role.Rules = rules }),
		ensure(ctx, j.Member, binding, func() {
			binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: j.Namespace, Name: account}}
			binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
		}))
	if err != nil {
		return fmt.Errorf("in cluster %q: %w", j.Name, err)
	}
	return nil
}

// rules returns the rules that the role of the account gets, by the flag or by those that it has.
func (j *Join) rules(ctx context.Context, role *rbacv1.ClusterRole, account string) ([]rbacv1.PolicyRule, error) {
	has := &rbacv1.ClusterRole{}
	if err := j.Member.Get(ctx, client.ObjectKeyFromObject(role), has); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ClusterRole %s in cluster %q: %w", role.Name, j.Name, err)
	}
	if j.Role == "" && len(has.Rules) > 0 && !roles.IsFull(has.Rules) {
		j.Role = roleMinimal
	}
	if j.Role != roleMinimal {
		return roles.Full(), nil
	}
	acting, err := j.actsAs(ctx, has.Rules)
	if err != nil {
		return nil, err
	}
	return append(roles.Minimal(account, hubcli.Impersonator), acting...), nil
}

// actsAs returns the rights to impersonate the users and groups that roles of the hub now name for the proxy of the
// cluster, and the members of these groups that the impersonator has already: Kubernetes lets the hub give its
// impersonator no others, and keep no others. A user who may not list these roles changes nothing: has are the rules of
// the account.
func (j *Join) actsAs(ctx context.Context, has []rbacv1.PolicyRule) ([]rbacv1.PolicyRule, error) {
	impersonator := &rbacv1.ClusterRole{}
	err := j.Member.Get(ctx, client.ObjectKey{Name: access.Impersonator}, impersonator)
	if apierrors.IsNotFound(err) {
		impersonator, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ClusterRole %s in cluster %q: %w", access.Impersonator, j.Name, err)
	}
	users, err := proxyUsers(ctx, j.Hub)
	if apierrors.IsForbidden(err) {
		fmt.Fprintf(j.Out, "cluster(%s): only administrators and those who were permitted before reach it through the hub, "+
			"because you may not list the ClusterRoles and ClusterRoleBindings of the hub, which name the others\n", j.Name)
		if roles.IsFull(has) {
			has = nil
			if _, ours := (access.Allowed{}).Role(impersonator, "", access.Identity{}); ours && impersonator != nil {
				has = impersonator.Rules
			}
		}
		return namedUsers(has), nil
	}
	allowed := users.ForCluster(j.Name, nil)
	if role, ours := allowed.Role(impersonator, "", access.Identity{}); ours && err == nil {
		return role.Rules, nil
	}
	return allowed.Rules(nil), err
}

// namedUsers returns the rules that permit to impersonate users and groups by name, without the names of Kubernetes.
func namedUsers(rules []rbacv1.PolicyRule) (all []rbacv1.PolicyRule) {
	for _, r := range rules {
		if !slices.Equal(r.Verbs, []string{"impersonate"}) || slices.Contains(r.Resources, "serviceaccounts") {
			continue
		}
		r.ResourceNames = slices.DeleteFunc(slices.Clone(r.ResourceNames), func(name string) bool {
			return strings.HasPrefix(name, "system:")
		})
		if len(r.ResourceNames) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// caBundle returns the authorities that the member's certificate was verified with in this connection. Without them,
// the system roots verified it, and the member's own CA would be wrong.
func (j *Join) caBundle(ctx context.Context) []byte {
	if tls := j.Endpoint.Config.TLSClientConfig; len(tls.CAData) > 0 || !tls.Insecure {
		return tls.CAData
	}
	root := &corev1.ConfigMap{}
	if err := j.Member.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-root-ca.crt"},
		root); err != nil {
		return nil // the current setting verifies nothing
	}
	return []byte(root.Data["ca.crt"])
}

// describe keeps settings of users on the Cluster that no flag sets.
func (j *Join) describe(cluster *clusterv1alpha1.Cluster, id string) {
	spec := &cluster.Spec
	spec.ID = id
	spec.SyncMode = clusterv1alpha1.Push
	spec.APIEndpoint = j.Endpoint.Config.Host
	spec.InsecureSkipTLSVerification = j.Endpoint.Config.Insecure
	spec.ProxyURL = j.Endpoint.Proxy
	spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: j.Namespace, Name: j.Name}
	spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: j.Namespace, Name: j.Name +
		"-impersonator"}
	spec.Provider, spec.Region = cmp.Or(j.Provider, spec.Provider), cmp.Or(j.Region, spec.Region)
	if len(j.Zones) > 0 {
		spec.Zones = j.Zones
	}
}

// ensure creates or updates an object with set, and labels it as the system's. It writes nothing if the object is up to
// date.
func ensure(ctx context.Context, c client.Client, obj client.Object, set func()) error {
	err := createOrUpdate(ctx, c, obj, func() {
		fields.SetLabel(obj, workv1alpha2.SystemLabel, "true")
		if set != nil {
			set()
		}
	})
	if err != nil {
		return fmt.Errorf("write %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// createOrUpdate creates or updates an object with set, and retries conflicts: clusters that join at the same time
// share a namespace, and controllers write a new Cluster at once.
func createOrUpdate(ctx context.Context, c client.Client, obj client.Object, set func()) error {
	return retry.OnError(retry.DefaultBackoff, commit.Stale, func() error {
		_, err := controllerutil.CreateOrUpdate(ctx, c, obj, func() error { set(); return nil })
		return err
	})
}
