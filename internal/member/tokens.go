package member

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/credential"
)

const (
	// tokenLimit bounds a token in bytes: it goes into a Secret of the hub, and into each request.
	tokenLimit = 64 << 10
)

// IssueToken creates a token of a service account in a member, for the hub with that identity. The token is bound to a
// new, empty Secret: deleting the Secret revokes the token. c is a client of the member.
func IssueToken(ctx context.Context, c client.Client, namespace, account,
	hub string) (token, secret string, err error) {
	anchor := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, GenerateName: account + "-token-",
		Labels: map[string]string{workv1alpha2.SystemLabel: "true", wellknown.TokenOfLabel: account, wellknown.HubLabel: hub},
		Annotations: map[string]string{wellknown.DescriptionAnnotation: "a token of the service account " + account +
			" is bound to this Secret: deleting the Secret revokes the token"},
	}}
	if err := c.Create(ctx, anchor); err != nil {
		return "", "", fmt.Errorf("create the Secret that a token of %s/%s is bound to: %w", namespace, account, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(credential.Life / time.Second)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: anchor.Name,
			UID: anchor.UID},
	}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.SubResource("token").Create(ctx, of, request); err != nil {
		_ = c.Delete(ctx, anchor) // a leftover is deleted with the next token
		return "", "", fmt.Errorf("request a token of the service account %s/%s: %w", namespace, account, err)
	}
	if len(request.Status.Token) > tokenLimit {
		_ = c.Delete(ctx, anchor)
		return "", "", fmt.Errorf("request a token of the service account %s/%s: the token has %d bytes; the hub supports %d",
			namespace, account, len(request.Status.Token), tokenLimit)
	}
	return request.Status.Token, anchor.Name, nil
}

// RevokeTokens deletes the Secrets of the hub's other tokens of a service account, but not that of keep. legacy is a
// Secret with a token that does not expire, which is deleted too; empty for none. It continues after a failure and
// returns the first error.
func RevokeTokens(ctx context.Context, c client.Client, namespace, account, hub, keep, legacy string) error {
	var anchors corev1.SecretList
	err := c.List(ctx, &anchors, client.InNamespace(namespace),
		client.MatchingLabels{wellknown.TokenOfLabel: account, wellknown.HubLabel: hub})
	if err != nil {
		return fmt.Errorf("list the Secrets of tokens of %s/%s: %w", namespace, account, err)
	}
	if legacy != "" {
		old := &corev1.Secret{}
		switch err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: legacy}, old); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read Secret %s/%s: %w", namespace, legacy, err)
		case old.Type == corev1.SecretTypeServiceAccountToken && old.Annotations[corev1.ServiceAccountNameKey] == account:
			anchors.Items = append(anchors.Items, *old)
		}
	}
	var first error
	for i := range anchors.Items {
		if anchors.Items[i].Name == keep {
			continue
		}
		if err := c.Delete(ctx, &anchors.Items[i]); client.IgnoreNotFound(err) != nil && first == nil {
			first = fmt.Errorf("delete Secret %s/%s, which a token is bound to: %w", namespace, anchors.Items[i].Name, err)
		}
	}
	return first
}

// TokenHolders returns the identities of the hubs that have tokens of the service accounts in a namespace of a member,
// by the name of the account. c is a client of the member.
func TokenHolders(ctx context.Context, c client.Reader, namespace string) (map[string][]string, error) {
	var anchors corev1.SecretList
	if err := c.List(ctx, &anchors, client.InNamespace(namespace),
		client.HasLabels{wellknown.TokenOfLabel, wellknown.HubLabel}); err != nil {
		return nil, fmt.Errorf("list the Secrets in %s that tokens are bound to: %w", namespace, err)
	}
	hubs := map[string][]string{}
	for _, s := range anchors.Items {
		account, hub := s.Labels[wellknown.TokenOfLabel], s.Labels[wellknown.HubLabel]
		if !slices.Contains(hubs[account], hub) {
			hubs[account] = append(hubs[account], hub)
		}
	}
	return hubs, nil
}

// VerifyToken lets the member verify a token and its service account. The claims in the token are not proof: otherwise
// a user who may write a Secret that the hub reads tokens from could get a token of any account.
func VerifyToken(ctx context.Context, c client.Client, token, namespace, account string) error {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := c.Create(ctx, review); err != nil {
		return fmt.Errorf("review the hub's token of %s/%s: %w", namespace, account, err)
	}
	if want := "system:serviceaccount:" + namespace + ":" + account; !review.Status.Authenticated ||
		review.Status.User.Username != want {
		return fmt.Errorf("the hub's token claims to be of %s/%s, but the cluster does not authenticate it as that",
			namespace, account)
	}
	return nil
}

// accountKinds are the kinds that a client of a member's accounts uses, so that it needs no discovery.
var accountKinds, accountMapper = func() (*runtime.Scheme, meta.RESTMapper) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authenticationv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // types of Kubernetes' own
		}
	}
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "ServiceAccount"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	m.Add(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), meta.RESTScopeRoot)
	return s, m
}()

// TokenEnded returns what to do about an expired token of the hub for the member; empty if it has not expired or does
// not expire.
func (m *Member) TokenEnded(now time.Time) string {
	token, ok := credential.Read(*m.token.Load())
	if !ok {
		return ""
	}
	return token.Expired(m.Name, now)
}

// TokenID identifies a token of the hub for the member.
func (m *Member) TokenID() [sha256.Size]byte { return sha256.Sum256([]byte(*m.token.Load())) }

// Accounts returns a client of the member's service accounts and Secrets, for their tokens.
func (m *Member) Accounts() (client.Client, error) {
	c := m.conn()
	config := rest.CopyConfig(c.config)
	config.ContentType = runtime.ContentTypeJSON
	return client.New(config, client.Options{HTTPClient: c.http, Scheme: accountKinds, Mapper: accountMapper})
}
