package klusterlet

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	request, ok := core.RequestOf(csr)
	if !ok || request.Malformed() != "" || !request.Renews() || csr.DeletionTimestamp != nil ||
		len(csr.Status.Conditions) > 0 {
		return reconcile.Result{}, nil
	}
	mc, err := a.managed(ctx, request.Cluster)
	if err != nil || mc == nil || mc.DeletionTimestamp != nil {
		return reconcile.Result{}, err // a certificate of a cluster that is gone, or joined otherwise, ends
	}
	review := core.MayRenew(csr)
	if err := a.client.Create(ctx, review); err != nil || !review.Status.Allowed {
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
