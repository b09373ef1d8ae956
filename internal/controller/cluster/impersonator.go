package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/member"
)

// impersonator is what lets the account of spec.impersonatorSecretRef act as users.
const impersonator = "karmada-impersonator"

// letImpersonate has the member let the account of spec.impersonatorSecretRef act as any user, once per member and account unless it
// fails: joining makes the account alone. It is the hub that says who uses clusters/proxy, and only it and the member's administrators have the token. What
// is there under the names stays as it is, also if it allows less. A failure is logged: it stops nobody who does not use the proxy.
func (c *collector) letImpersonate(ctx context.Context, m *member.Member, cluster *clusterv1alpha1.Cluster) {
	ref := cluster.Spec.ImpersonatorSecretRef
	if ref == nil {
		return
	}
	once := fmt.Sprintf("%s %s/%s", cluster.UID, ref.Namespace, ref.Name)
	c.mu.Lock()
	known := c.impersonators[cluster.Name] == once
	c.impersonators[cluster.Name] = once
	c.mu.Unlock()
	if known {
		return
	}
	err := c.grant(ctx, m, ref)
	if err == nil || ctx.Err() != nil {
		return
	}
	ctrl.Log.WithName("cluster-status").Error(err, "let the hub act as its users; clusters/proxy may be refused", "cluster", cluster.Name)
	if !apierrors.IsForbidden(err) {
		c.mu.Lock()
		delete(c.impersonators, cluster.Name)
		c.mu.Unlock()
	}
}

func (c *collector) grant(ctx context.Context, m *member.Member, ref *clusterv1alpha1.LocalSecretReference) error {
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return client.IgnoreNotFound(err) // the proxy says so to who uses it
	}
	namespace, name, ok := account(string(secret.Data[member.TokenKey]))
	if !ok {
		return nil // whoever made another kind of user gave it its rights
	}
	meta := metav1.ObjectMeta{Name: impersonator, Labels: map[string]string{workv1alpha2.SystemLabel: "true"}}
	for resource, obj := range map[string]runtime.Object{
		"clusterroles": &rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}}}},
		"clusterrolebindings": &rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: impersonator}},
	} {
		at := m.Client().Resource(rbacv1.SchemeGroupVersion.WithResource(resource))
		_, err := at.Get(ctx, impersonator, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			var fields map[string]any
			if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err == nil {
				_, err = at.Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{FieldManager: member.Manager})
			}
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make %s %s: %w", resource, impersonator, err)
		}
	}
	return nil
}

// account is the service account that a token says it is of. The token is the hub's own and need not be verified.
func account(token string) (namespace, name string, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", "", false
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return "", "", false
	}
	user, ok := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(user, ":")
}
