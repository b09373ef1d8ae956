package joincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/agent"
	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/cli/membercli"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/explain/leave"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

func NewUnjoin(hub *hubcli.HubFlags) *cobra.Command {
	u := &unjoin{}
	return u.command(hub, &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Remove a cluster from the fleet",
		Long: `Deletes the cluster from the hub, waits until the objects that the hub sent there are deleted, and, with --cluster-kubeconfig, removes
the hub's accounts from the cluster.

It first lists what will be deleted: objects by kind, and each PersistentVolumeClaim by name. On a terminal it then asks;
elsewhere use --yes. Objects that a policy preserves are kept, with their namespaces; --keep-workloads keeps everything.

Nothing can be deleted in a cluster that is not responding: its workloads may keep running there while their replicas are also placed in
other clusters. --force removes such a cluster from the hub. When it is joined again, the hub takes over the objects that still belong
there, and "argosy orphans" lists the others. When called as karmadactl, the command does not ask and does not require --force.`,
		Example: `  argosy unjoin eu --cluster-kubeconfig eu.kubeconfig
  argosy unjoin eu --dry-run
  argosy unjoin eu --keep-workloads`,
	})
}

func NewUnregister(hub *hubcli.HubFlags) *cobra.Command {
	u := &unjoin{pull: true}
	cmd := u.command(hub, &cobra.Command{
		Use:   "unregister NAME",
		Short: "Remove a cluster in Pull mode from the fleet",
		Long: `Deletes the cluster from the hub, waits until its agent has deleted the objects that the hub sent there, and, with
--cluster-kubeconfig, removes the agent from the cluster. The hub revokes the permissions of the agent.

It lists what will be deleted and asks, as "argosy unjoin" does. If the agent does not respond, --force removes the cluster from the hub,
and its objects stay in the cluster.`,
		Example: `  argosy unregister eu --cluster-kubeconfig eu.kubeconfig
  argosy unregister eu --keep-workloads`,
	})
	cmd.Flags().StringVar(&u.agentNamespace, "agent-namespace", agent.DefaultNamespace,
		"namespace of the agent in the cluster")
	cmd.Flags().StringVar(&hub.Kubeconfig, "karmada-config", hub.Kubeconfig, "the same as --kubeconfig")
	hubcli.IgnoredFlags(cmd, hubcli.UnregisterFlags)
	return cmd
}

// command adds the arguments, the flags and the action to a command.
func (u *unjoin) command(hub *hubcli.HubFlags, cmd *cobra.Command) *cobra.Command {
	flags := &hubcli.MemberFlags{}
	cmd.Args, cmd.ValidArgsFunction = hubcli.OneArg("the name of the cluster"),
		hubcli.FirstArgument(hubcli.CompleteNames(hub, "clusters.cluster.karmada.io"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		u.name, u.namespace, u.out, u.colors = args[0], flags.Namespace, cmd.OutOrStdout(), hubcli.Colors(cmd,
			cmd.OutOrStdout())
		if hub.IsKarmadactl() { // scripts for karmadactl do not know these flags
			u.yes, u.dead = true, true
		}
		u.answers = hubcli.ConfirmationInput(cmd)
		if u.wait <= 0 {
			return fmt.Errorf("--wait is %s and must be a positive duration", u.wait)
		}
		if flags.Kubeconfig != "" {
			e, err := flags.Endpoint(u.name)
			if err != nil {
				return err
			}
			u.host = e.Config.Host
			u.contents = func(ctx context.Context, namespace string) ([]execute.Content, error) {
				return member.ContentsAt(ctx, e.Config, u.name, namespace)
			}
			if u.member, err = e.Client(); err != nil {
				return Unreachable(u.name, u.host, err)
			}
		}
		var err error
		if u.hub, err = hub.Client(); err != nil {
			return err
		}
		// The hub cannot reach a cluster in Pull mode.
		if config, err := hub.ToRESTConfig(); err == nil && !u.pull {
			u.probe = func(ctx context.Context) error { return hubcli.Responds(ctx, config, u.name) }
			u.orphans = func(ctx context.Context) ([]membercli.Orphan, error) {
				return membercli.FindOrphans(ctx, config, []string{u.name})
			}
		}
		return u.run(cmd.Context())
	}
	flags.Bind(cmd.Flags())
	cmd.Flags().BoolVar(&u.force, "force", false,
		"remove the cluster even if it is not responding, or the hub's objects there are not deleted in time")
	cmd.Flags().BoolVarP(&u.yes, "yes", "y", false, "do not ask for confirmation before deleting the hub's objects there")
	cmd.Flags().BoolVar(&u.keep, "keep-workloads", false, "keep all objects that the hub sent to the cluster")
	cmd.Flags().DurationVar(&u.wait, "wait", 10*time.Minute, "how long to wait until everything is deleted")
	cmd.Flags().BoolVar(&u.dryRun, "dry-run", false, "check everything and change nothing")
	return cmd
}

// unjoin removes a cluster from the fleet.
type unjoin struct {
	name, namespace string
	// pull is true for a cluster in Pull mode, whose agent is in agentNamespace.
	pull           bool
	agentNamespace string
	force, dryRun  bool
	yes, keep      bool
	// dead allows a cluster that does not respond to leave.
	dead bool
	// leftover is true if the hub has no cluster of the name. renamed is true if the member is joined under another one,
	// which uses the impersonator and the Lease.
	leftover, renamed bool
	wait              time.Duration
	// answers is the terminal of the user; nil if there is none.
	answers io.Reader

	hub client.Client
	// member is nil without a kubeconfig of the member: then nothing is removed there. host is its address.
	member client.Client
	host   string
	// probe checks through the hub whether the member responds; nil if the check is not possible.
	probe func(context.Context) error
	// orphans returns the orphans of this hub in the member; nil if unknown.
	orphans func(context.Context) ([]membercli.Orphan, error)
	// contents lists the objects in a namespace of the member.
	contents func(ctx context.Context, namespace string) ([]execute.Content, error)
	out      io.Writer
	colors   bool
}

func (u *unjoin) run(ctx context.Context) error {
	cluster, err := hubcli.GetCluster(ctx, u.hub, u.name)
	if apierrors.IsNotFound(err) && u.member != nil {
		return u.removeLeftover(ctx, err)
	}
	if err != nil {
		return err
	}
	switch is := membership.Pulls(cluster); {
	case is && !u.pull:
		return fmt.Errorf("cluster %q is registered in Pull mode; use unregister", u.name)
	case !is && u.pull:
		return fmt.Errorf("cluster %q is joined in Push mode; use unjoin", u.name)
	}
	if err := u.checkMember(ctx, cluster); err != nil {
		return err
	}
	if u.probe != nil && membership.IsReady(cluster) && u.probe(ctx) != nil {
		// the hub is about to see it
		meta.RemoveStatusCondition(&cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	}
	going, err := u.preview(ctx, cluster)
	if err != nil {
		return err
	}
	leaves := !membership.IsReady(cluster) && going.Objects() > 0
	// In a cluster that another hub manages nothing is deleted anyway.
	if leaves && !membership.ManagedByAnother(cluster) && !u.force && !u.dead && !u.keep {
		return fmt.Errorf("cluster %q %s, so nothing can be deleted there: repair the cluster, or use --force to remove it from the hub and leave the objects listed above in the cluster", u.name, unready(cluster))
	}
	// Check that the hub permits the deletion before the user is asked.
	if err := u.delete(ctx, cluster.DeepCopy(), client.DryRunAll); err != nil {
		return err
	}
	if u.dryRun {
		fmt.Fprintf(u.out, "cluster(%s) can be %s (dry run: nothing was changed)\n", u.name, u.participle())
		return nil
	}
	if err := u.confirm(going); err != nil {
		return err
	}

	if err := u.leave(ctx, cluster); err != nil {
		return err
	}
	if err := u.untilGone(ctx, cluster, going.Objects()); err != nil {
		return err
	}
	// The garbage collector does the same for secrets that know their owner; those of other tools may not.
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{cluster.Spec.SecretRef,
		cluster.Spec.ImpersonatorSecretRef} {
		if ref == nil || ref.Namespace != u.namespace {
			continue
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
		if err := u.hub.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete secret %s/%s of the hub: %w", ref.Namespace, ref.Name, err)
		}
	}
	if u.member == nil && u.pull {
		fmt.Fprintf(u.out, "the agent in cluster(%[1]s) is kept, without access to the hub; "+
			"`argosy unregister %[1]s --cluster-kubeconfig FILE` removes it\n", u.name)
	} else if u.member == nil {
		fmt.Fprintf(u.out, "the hub's accounts in cluster(%[1]s) are kept; "+
			"`argosy unjoin %[1]s --cluster-kubeconfig FILE` removes them\n", u.name)
	} else if _, err := u.cleanMember(ctx); err != nil {
		err = fmt.Errorf("cluster %q is removed from the fleet, but the hub's accounts there are not deleted: %w", u.name,
			err)
		if !u.force {
			return err
		}
		fmt.Fprintln(u.out, err)
	}
	if leaves {
		fmt.Fprintf(u.out, "objects that the hub could not delete are still in cluster(%s); when it is joined again, `argosy orphans` lists those that no longer belong there\n", u.name)
	}
	fmt.Fprintf(u.out, "cluster(%s) is %s successfully\n", u.name, u.participle())
	return nil
}

// removeLeftover removes what this hub left in a member that it no longer manages under the name. absent is the error
// if there is nothing.
func (u *unjoin) removeLeftover(ctx context.Context, absent error) error {
	hub, err := member.Identity(ctx, u.hub)
	if err != nil {
		return err
	}
	id, err := member.ClusterID(ctx, u.member)
	if err != nil {
		return Unreachable(u.name, u.host, err)
	}
	ours := false
	if u.pull {
		lease, err := ownershipLease(ctx, u.member)
		if err != nil {
			return fmt.Errorf("read which hub manages the cluster: %w", err)
		}
		registered, err := agentOf(ctx, u.member, u.agentNamespace)
		if err != nil {
			return err
		}
		seen := tenure.Read(lease)
		ours = registered == u.name && seen != nil && seen.Hub == hub
	} else {
		others := ""
		if ours, others, err = u.accountUse(ctx, hub); err != nil {
			return err
		}
		if !ours && others != "" {
			return fmt.Errorf("the account karmada-%s in the cluster has %s: it is kept", u.name, others)
		}
	}
	if !ours {
		return absent
	}
	var members clusterv1alpha1.ClusterList
	if err := u.hub.List(ctx, &members); err != nil {
		return fmt.Errorf("list the clusters of the hub: %w", err)
	}
	u.leftover, u.renamed = true, slices.ContainsFunc(members.Items, func(c clusterv1alpha1.Cluster) bool {
		return isMember(&c, id, u.host)
	})
	if u.dryRun {
		fmt.Fprintf(u.out, "what this hub left of cluster(%s) can be removed (dry run: nothing was changed)\n", u.name)
		return nil
	}
	if removed, err := u.cleanMember(ctx); err != nil || !removed {
		return err
	}
	fmt.Fprintf(u.out, "what this hub left of cluster(%s) is removed\n", u.name)
	return nil
}

// participle describes the command's effect on a cluster.
func (u *unjoin) participle() string {
	if u.pull {
		return "unregistered"
	}
	return "unjoined"
}

// isMember reports whether the cluster with that identity, at that address, is the member. Users may write a Cluster
// without an identity.
func isMember(c *clusterv1alpha1.Cluster, id, host string) bool {
	if c.Spec.ID != "" {
		return c.Spec.ID == id
	}
	return host != "" && c.Spec.APIEndpoint == host
}

// checkMember checks, before anything is changed, that the kubeconfig belongs to the member and that the member
// responds. Users of a member may write its identity, so the kubeconfig must not have the address of another member.
func (u *unjoin) checkMember(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if u.member == nil {
		return nil
	}
	id, err := member.ClusterID(ctx, u.member)
	switch {
	case err != nil && !u.force:
		return fmt.Errorf("%w; --force removes it from the hub anyway", Unreachable(u.name, u.host, err))
	case err == nil && !isMember(cluster, id, u.host):
		return fmt.Errorf("--cluster-kubeconfig is for another cluster (id %s, at %s) than %q (id %s, at %s), which stays "+
			"in the fleet; without --cluster-kubeconfig, the hub's accounts in the cluster are kept", id, u.host, u.name,
			cmp.Or(cluster.Spec.ID, "unknown"), cluster.Spec.APIEndpoint)
	case cluster.Spec.APIEndpoint == u.host:
		return nil
	}
	var members clusterv1alpha1.ClusterList
	if err := u.hub.List(ctx, &members); err != nil {
		return fmt.Errorf("list the clusters of the hub: %w", err)
	}
	for i := range members.Items {
		if other := &members.Items[i]; other.Name != u.name && u.host != "" && other.Spec.APIEndpoint == u.host {
			return fmt.Errorf("--cluster-kubeconfig is for cluster %q at %s: cluster %q stays in the fleet", other.Name,
				u.host, u.name)
		}
	}
	return nil
}

func (u *unjoin) works(ctx context.Context) ([]workv1alpha1.Work, error) {
	var works workv1alpha1.WorkList
	if err := u.hub.List(ctx, &works, client.InNamespace(names.ExecutionSpace(u.name))); err != nil {
		return nil, fmt.Errorf("list works of cluster %q: %w", u.name, err)
	}
	return works.Items, nil
}

// preview prints what happens to the objects that the hub sent to the cluster.
func (u *unjoin) preview(ctx context.Context, cluster *clusterv1alpha1.Cluster) (leave.Outcome, error) {
	works, err := u.works(ctx)
	if err != nil {
		return leave.Outcome{}, err
	}
	if u.keep {
		cluster = cluster.DeepCopy()
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, wellknown.KeepWorkloadsAnnotation, "true")
	}
	going := leave.Preview(cluster, works)
	for _, line := range going.Lines(u.name) {
		fmt.Fprintln(u.out, line)
	}
	if !membership.IsReady(cluster) && len(works) > 0 {
		fmt.Fprintf(u.out, "cluster(%s) %s: nothing can be deleted there\n", u.name, unready(cluster))
		bindings, err := scope.Bindings.List(ctx, u.hub)
		if err != nil {
			return going, fmt.Errorf("list bindings: %w", err)
		}
		if replicas, workloads := leave.ReplicasToMove(u.name, bindings); replicas > 0 {
			fmt.Fprintf(u.out, "%s of %s may keep running there while they are placed in other clusters as well\n",
				text.Count(replicas, "replica"), text.Count(workloads, "workload"))
		}
	}
	if membership.IsReady(cluster) {
		u.reportOrphans(ctx)
	}
	return going, nil
}

// reportOrphans prints which objects stay in the member because they have no Work. If that is unknown, the cluster
// leaves anyway.
func (u *unjoin) reportOrphans(ctx context.Context) {
	if u.orphans == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hubcli.RequestTimeout)
	defer cancel()
	found, _ := u.orphans(ctx)
	if what := membercli.DescribeOrphans(found); what != "" {
		fmt.Fprintf(u.out, "cluster(%s) keeps %s; `argosy orphans -C %s` lists them, `argosy orphans delete` deletes them\n",
			u.name, what, u.name)
	}
}

// unready returns why nothing can be deleted in a cluster: most clusters do not respond, but another hub may manage it.
func unready(cluster *clusterv1alpha1.Cluster) string {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Message == "" || ready.Reason == clusterv1alpha1.ReasonClusterNotReachable {
		return "is not responding"
	}
	return fmt.Sprintf("is not ready (%s: %s)", ready.Reason, ready.Message)
}

// confirm asks whether to delete the listed objects.
func (u *unjoin) confirm(going leave.Outcome) error {
	switch {
	case u.yes || !going.Deletes():
		return nil
	case u.answers == nil:
		return fmt.Errorf("the objects above would be deleted in cluster %q: confirm with --yes, or keep everything there with --keep-workloads", u.name)
	}
	verb := "Unjoin"
	if u.pull {
		verb = "Unregister"
	}
	return hubcli.Confirm(u.out, u.answers, fmt.Sprintf("%s cluster %s and delete the objects above?", verb, u.name))
}

// leave has the cluster leave the fleet; the hub's controllers do the rest.
func (u *unjoin) leave(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if u.keep && !membership.KeepsWorkloads(cluster) {
		patch := []byte(text.JSON(map[string]any{"metadata": map[string]any{"uid": cluster.UID,
			"annotations": map[string]string{wellknown.KeepWorkloadsAnnotation: "true"}}}))
		if err := u.hub.Patch(ctx, cluster.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("set cluster %q to keep its workloads: %w", u.name, err)
		}
	}
	return u.delete(ctx, cluster)
}

// delete deletes a cluster on the hub. A cluster that is gone is no error.
func (u *unjoin) delete(ctx context.Context, cluster *clusterv1alpha1.Cluster, options ...client.DeleteOption) error {
	uid := cluster.UID
	err := u.hub.Delete(ctx, cluster, append(options, client.Preconditions{UID: &uid})...)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete cluster %q: %w", u.name, err)
	}
	return nil
}

const (
	// gonePeriod is the interval of checks whether an object is gone, countPeriod the interval of counts of what is left.
	gonePeriod  = 100 * time.Millisecond
	countPeriod = time.Second
	// namespaceWait bounds the wait for the deletion of the namespace of the hub's accounts.
	namespaceWait = time.Minute
)

// untilGone waits until nothing is left of the cluster, and shows the progress out of the initial number of objects.
func (u *unjoin) untilGone(ctx context.Context, cluster *clusterv1alpha1.Cluster, objects int) error {
	shown := hubcli.NewSteps(u.out, u.colors)
	shown.Begin("being removed")
	if !shown.Live {
		fmt.Fprintf(u.out, "cluster(%s) is being removed\n", u.name)
	}
	key, counted, was := client.ObjectKeyFromObject(cluster), time.Now(), ""
	err := wait.PollUntilContextTimeout(ctx, gonePeriod, u.wait, true, func(ctx context.Context) (bool, error) {
		now := &clusterv1alpha1.Cluster{}
		err := u.hub.Get(ctx, key, now)
		var refused apierrors.APIStatus
		switch {
		case apierrors.IsNotFound(err) || err == nil && now.UID != cluster.UID:
			return true, nil
		case errors.As(err, &refused):
			return false, err
		case err != nil:
			return false, nil // the hub may respond again
		}
		if time.Since(counted) < countPeriod {
			return false, nil
		}
		counted = time.Now()
		left := &metav1.PartialObjectMetadataList{}
		left.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
		if err := u.hub.List(ctx, left, client.InNamespace(names.ExecutionSpace(u.name))); err != nil {
			return false, nil //nolint:nilerr // it is only shown
		}
		far := "removing its namespace " + names.ExecutionSpace(u.name) + " from the hub, which takes some seconds"
		if len(left.Items) > 0 {
			far = fmt.Sprintf("%d of %s removed", max(objects-len(left.Items), 0), text.Count(objects, "object"))
		}
		shown.Progress("%s", far)
		if !shown.Live && far != was {
			fmt.Fprintln(u.out, far)
		}
		was = far
		return false, nil
	})
	if err == nil {
		shown.Done("%s", text.Count(objects, "object"))
		return nil
	}
	shown.Fail()
	if ctx.Err() != nil {
		return fmt.Errorf("the removal of cluster %q continues in the background: %w", u.name, err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	why, err := u.deletionWaitsFor(ctx)
	if err != nil {
		return fmt.Errorf("cluster %q is not removed after %s, and the objects that it waits for cannot be listed: %s; "+
			"the removal continues in the background", u.name, u.wait, hubcli.NoResponseCause(err, hubcli.RequestTimeout))
	}
	if !u.force {
		return fmt.Errorf("cluster %q is not removed after %s: %s; the removal continues in the background; --force does not wait for it", u.name, u.wait, why)
	}
	fmt.Fprintf(u.out, "cluster(%s) is removed although %s\n", u.name, why)
	return u.abandon(ctx, cluster)
}

// deletionWaitsFor returns what the deletion of a cluster waits for.
func (u *unjoin) deletionWaitsFor(ctx context.Context) (string, error) {
	bindings, err := scope.Bindings.List(ctx, u.hub)
	if err != nil {
		return "", fmt.Errorf("list bindings: %w", err)
	}
	var holding []string
	for _, b := range bindings {
		if membership.Targets(b, u.name) {
			holding = append(holding, commit.Name(b))
		}
	}
	const shown = 3
	switch {
	case len(holding) > shown:
		return fmt.Sprintf("%s and %d other bindings still target it", strings.Join(holding[:shown], ", "),
			len(holding)-shown), nil
	case len(holding) > 0:
		return strings.Join(holding, ", ") + " still target it", nil
	}
	works, err := u.works(ctx)
	if err != nil {
		return "", err
	}
	if len(works) > 0 {
		return fmt.Sprintf("%d of its Works are not removed yet, such as %s", len(works), works[0].Name), nil
	}
	return "its execution space is not removed yet; check that the hub's controllers run", nil
}

// abandon removes a cluster without waiting. Objects in the member stay.
func (u *unjoin) abandon(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	space := names.ExecutionSpace(u.name)
	works, err := u.works(ctx)
	if err != nil {
		return err
	}
	for i := range works {
		w := &works[i]
		if err := u.removeFinalizers(ctx, w, workv1alpha2.ExecutionFinalizer, execute.OrderedFinalizer); err != nil {
			return err
		}
		if err := u.hub.Delete(ctx, w); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete work %s/%s: %w", w.Namespace, w.Name, err)
		}
	}
	if err := u.hub.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}); client.IgnoreNotFound(
		err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete execution space %s: %w", space, err)
	}
	now := &clusterv1alpha1.Cluster{}
	if err := u.hub.Get(ctx, client.ObjectKeyFromObject(cluster), now); err != nil {
		return client.IgnoreNotFound(err)
	}
	return u.removeFinalizers(ctx, now, workv1alpha2.ClusterFinalizer)
}

// removeFinalizers removes finalizers from an object as it is now: the hub's controllers may write it meanwhile.
func (u *unjoin) removeFinalizers(ctx context.Context, obj client.Object, finalizers ...string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := commit.RemoveFinalizer(ctx, u.hub, obj, finalizers...)
		if !apierrors.IsConflict(err) {
			return err
		}
		if gone := u.hub.Get(ctx, client.ObjectKeyFromObject(obj), obj); gone != nil {
			return client.IgnoreNotFound(gone)
		}
		return err
	})
}

// accountUse reports whether this hub has tokens of its account in the member, and what others have of it; empty for
// nothing.
func (u *unjoin) accountUse(ctx context.Context, hub string) (own bool, others string, err error) {
	account, uses := "karmada-"+u.name, []string{}
	var secrets corev1.SecretList
	if err := u.member.List(ctx, &secrets, client.InNamespace(u.namespace)); err != nil {
		return false, "", fmt.Errorf("list the Secrets in %s: %w", u.namespace, err)
	}
	for _, s := range secrets.Items {
		by, token := s.Labels[wellknown.HubLabel], s.Labels[wellknown.TokenOfLabel] == account
		if own = own || token && by == hub; token && by != hub {
			uses = append(uses, fmt.Sprintf("tokens of another hub (%q)", by))
		}
		if s.Type == corev1.SecretTypeServiceAccountToken && s.Annotations[corev1.ServiceAccountNameKey] == account {
			uses = append(uses, "a token that does not expire, in the Secret "+s.Name)
		}
	}
	binding := &rbacv1.ClusterRoleBinding{}
	if err := u.member.Get(ctx, client.ObjectKey{Name: controllerRole(account)}, binding); client.IgnoreNotFound(
		err) != nil {
		return false, "", fmt.Errorf("read ClusterRoleBinding %s: %w", controllerRole(account), err)
	}
	if s := binding.Subjects; len(s) > 0 && s[0].Namespace != u.namespace {
		uses = append(uses, fmt.Sprintf("a role that an account in namespace %q uses", s[0].Namespace))
	}
	return own, text.Names(slices.Compact(uses), 3), nil
}

// cleanMember removes what join created in the member. What others use there stays: then it says so, and returns false.
func (u *unjoin) cleanMember(ctx context.Context) (removed bool, err error) {
	if u.pull {
		return true, u.removeAgent(ctx)
	}
	hub, holder, err := u.releaseOwnership(ctx)
	if err != nil {
		return false, err
	}
	account := "karmada-" + u.name
	own, others, err := u.accountUse(ctx, hub)
	if err != nil {
		return false, err
	}
	revoked := []string{account, hubcli.Impersonator}
	if u.renamed {
		revoked = revoked[:1]
	}
	for _, name := range revoked {
		if err := member.RevokeTokens(ctx, u.member, u.namespace, name, hub, "", ""); err != nil {
			return false, err
		}
	}
	if holder != "" && !own && others == "" {
		others = "no tokens of this hub, and " + holder + " manages the cluster"
	}
	if others != "" && (u.leftover || holder != "") {
		fmt.Fprintf(u.out, "cluster(%s): the tokens of this hub are revoked; the account %s is kept, because it has %s\n", u.name, account, others)
		return false, nil
	}
	return true, u.removeAccounts(ctx, account, holder != "")
}

// removeAccounts removes the hub's account in the member and, unless others use it, the impersonator.
func (u *unjoin) removeAccounts(ctx context.Context, account string, shared bool) error {
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	gone := []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("", controllerRole(account))},
		&rbacv1.ClusterRole{ObjectMeta: named("", controllerRole(account))},
		&corev1.Secret{ObjectMeta: named(u.namespace, account)},
		&corev1.ServiceAccount{ObjectMeta: named(u.namespace, account)},
	}
	var accounts corev1.ServiceAccountList
	if err := u.member.List(ctx, &accounts, client.InNamespace(u.namespace)); err != nil {
		return fmt.Errorf("list service accounts: %w", err)
	}
	for _, a := range accounts.Items {
		shared = shared || strings.HasPrefix(a.Name, "karmada-") && a.Name != account && a.Name != hubcli.Impersonator
	}
	if !shared {
		gone = append(gone,
			&rbacv1.ClusterRoleBinding{ObjectMeta: named("", hubcli.Impersonator)},
			&rbacv1.ClusterRole{ObjectMeta: named("", hubcli.Impersonator)},
			&corev1.Secret{ObjectMeta: named(u.namespace, hubcli.Impersonator)},
			&corev1.ServiceAccount{ObjectMeta: named(u.namespace, hubcli.Impersonator)})
	}
	for _, obj := range gone {
		if err := u.member.Delete(ctx, obj); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err)
		}
	}
	if shared {
		return nil
	}
	return u.cleanNamespace(ctx, u.namespace)
}

// removeAgent removes what register created in the member, the agent first: it renews the lease of the hub.
func (u *unjoin) removeAgent(ctx context.Context) error {
	objects := agent.Deployed{Cluster: u.name, Namespace: u.agentNamespace}.Manifests()
	objects[0] = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem,
		Name: agent.LeaderLease}} // instead of the namespace
	for _, obj := range slices.Backward(objects) {
		if err := u.member.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.
			IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err)
		}
	}
	if _, _, err := u.releaseOwnership(ctx); err != nil {
		return err
	}
	if err := u.cleanNamespace(ctx, names.Clusters); err != nil {
		return err
	}
	return u.cleanNamespace(ctx, u.agentNamespace)
}

// cleanNamespace deletes a namespace of the hub in the member, if the hub created it and it contains nothing of others.
func (u *unjoin) cleanNamespace(ctx context.Context, namespace string) error {
	ns := &corev1.Namespace{}
	if err := u.member.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return client.IgnoreNotFound(err)
	}
	made := ns.DeepCopy()
	if namespace == names.Clusters {
		// Earlier hubs and tools did not record that they created the namespace, and no other program uses this name.
		metav1.SetMetaDataAnnotation(&made.ObjectMeta, wellknown.CreatedAnnotation, "true")
	}
	contents, err := u.contents(ctx, namespace)
	if err != nil {
		return err
	}
	observed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(made)
	if err != nil {
		return err
	}
	end, why := execute.EndNamespace(&unstructured.Unstructured{Object: observed}, contents,
		func(types.NamespacedName) execute.WorkState { return execute.WorkStands })
	if end != execute.FateDeleted {
		fmt.Fprintf(u.out, "namespace %s stays in cluster(%s): %s\n", namespace, u.name, why)
		return nil
	}
	if err := u.member.Delete(ctx, ns, client.Preconditions{UID: &ns.UID}); client.IgnoreNotFound(err) != nil &&
		!apierrors.IsConflict(err) {
		return fmt.Errorf("delete namespace %s: %w", namespace, err)
	}
	// Until the namespace is gone, the cluster cannot be joined again.
	err = wait.PollUntilContextTimeout(ctx, gonePeriod, min(u.wait, namespaceWait), true,
		func(ctx context.Context) (bool, error) {
			now := &corev1.Namespace{}
			err := u.member.Get(ctx, client.ObjectKeyFromObject(ns), now)
			return apierrors.IsNotFound(err) || err == nil && now.UID != ns.UID, client.IgnoreNotFound(err)
		})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		fmt.Fprintf(u.out, "namespace %s in cluster(%s) is still being removed\n", namespace, u.name)
		return nil
	}
	return err
}

// releaseOwnership removes the lease of this hub, and returns its identity. holder is another hub that manages the
// member; empty for none.
func (u *unjoin) releaseOwnership(ctx context.Context) (hub, holder string, err error) {
	if hub, err = member.Identity(ctx, u.hub); err != nil {
		return "", "", err
	}
	lease, err := ownershipLease(ctx, u.member)
	if err != nil {
		return "", "", fmt.Errorf("read which hub manages the cluster: %w", err)
	}
	switch seen := tenure.Read(lease); {
	case seen == nil, seen.Hub == hub && u.renamed:
		return hub, "", nil
	case seen.Hub != hub:
		fmt.Fprintf(u.out, "cluster(%s) is managed by %s\n", u.name, seen.Holder())
		return hub, seen.Holder(), nil
	}
	if err := u.member.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
		return "", "", fmt.Errorf("delete %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	return hub, "", nil
}
