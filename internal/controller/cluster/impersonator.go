package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/cluster/credential"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
)

const (
	// grantCheck is the interval between checks of the impersonator's permissions without a known change: the member's
	// objects may have been changed or overwritten with old data.
	grantCheck = time.Minute
)

// letImpersonate grants the account of spec.impersonatorSecretRef in the member the permission to impersonate the users
// that the hub's roles admit to the proxy of the cluster. It checks after changes of these users, and rarely otherwise.
// It keeps objects that users of the member wrote or changed. A failure only causes an event, because it concerns only
// users of the proxy.
func (c *collector) letImpersonate(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster) {
	ref := cluster.Spec.ImpersonatorSecretRef
	if ref == nil || cluster.DeletionTimestamp != nil { // permissions in a leaving cluster are removed at the end
		return
	}
	grants, changed, err := c.Grants(ctx)
	if err != nil {
		ctrl.Log.WithName("cluster-status").Error(err, "list the users that the hub lets into clusters", "cluster",
			cluster.Name)
		return
	}
	c.followGrants(changed)
	allowed := grants.ForCluster(cluster.Name, cluster.Annotations)
	of := fmt.Sprintf("%s %s/%s %s", cluster.UID, ref.Namespace, ref.Name, allowed)
	if c.impersonators.holds(cluster.Name, of, c.Clock.Now(), grantCheck) {
		return
	}
	c.impersonators.set(cluster.Name, of, c.Clock.Now().Add(grantCheck))
	granted, err := c.grant(ctx, m, ref, allowed)
	if ctx.Err() != nil {
		return
	}
	switch {
	case err == nil:
		c.reported.Forget(cluster.Name)
		if granted {
			c.auth.RecordSuccess(workv1alpha2.EventSyncImpersonationSucceed, "Sync impersonation config succeed.", cluster)
		}
		return
	case !errors.Is(err, member.ErrNotOwner): // the condition Ready reports it
		why := fmt.Sprintf("grant the hub permission to impersonate its users in cluster %q, which requests through clusters/proxy need: %v",
			cluster.Name, roles.Explained(cluster.Name, err))
		if c.reported.IsNew(cluster.Name, why) {
			c.auth.Event(cluster, corev1.EventTypeWarning, workv1alpha2.EventSyncImpersonationFailed, why)
		}
	}
	if !apierrors.IsForbidden(err) && !errors.Is(err, acting.ErrTheirs) {
		c.impersonators.Delete(cluster.Name)
	}
}

// followGrants triggers a check of all members when the admitted users change.
func (c *collector) followGrants(changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changed == nil || c.following == changed {
		return
	}
	c.following = changed
	go func() {
		select {
		case <-changed:
		case <-c.ctx.Done():
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, look := range c.looks {
			look.trigger()
		}
	}()
}

// grant writes the permissions for the allowed users in the member, and reports whether that changed anything.
func (c *collector) grant(ctx context.Context, m *member.Member, ref *clusterv1alpha1.LocalSecretReference,
	allowed access.Allowed) (wrote bool, err error) {
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return false, client.IgnoreNotFound(err) // the proxy reports it to its users
	}
	token := string(secret.Data[member.TokenKey])
	of, ok := credential.Read(token)
	if !ok {
		return false, nil // other kinds of users have their own permissions
	}
	hub := string(c.Members.Hub())
	kept, err := acting.Keep(ctx, m.Client(), hub, allowed, access.Identity{})
	if err != nil && !errors.Is(err, acting.ErrTheirs) && !apierrors.IsForbidden(err) {
		return false, err
	}
	bound, failed := acting.Bind(ctx, m.Client(), hub, of.Namespace, of.Account, func() error {
		accounts, err := m.Accounts()
		if err != nil {
			return err
		}
		return member.VerifyToken(ctx, accounts, token, of.Namespace, of.Account)
	})
	return kept || bound, errors.Join(err, failed)
}
