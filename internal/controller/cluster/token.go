package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/credential"
	"github.com/argosy-io/argosy/internal/member"
)

const (
	// tokenCheck is how often the tokens of a member are looked at, by the process's own clock: also the most often that
	// one is rotated, whatever the clocks say.
	tokenCheck = time.Hour
	// tokenRetry is how soon a failed rotation is tried again.
	tokenRetry = time.Minute
	// reasonTokenRotated: the hub has a new token for the cluster.
	//
	//reference:event Normal on Cluster
	reasonTokenRotated = "MemberTokenRotated"
	// reasonTokenUnrotated: a token of the hub for the cluster is due for renewal and could not be replaced.
	//
	//reference:event Warning on Cluster
	reasonTokenUnrotated = "MemberTokenNotRotated"
	// replacesAnnotation is on the hub's Secret while the Secret in the member of that name, with a token that never ends,
	// is to be revoked.
	replacesAnnotation = "argosy.io/replaces-token-of"
)

// tokenLook is the last look at the tokens of a member: the one that the hub had then, and when to look again at that.
// Another is looked at at once.
type tokenLook struct {
	token [sha256.Size]byte
	next  time.Time
}

// rotateTokens gives the hub another token for each account of a member whose token is due, and revokes the old one. A
// token that is no service account's is its giver's to renew.
func (c *collector) rotateTokens(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster) {
	c.mu.Lock()
	last := c.tokens[cluster.Name]
	c.mu.Unlock()
	if now := c.Clock.Now(); last.token == m.TokenID() && now.Before(last.next) &&
		now.After(last.next.Add(-2*tokenCheck)) {
		return
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
				"the hub retries; `argosy join %s --cluster-kubeconfig FILE` also creates new ones", failed, cluster.Name)
		ctrl.Log.WithName("cluster-status").Error(failed, "rotate the hub's token", "cluster", cluster.Name)
	}
	tokenFailed.WithLabelValues(cluster.Name).Set(trouble)
	c.mu.Lock()
	c.tokens[cluster.Name] = tokenLook{m.TokenID(), c.Clock.Now().Add(next)}
	c.mu.Unlock()
}

func (c *collector) rotateToken(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster,
	ref clusterv1alpha1.LocalSecretReference) error {
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return client.IgnoreNotFound(err) // the condition Ready says so
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
		return c.revoke(ctx, accounts, was, secret) // what an earlier time could not
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
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, replacesAnnotation, was.Secret)
	}
	if err := c.client.Update(ctx, secret); err != nil {
		// Somebody else renewed it meanwhile. The one that nobody has goes with the next.
		return fmt.Errorf("write Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	// From here on requests carry the new token: by it the old one is revoked, which therefore happens only if the new one
	// is good.
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

// revoke has a member refuse the hub's tokens of an account but the one that it has. That a token that never ends is
// among them is noted on the hub's Secret until it is done.
func (c *collector) revoke(ctx context.Context, accounts client.Client, is credential.Token,
	secret *corev1.Secret) error {
	if is.Endless() || is.Secret == "" {
		return nil // given by somebody who keeps it
	}
	endless := secret.Annotations[replacesAnnotation]
	if err := member.RevokeTokens(ctx, accounts, is.Namespace, is.Account, string(c.Members.Hub()), is.Secret,
		endless); err != nil {
		return fmt.Errorf("revoke the old token: %w", err)
	}
	if endless == "" {
		return nil
	}
	delete(secret.Annotations, replacesAnnotation)
	if err := c.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}
