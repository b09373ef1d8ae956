package agents

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

const (
	// reasonApproved: the hub approved a certificate of an agent. It is only in the request.
	//
	//reference:none
	reasonApproved = "AgentApproved"
	// reasonDenied: the hub denied a certificate to an agent. The message has the reason.
	//
	//reference:event Warning on CertificateSigningRequest
	reasonDenied = "AgentDenied"
)

// approver approves and denies the certificate requests of agents. kube-controller-manager's signer signs approved
// ones.
type approver struct {
	client client.Client
	// live reads past the cache.
	live   client.Reader
	events commit.Events
}

func (a *approver) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := a.client.Get(ctx, req.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if csr.DeletionTimestamp != nil || decided(csr) {
		return reconcile.Result{}, nil
	}
	decision, err := a.judge(ctx, csr)
	if err != nil || decision.Verdict == pull.Ignore {
		return reconcile.Result{}, err
	}
	condition := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved,
		Status: corev1.ConditionTrue, Reason: reasonApproved, Message: decision.Message}
	if decision.Verdict == pull.Deny {
		condition.Type, condition.Reason = certificatesv1.CertificateDenied, reasonDenied
	}
	want := csr.DeepCopy()
	want.Status.Conditions = append(want.Status.Conditions, condition)
	if err := a.client.SubResource("approval").Update(ctx, want); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("write the approval of %s: %w", csr.Name, err))
	}
	ctrl.Log.WithName("agents").Info("decided about the certificate request of an agent", "request", csr.Name, "user",
		csr.Spec.Username, "verdict", decision.Verdict, "reason", decision.Message)
	if decision.Verdict == pull.Deny {
		a.events.Event(csr, corev1.EventTypeWarning, reasonDenied, decision.Message)
	}
	return reconcile.Result{}, nil
}

func decided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0 || slices.ContainsFunc(csr.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
		})
}

// judge decides about a request, and binds the token of the requester to its cluster before an approval.
func (a *approver) judge(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (pull.Decision, error) {
	request, ok := read(csr)
	if !ok {
		return pull.Decision{Verdict: pull.Ignore}, nil
	}
	known, err := a.known(ctx, request.SubjectCluster())
	if err != nil {
		return pull.Decision{}, err
	}
	secret, token, err := a.token(ctx, request.User)
	if err != nil {
		return pull.Decision{}, err
	}
	decision := request.Judge(known, token)
	if decision.Bind != "" && token.Cluster != decision.Bind {
		if secret == nil {
			return pull.Decision{Verdict: pull.Deny, Message: fmt.Sprintf("token %s has expired or was deleted: "+
				"create a new one with `argosy token create`", token.ID)}, nil
		}
		// The resource version lets one of two concurrent registrations win; the other is judged again.
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, wellknown.TokenClusterAnnotation, decision.Bind)
		if err := a.client.Update(ctx, secret); err != nil {
			return pull.Decision{}, fmt.Errorf("bind token %s to cluster %q: %w", token.ID, decision.Bind, err)
		}
	}
	if decision.Record != nil {
		return decision, a.record(ctx, request.SubjectCluster(), known, decision.Record)
	}
	return decision, nil
}

// record writes the keys of an agent into its ClusterRole. A first registration also takes the ClusterRole from a
// former Cluster, with which it would be deleted. Others need the ClusterRole with the known keys: another registration
// may be under way.
func (a *approver) record(ctx context.Context, cluster string, known pull.Known, keys []string) error {
	want := grantsFor(cluster, known.Cluster).ClusterRole
	role := want.DeepCopy()
	err := a.live.Get(ctx, types.NamespacedName{Name: role.Name}, role)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ClusterRole %s: %w", role.Name, err)
	}
	first := known.Cluster == nil
	if first { // a klusterlet may have registered the name meanwhile
		key := types.NamespacedName{Name: cluster}
		switch err := a.live.Get(ctx, key, &clusterv1alpha1.Cluster{}); {
		case err == nil:
			return fmt.Errorf("record the keys of the agent of cluster %q: another registration took the name", cluster)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("read cluster %q: %w", cluster, err)
		}
	} else if !slices.Equal(pull.Keys(role), known.Keys) {
		return fmt.Errorf("record the keys of the agent of cluster %q: ClusterRole %s is missing or has changed meanwhile",
			cluster, role.Name)
	}
	pull.RecordKeys(role, keys)
	role.Labels, role.Rules, role.AggregationRule = want.Labels, want.Rules, nil
	if first {
		role.OwnerReferences = nil
	} else if err := controllerutil.SetOwnerReference(known.Cluster, role, a.client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of ClusterRole %s: %w", role.Name, err)
	}
	if apierrors.IsNotFound(err) { // an administrator may have deleted it, to end the access of an agent
		err = a.client.Create(ctx, role)
	} else {
		err = a.client.Update(ctx, role)
	}
	if err != nil {
		return fmt.Errorf("record the keys of the agent of cluster %q: %w", cluster, err)
	}
	return nil
}

// known returns what the hub has of a cluster; nothing for an empty name.
func (a *approver) known(ctx context.Context, name string) (pull.Known, error) {
	if name == "" {
		return pull.Known{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	switch err := a.live.Get(ctx, types.NamespacedName{Name: name}, cluster); {
	case err == nil:
		role := &rbacv1.ClusterRole{}
		if err := a.live.Get(ctx, types.NamespacedName{Name: pull.RoleOf(name)}, role); client.IgnoreNotFound(err) != nil {
			return pull.Known{}, fmt.Errorf("read ClusterRole %s: %w", pull.RoleOf(name), err)
		}
		return pull.Known{Cluster: cluster, Keys: pull.Keys(role)}, nil
	case !apierrors.IsNotFound(err):
		return pull.Known{}, fmt.Errorf("read cluster %q: %w", name, err)
	}
	for _, secret := range pull.SecretsOf(name) {
		key := types.NamespacedName{Namespace: names.Clusters, Name: secret}
		switch err := a.live.Get(ctx, key, &corev1.Secret{}); {
		case err == nil:
			return pull.Known{Secret: secret}, nil
		case !apierrors.IsNotFound(err):
			return pull.Known{}, fmt.Errorf("read Secret %s: %w", key, err)
		}
	}
	return pull.Known{}, nil
}

// token returns the bootstrap token of a user and its Secret; both are empty for other users.
func (a *approver) token(ctx context.Context, user string) (*corev1.Secret, pull.Token, error) {
	id, is := pull.TokenID(user)
	if !is {
		return nil, pull.Token{}, nil
	}
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: bootstrapapi.BootstrapTokenSecretPrefix + id}
	switch err := a.live.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return nil, pull.Token{ID: id}, nil
	case err != nil:
		return nil, pull.Token{}, fmt.Errorf("read token %s: %w", id, err)
	}
	return secret, pull.Token{ID: id, Cluster: secret.Annotations[wellknown.TokenClusterAnnotation],
		Renews: secret.Annotations[wellknown.TokenRenewsAnnotation] == "true"}, nil
}

// read returns the request in a CertificateSigningRequest; ok is false if it cannot be parsed.
func read(csr *certificatesv1.CertificateSigningRequest) (request pull.Request, ok bool) {
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return request, false
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return request, false
	}
	return pull.Request{
		Signer: csr.Spec.SignerName, User: csr.Spec.Username, Groups: csr.Spec.Groups, Usages: csr.Spec.Usages,
		CommonName: parsed.Subject.CommonName, Organizations: parsed.Subject.Organization,
		Key:              pull.KeyHash(parsed.RawSubjectPublicKeyInfo),
		RequesterKey:     strings.Join(csr.Spec.Extra[wellknown.AgentKeyExtra], ","),
		AlternativeNames: len(parsed.DNSNames)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0,
	}, true
}
