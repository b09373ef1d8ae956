package addons

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/source/ocm/addons"
)

// reasonApproved: the hub approved a certificate of an add-on. It is only in the request. Tools know it.
//
//reference:none
const reasonApproved = "AutoApproved"

// A request is compared with its add-on again after lookAgain, until it is as old as timeout.
const lookAgain, timeout = 5 * time.Second, 10 * time.Minute

// lifetime of the certificates that the signer of an add-on signs, and skew for clocks that are behind.
const lifetime, skew = 24 * time.Hour, 5 * time.Minute

// signer approves the certificate requests of the add-ons that the hub installs, and signs those for a signer of the
// add-on. kube-controller-manager's signer signs those for the API of the hub.
type signer struct{ *reconciler }

func (s *signer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := s.client.Get(ctx, req.NamespacedName, csr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	request, ok := klusterlet.RequestOf(csr)
	if !ok || request.Addon == "" || csr.DeletionTimestamp != nil || len(csr.Status.Certificate) > 0 {
		return reconcile.Result{}, nil
	}
	subject, custom, err := s.registration(ctx, types.NamespacedName{Namespace: request.Cluster, Name: request.Addon},
		request.Signer)
	switch {
	case err != nil || subject == nil && (len(csr.Status.Conditions) > 0 ||
		s.Clock.Since(csr.CreationTimestamp.Time) > timeout): // the manager of the add-on approves its requests itself
		return reconcile.Result{}, err
	case subject == nil: // the cache may be behind
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	if why := request.MalformedAddon(*subject); why != "" {
		ctrl.Log.WithName("addons").Info("did not approve the certificate request of an add-on", "request", csr.Name,
			"reason", why)
		return reconcile.Result{}, nil
	}
	approved := func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	}
	switch {
	case len(csr.Status.Conditions) == 0:
		review := klusterlet.MayRenew(csr)
		if err := s.client.Create(ctx, review); err != nil || !review.Status.Allowed {
			return reconcile.Result{}, err
		}
		want := csr.DeepCopy()
		want.Status.Conditions = append(want.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonApproved,
			Message: fmt.Sprintf("the klusterlet of cluster %q requests the certificate of add-on %s", request.Cluster,
				request.Addon)})
		if err := s.client.SubResource("approval").Update(ctx, want); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("write the approval of %s: %w", csr.Name, err))
		}
	case custom != nil && slices.ContainsFunc(csr.Status.Conditions, approved):
		return reconcile.Result{}, s.sign(ctx, csr, custom)
	}
	return reconcile.Result{}, nil
}

// registration returns the subject of the certificates of an add-on for a signer; nil for none, or if the hub does not
// install the add-on. custom is the registration in its AddOnTemplate, if the signer is the add-on's own.
func (s *signer) registration(ctx context.Context, key types.NamespacedName,
	name string) (subject *addonv1beta1.Subject, custom *addonv1alpha1.CustomSignerRegistration, err error) {
	of, addon := &addonv1beta1.ClusterManagementAddOn{}, &addonv1beta1.ManagedClusterAddOn{}
	if err := s.client.Get(ctx, types.NamespacedName{Name: key.Name}, of); err != nil || !addons.Templated(of) {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if err := s.client.Get(ctx, key, addon); err != nil || addon.DeletionTimestamp != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if name == certificatesv1.KubeAPIServerClientSignerName {
		if addons.HasKubeClient(addon) {
			subject = new(addons.Subject(key.Namespace, key.Name, nil))
		}
		return subject, nil, nil
	}
	t := &addonv1alpha1.AddOnTemplate{}
	if err := s.client.Get(ctx, types.NamespacedName{Name: addons.TemplateOf(addon)}, t); err != nil ||
		t.Spec.AddonName != key.Name {
		return nil, nil, client.IgnoreNotFound(err)
	}
	if r := addons.Registration(t, name); r != nil {
		return new(addons.Subject(key.Namespace, key.Name, r.CustomSigner)), r.CustomSigner, nil
	}
	return nil, nil, nil
}

// sign signs an approved request with the authority of an add-on.
func (s *signer) sign(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	of *addonv1alpha1.CustomSignerRegistration) error {
	secret, key := &corev1.Secret{}, addons.Authority(of)
	if err := s.live.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("read the authority of signer %s: %w", of.SignerName, err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("use Secret %s for signer %s: %w", key, of.SignerName, err)
	}
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		return fmt.Errorf("read the request in %s: %w", csr.Name, err)
	}
	now := s.Clock.Now()
	end := now.Add(lifetime)
	if pair.Leaf.NotAfter.Before(end) {
		end = pair.Leaf.NotAfter
	}
	if end.Before(now) {
		return fmt.Errorf("use Secret %s for signer %s: its certificate has expired", key, of.SignerName)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()),
		Subject: request.Subject, DNSNames: request.DNSNames, BasicConstraintsValid: true,
		NotBefore: now.Add(-skew), NotAfter: end,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, pair.Leaf, request.PublicKey, pair.PrivateKey)
	if err != nil {
		return fmt.Errorf("sign %s: %w", csr.Name, err)
	}
	want := csr.DeepCopy()
	want.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := s.client.Status().Update(ctx, want); err != nil {
		return fmt.Errorf("write the certificate of %s: %w", csr.Name, err)
	}
	return nil
}
