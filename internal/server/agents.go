package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/klog/v2"

	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/core/execute"
)

// startAgents prepares the registration of clusters in Pull mode: the permissions of bootstrap tokens and agents, and
// the ConfigMap by which a cluster verifies the hub. A hub whose store is full starts without them, so that it can be
// repaired.
func (h *Hub) startAgents(ctx context.Context) (func(), error) {
	client, err := kubernetes.NewForConfig(h.Config())
	if err != nil {
		return nil, fmt.Errorf("create a client for the registration of clusters: %w", err)
	}
	if err := errors.Join(grantAgents(client), h.publishClusterInfo(ctx, client)); err != nil {
		klog.ErrorS(err, "clusters in Pull mode cannot be registered; the next start of the hub retries")
	}
	return nil, nil
}

// grantAgents creates the roles and bindings of bootstrap tokens and agents.
func grantAgents(client kubernetes.Interface) error {
	if err := keepGrants(client, pull.StaticGrants(execute.RestoreMark), false); err != nil {
		return fmt.Errorf("write the roles of agents: %w", err)
	}
	return nil
}

// keepGrants creates roles and bindings, and adds missing rules and subjects. exact also removes other rules of roles.
func keepGrants(client kubernetes.Interface, grants pull.Static, exact bool) error {
	rbac, namespaces := client.RbacV1(), client.CoreV1().Namespaces()
	var failed []error
	add := func(role reconciliation.RuleOwner, c reconciliation.RuleOwnerModifier) {
		_, err := (&reconciliation.ReconcileRoleOptions{Confirm: true, RemoveExtraPermissions: exact, Role: role,
			Client: c}).Run()
		failed = append(failed, err)
	}
	bind := func(b reconciliation.RoleBinding, c reconciliation.RoleBindingModifier) {
		_, err := (&reconciliation.ReconcileRoleBindingOptions{Confirm: true, RoleBinding: b, Client: c}).Run()
		failed = append(failed, err)
	}
	for _, role := range grants.ClusterRoles {
		add(reconciliation.ClusterRoleRuleOwner{ClusterRole: &role},
			reconciliation.ClusterRoleModifier{Client: rbac.ClusterRoles()})
	}
	for _, role := range grants.Roles {
		add(reconciliation.RoleRuleOwner{Role: &role}, reconciliation.RoleModifier{Client: rbac, NamespaceClient: namespaces})
	}
	for _, binding := range grants.ClusterRoleBindings {
		bind(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding},
			reconciliation.ClusterRoleBindingClientAdapter{Client: rbac.ClusterRoleBindings()})
	}
	for _, binding := range grants.RoleBindings {
		bind(reconciliation.RoleBindingAdapter{RoleBinding: &binding},
			reconciliation.RoleBindingClientAdapter{Client: rbac, NamespaceClient: namespaces})
	}
	return errors.Join(failed...)
}

// keepNamespace creates a namespace if it is absent.
func keepNamespace(ctx context.Context, client kubernetes.Interface, namespace *corev1.Namespace) error {
	namespaces := client.CoreV1().Namespaces()
	_, err := namespaces.Get(ctx, namespace.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = namespaces.Create(ctx, namespace, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	return nil
}

// publishClusterInfo writes the ConfigMap cluster-info in kube-public. The bootstrap signer keeps the other keys: one
// signature for each token.
func (h *Hub) publishClusterInfo(ctx context.Context, client kubernetes.Interface) error {
	trust, err := os.ReadFile(h.files.Trust)
	if err != nil {
		return fmt.Errorf("read the hub's certificate authorities: %w", err)
	}
	config, err := clientcmd.Write(clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{
		"": {Server: h.url, CertificateAuthorityData: trust}}})
	if err != nil {
		return fmt.Errorf("encode the ConfigMap %s: %w", pull.ClusterInfo, err)
	}
	maps := client.CoreV1().ConfigMaps(metav1.NamespacePublic)
	info, err := maps.Get(ctx, pull.ClusterInfo, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if err := keepNamespace(ctx, client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: metav1.NamespacePublic}}); err != nil {
			return err
		}
		_, err = maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: pull.ClusterInfo},
			Data:       map[string]string{bootstrapapi.KubeConfigKey: string(config)}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // Another replica of the hub created it.
		}
	case err == nil && info.Data[bootstrapapi.KubeConfigKey] != string(config):
		if info.Data == nil {
			info.Data = map[string]string{}
		}
		info.Data[bootstrapapi.KubeConfigKey] = string(config)
		_, err = maps.Update(ctx, info, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write the ConfigMap %s/%s: %w", metav1.NamespacePublic, pull.ClusterInfo, err)
	}
	return nil
}

// limitAgents rejects requests of agents and klusterlets until agents can read whether the store was restored from a
// backup: its Works may be older than what they applied. It limits some lists to the cluster of the agent, see
// pull.Narrow. It reads the certificate before that is verified, which can only reject and shrink requests.
func (h *Hub) limitAgents(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cluster, isAgent := agentOf(r)
		switch {
		case !h.announced.Load() && (isAgent || fromKlusterlet(r)):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the hub is starting", http.StatusServiceUnavailable)
			return
		case isAgent && r.Method == http.MethodGet:
			query := r.URL.Query()
			if path, changed := pull.Narrow(cluster, r.URL.Path, query); changed {
				r = r.Clone(r.Context())
				r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, "", query.Encode()
				r.RequestURI = r.URL.RequestURI()
			}
		}
		next.ServeHTTP(w, r)
	})
}

// agentOf returns the cluster in the certificate of an agent that sends a request; is is false for other users.
func agentOf(r *http.Request) (cluster string, is bool) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "", false
	}
	subject := r.TLS.PeerCertificates[0].Subject
	cluster, is = pull.ClusterOf(subject.CommonName)
	return cluster, is && slices.Contains(subject.Organization, pull.Group)
}
