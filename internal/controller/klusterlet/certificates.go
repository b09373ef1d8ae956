package klusterlet

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	core "github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
)

// reasonRenewed: the hub approved the renewal of the certificate of a klusterlet. It is only in the request. Tools know
// it.
//
//reference:none
const reasonRenewed = "AutoApprovedByHubCSRApprovingController"

// approver approves the renewals of klusterlets' certificates. An administrator approves a first request.
// kube-controller-manager's signer signs approved ones, and its cleaner deletes them an hour later.
type approver struct{ base }

func (a *approver) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := a.client.Get(ctx, req.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	request, ok := requestOf(csr)
	if !ok || request.Malformed() != "" || !request.Renews() || csr.DeletionTimestamp != nil ||
		len(csr.Status.Conditions) > 0 {
		return reconcile.Result{}, nil
	}
	mc, err := a.managed(ctx, request.Cluster)
	if err != nil || mc == nil || mc.DeletionTimestamp != nil {
		return reconcile.Result{}, err // a certificate of a cluster that is gone, or joined otherwise, ends
	}
	if may, err := a.mayRenew(ctx, csr); err != nil || !may {
		return reconcile.Result{}, err
	}
	want := csr.DeepCopy()
	want.Status.Conditions = append(want.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonRenewed,
		Message: fmt.Sprintf("the klusterlet of cluster %q renews its certificate", request.Cluster)})
	if err := a.client.SubResource("approval").Update(ctx, want); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("write the approval of %s: %w", csr.Name, err))
	}
	ctrl.Log.WithName("klusterlets").Info("approved the renewal of a certificate", "request", csr.Name, "cluster",
		request.Cluster)
	return reconcile.Result{}, nil
}

// mayRenew asks whether the requester has the right to renew certificates, which only accepted klusterlets have.
func (a *approver) mayRenew(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range csr.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "renew", Group: core.RegisterGroup,
			Resource: "managedclusters", Subresource: "clientcertificates"}}}
	if err := a.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review whether %s may renew its certificate: %w", csr.Spec.Username, err)
	}
	return review.Status.Allowed, nil
}

// requestOf returns the request in a CertificateSigningRequest with the label of a cluster; ok is false for others.
func requestOf(csr *certificatesv1.CertificateSigningRequest) (request core.Request, ok bool) {
	cluster := csr.Labels[clusterv1.ClusterNameLabel]
	block, _ := pem.Decode(csr.Spec.Request)
	if cluster == "" || block == nil {
		return request, false
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return request, false
	}
	_, addon := csr.Labels[clusterv1.AddonNameLabel]
	return core.Request{Cluster: cluster, Addon: addon, Signer: csr.Spec.SignerName, PEMType: block.Type,
		CommonName: parsed.Subject.CommonName, Organizations: parsed.Subject.Organization, User: csr.Spec.Username,
		Usages:           csr.Spec.Usages,
		AlternativeNames: len(parsed.DNSNames)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0,
	}, true
}
