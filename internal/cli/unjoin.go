package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/scope"
)

func newUnjoin(hub *hubFlags) *cobra.Command {
	u := &unjoin{}
	flags := &memberFlags{}
	cmd := &cobra.Command{
		Use:   "unjoin NAME",
		Short: "Take a cluster out of the fleet",
		Long: `Deletes the cluster from the hub, waits until what the hub sent there is gone, and, with --cluster-kubeconfig, removes
the hub's accounts from the cluster.`,
		Example: "  argosy unjoin eu --cluster-kubeconfig eu.kubeconfig",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u.name, u.namespace, u.out = args[0], flags.namespace, cmd.OutOrStdout()
			if u.wait <= 0 {
				return fmt.Errorf("--wait is %s, want a positive duration", u.wait)
			}
			if flags.kubeconfig != "" {
				e, err := flags.endpoint()
				if err != nil {
					return err
				}
				u.host = e.config.Host
				if u.member, err = e.client(); err != nil {
					return unreachable(u.name, u.host, err)
				}
			}
			var err error
			if u.hub, err = hub.client(); err != nil {
				return err
			}
			return u.run(cmd.Context())
		},
	}
	flags.bind(cmd.Flags())
	cmd.Flags().BoolVar(&u.force, "force", false, "remove the cluster even if it cannot be reached, or what the hub sent there cannot be removed in time")
	cmd.Flags().DurationVar(&u.wait, "wait", time.Minute, "how long to wait for the cluster to be removed")
	cmd.Flags().BoolVar(&u.dryRun, "dry-run", false, "check everything and change nothing")
	return cmd
}

// unjoin makes a cluster a member no more.
type unjoin struct {
	name, namespace string
	force, dryRun   bool
	wait            time.Duration

	hub client.Client
	// member is nil when its kubeconfig is not given: then nothing is removed there. host is where it is.
	member client.Client
	host   string
	out    io.Writer
}

func (u *unjoin) run(ctx context.Context) error {
	cluster, err := joined(ctx, u.hub, u.name)
	if err != nil {
		return err
	}
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		return fmt.Errorf("cluster %q is registered in Pull mode; use unregister", u.name)
	}
	if err := u.checkMember(ctx, cluster); err != nil {
		return err
	}
	if u.dryRun {
		fmt.Fprintf(u.out, "cluster(%s) can be unjoined (dry run: nothing was changed)\n", u.name)
		return nil
	}

	if err := u.hub.Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete cluster %q: %w", u.name, err)
	}
	if err := u.untilGone(ctx, cluster); err != nil {
		return err
	}
	// The garbage collector does the same for secrets that know their owner; those of other tools may not.
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{cluster.Spec.SecretRef, cluster.Spec.ImpersonatorSecretRef} {
		if ref == nil || ref.Namespace != u.namespace {
			continue
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
		if err := u.hub.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete secret %s/%s of the hub: %w", ref.Namespace, ref.Name, err)
		}
	}
	if u.member == nil {
		fmt.Fprintf(u.out, "the hub's accounts in cluster(%s) stay; unjoin with --cluster-kubeconfig removes them\n", u.name)
	} else if err := u.cleanMember(ctx); err != nil {
		err = fmt.Errorf("cluster %q is out of the fleet, but the hub's accounts there are left: %w", u.name, err)
		if !u.force {
			return err
		}
		fmt.Fprintln(u.out, err)
	}
	fmt.Fprintf(u.out, "cluster(%s) is unjoined successfully\n", u.name)
	return nil
}

// checkMember makes sure, before anything is changed, that the kubeconfig given is that of the member and that it answers.
func (u *unjoin) checkMember(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if u.member == nil {
		return nil
	}
	id, err := clusterID(ctx, u.member)
	switch {
	case err != nil && u.force:
		return nil
	case err != nil:
		return fmt.Errorf("%w; --force removes it from the hub anyway", unreachable(u.name, u.host, err))
	case cluster.Spec.ID != "" && id != cluster.Spec.ID:
		return fmt.Errorf("--cluster-kubeconfig leads to another cluster (id %s) than %q (id %s)", id, u.name, cluster.Spec.ID)
	}
	return nil
}

func (u *unjoin) untilGone(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	key := client.ObjectKeyFromObject(cluster)
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, u.wait, true, func(ctx context.Context) (bool, error) {
		now := &clusterv1alpha1.Cluster{}
		err := u.hub.Get(ctx, key, now)
		return apierrors.IsNotFound(err) || err == nil && now.UID != cluster.UID, client.IgnoreNotFound(err)
	})
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	why, err := u.heldBy(ctx)
	if err != nil {
		return err
	}
	if !u.force {
		return fmt.Errorf("cluster %q is not removed after %s: %s; it goes on in the background; --force does not wait for that", u.name, u.wait, why)
	}
	fmt.Fprintf(u.out, "cluster(%s) is removed although %s\n", u.name, why)
	return u.abandon(ctx, cluster)
}

// heldBy says what a cluster under deletion waits for.
func (u *unjoin) heldBy(ctx context.Context) (string, error) {
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
		return fmt.Sprintf("%s and %d other bindings still target it", strings.Join(holding[:shown], ", "), len(holding)-shown), nil
	case len(holding) > 0:
		return strings.Join(holding, ", ") + " still target it", nil
	}
	var works workv1alpha1.WorkList
	if err := u.hub.List(ctx, &works, client.InNamespace(names.ExecutionSpace(u.name))); err != nil {
		return "", fmt.Errorf("list works of cluster %q: %w", u.name, err)
	}
	if len(works.Items) > 0 {
		return fmt.Sprintf("%d of its Works are not removed yet, such as %s", len(works.Items), works.Items[0].Name), nil
	}
	return "its execution space is not removed yet; check that the hub's controllers run", nil
}

// abandon removes a cluster without what it waits for. Objects in the member stay.
func (u *unjoin) abandon(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	space := names.ExecutionSpace(u.name)
	var works workv1alpha1.WorkList
	if err := u.hub.List(ctx, &works, client.InNamespace(space)); err != nil {
		return fmt.Errorf("list works of cluster %q: %w", u.name, err)
	}
	for i := range works.Items {
		w := &works.Items[i]
		if err := commit.RemoveFinalizer(ctx, u.hub, w, workv1alpha2.ExecutionFinalizer, execute.OrderedFinalizer); err != nil {
			return err
		}
		if err := u.hub.Delete(ctx, w); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete work %s/%s: %w", w.Namespace, w.Name, err)
		}
	}
	if err := u.hub.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete execution space %s: %w", space, err)
	}
	now := &clusterv1alpha1.Cluster{}
	if err := u.hub.Get(ctx, client.ObjectKeyFromObject(cluster), now); err != nil {
		return client.IgnoreNotFound(err)
	}
	return commit.RemoveFinalizer(ctx, u.hub, now, workv1alpha2.ClusterFinalizer)
}

// cleanMember removes what join made in the member; what another hub uses there stays.
func (u *unjoin) cleanMember(ctx context.Context) error {
	account := "karmada-" + u.name
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
	shared := false
	for _, a := range accounts.Items {
		shared = shared || strings.HasPrefix(a.Name, "karmada-") && a.Name != account && a.Name != impersonator
	}
	if !shared {
		gone = append(gone,
			&rbacv1.ClusterRoleBinding{ObjectMeta: named("", impersonator)},
			&rbacv1.ClusterRole{ObjectMeta: named("", impersonator)},
			&corev1.Secret{ObjectMeta: named(u.namespace, impersonator)},
			&corev1.ServiceAccount{ObjectMeta: named(u.namespace, impersonator)},
			&corev1.Namespace{ObjectMeta: named("", u.namespace)})
	}
	for _, obj := range gone {
		if err := u.member.Delete(ctx, obj); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}
