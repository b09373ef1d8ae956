package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/credential"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/member"
)

const (
	// tokenCheck is the interval between checks of the tokens of a member, by the monotonic clock. A token is not rotated
	// more often, so wrong wall clocks of hub and member do no harm.
	tokenCheck = time.Hour
	// tokenRetry is the delay after a failed rotation.
	tokenRetry = time.Minute
	// reasonTokenRotated: the hub has a new token for the cluster.
	//
	//reference:event Normal on Cluster
	reasonTokenRotated = "MemberTokenRotated"
	// reasonTokenUnrotated: a token of the hub for the cluster is due for renewal and could not be replaced.
	//
	//reference:event Warning on Cluster
	reasonTokenUnrotated = "MemberTokenNotRotated"
)

// rotateTokens replaces the tokens of a member that are due for renewal, and revokes the old ones. It ignores tokens
// that do not belong to a service account; the user must renew them.
func (c *collector) rotateTokens(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster) {
	if c.tokens.holds(cluster.Name, m.TokenID(), c.Clock.Now(), tokenCheck) {
		return // a new token is checked at once
	}
	var failed error
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{cluster.Spec.SecretRef,
		cluster.Spec.ImpersonatorSecretRef} {
		if ref == nil {
			continue
		}
		if err := c.rotateToken(ctx, m, cluster, *ref); err != nil && failed == nil {
			failed = err
		}
	}
	if ctx.Err() != nil {
		return
	}
	next, trouble := tokenCheck, 0.0
	if failed != nil {
		next, trouble = tokenRetry, 1
		c.events.Eventf(cluster, corev1.EventTypeWarning, reasonTokenUnrotated,
			"a token of the hub for the cluster is due for renewal, but could not be replaced: %v; "+
				"the hub retries; `argosy join %s --cluster-kubeconfig FILE` also creates new ones", roles.Explained(cluster.Name, failed),
			cluster.Name)
		ctrl.Log.WithName("cluster-status").Error(failed, "rotate the hub's token", "cluster", cluster.Name)
	}
	tokenFailed.WithLabelValues(cluster.Name).Set(trouble)
	c.tokens.set(cluster.Name, m.TokenID(), c.Clock.Now().Add(next))
}

func (c *collector) rotateToken(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster,
	ref clusterv1alpha1.LocalSecretReference) error {
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return client.IgnoreNotFound(err) // the condition Ready reports it
	}
	was, ok := credential.Read(string(secret.Data[member.TokenKey]))
	if !ok {
		return nil
	}
	observeToken(cluster.Name, was)
	accounts, err := m.Accounts()
	if err != nil {
		return err
	}
	hub := string(c.Members.Hub())
	if !was.Due(c.Clock.Now()) {
		return c.revoke(ctx, accounts, was, secret) // retry an earlier revocation
	}
	if err := member.VerifyToken(ctx, accounts, string(secret.Data[member.TokenKey]), was.Namespace,
		was.Account); err != nil {
		return err
	}
	token, anchor, err := member.IssueToken(ctx, accounts, was.Namespace, was.Account, hub)
	if err != nil {
		return err
	}
	secret.Data[member.TokenKey] = []byte(token)
	if was.Endless() {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, wellknown.ReplacesTokenAnnotation, was.Secret)
	}
	if err := c.client.Update(ctx, secret); err != nil {
		// A user renewed it meanwhile. The unused new token is revoked with the next rotation.
		return fmt.Errorf("write Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	// Use the new token from here on. It revokes the old one, so that this happens only if the new one works.
	if _, err := c.Members.Refresh(ctx, cluster.Name); err != nil {
		return err
	}
	text := "until %s; the old token is revoked"
	if was.Endless() {
		text = "until %s; the old token, which did not expire, is revoked"
	}
	is, _ := credential.Read(token)
	is.Namespace, is.Account, is.Secret = was.Namespace, was.Account, anchor
	observeToken(cluster.Name, is)
	if err := c.revoke(ctx, accounts, is, secret); err != nil {
		return err
	}
	c.events.Eventf(cluster, corev1.EventTypeNormal, reasonTokenRotated,
		"the hub has a new token of the service account %s/%s, valid "+text,
		was.Namespace, was.Account, is.Expires.Format(time.RFC3339))
	return nil
}

// revoke invalidates all of the hub's tokens of an account except the current one. A token without expiry is noted on
// the hub's Secret until it is revoked.
func (c *collector) revoke(ctx context.Context, accounts client.Client, is credential.Token,
	secret *corev1.Secret) error {
	if is.Endless() || is.Secret == "" {
		return nil // created by a user, who still uses it
	}
	endless := secret.Annotations[wellknown.ReplacesTokenAnnotation]
	if err := member.RevokeTokens(ctx, accounts, is.Namespace, is.Account, string(c.Members.Hub()), is.Secret,
		endless); err != nil {
		return fmt.Errorf("revoke the old token: %w", err)
	}
	if endless == "" {
		return nil
	}
	delete(secret.Annotations, wellknown.ReplacesTokenAnnotation)
	if err := c.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
