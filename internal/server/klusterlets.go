package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

// startKlusterlets prepares the registration of clusters with a klusterlet: the permissions of bootstrap credentials,
// and the account whose tokens are some. Others come from the ConfigMap that startAgents publishes. A hub whose store
// is full starts without them, so that it can be repaired.
func (h *Hub) startKlusterlets(ctx context.Context) (func(), error) {
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return nil, fmt.Errorf("create a client for the registration of klusterlets: %w", err)
	}
	if err := grantKlusterlets(ctx, client); err != nil {
		klog.ErrorS(err, "clusters with a klusterlet cannot be registered; the next start of the hub retries")
	}
	return nil, nil
}

// grantKlusterlets creates what klusterlets need before their clusters are accepted. Other programs, such as
// `clusteradm init`, write more rules into the role of bootstrap credentials: they go.
func grantKlusterlets(ctx context.Context, client kubernetes.Interface) error {
	static := klusterlet.StaticGrants()
	var failed []error
	for i := range static.Namespaces {
		failed = append(failed, keepNamespace(ctx, client, &static.Namespaces[i]))
	}
	failed = append(failed, keepAccount(ctx, client, &static.ServiceAccount),
		keepGrants(client, pull.Static{ClusterRoles: []rbacv1.ClusterRole{static.ClusterRole},
			ClusterRoleBindings: static.ClusterRoleBindings}, true))
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("write the roles of klusterlets: %w", err)
	}
	return nil
}

// keepAccount creates a service account if it is absent.
func keepAccount(ctx context.Context, client kubernetes.Interface, account *corev1.ServiceAccount) error {
	accounts := client.CoreV1().ServiceAccounts(account.Namespace)
	_, err := accounts.Get(ctx, account.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = accounts.Create(ctx, account, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create service account %s/%s: %w", account.Namespace, account.Name, err)
	}
	return nil
}

// fromKlusterlet reports whether the certificate of a request is one of a klusterlet. The group of all of them is
// optional in it, that of a cluster is not, and both begin alike.
func fromKlusterlet(r *http.Request) bool {
	return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 &&
		slices.ContainsFunc(r.TLS.PeerCertificates[0].Subject.Organization, func(o string) bool {
			return strings.HasPrefix(o, klusterlet.GroupOf(""))
		})
}
