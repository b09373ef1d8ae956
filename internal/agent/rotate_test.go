package agent

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/keyutil"

	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

// signer is a hub that signs each certificate request, and forbids to list and watch them.
func signer(t *testing.T, requests chan<- *x509.CertificateRequest) *fake.Clientset {
	t.Helper()
	authorityPEM, keyPEM := selfSigned(t, "authority", time.Now().Add(time.Hour))
	authority, err := parseKeyPair(authorityPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	hub := fake.NewSimpleClientset()
	forbidden := apierrors.NewForbidden(certificatesv1.Resource("certificatesigningrequests"), "", errors.New("no right"))
	hub.PrependReactor("list", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, forbidden
	})
	hub.PrependWatchReactor("certificatesigningrequests", clienttesting.DefaultWatchReactor(nil, forbidden))
	hub.PrependReactor("create", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
		csr := a.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
		block, _ := pem.Decode(csr.Spec.Request)
		asked, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return true, nil, err
		}
		raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: asked.Subject,
			NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}, authority.Leaf, asked.PublicKey, key)
		if err != nil {
			return true, nil, err
		}
		csr.Name, csr.UID, csr.ResourceVersion = "csr-1", "uid-1", "1"
		csr.Status = certificatesv1.CertificateSigningRequestStatus{
			Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
			Conditions: []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved,
				Status: corev1.ConditionTrue}}}
		if err := hub.Tracker().Add(csr); err != nil {
			return true, nil, err
		}
		requests <- asked
		return true, csr, nil
	})
	return hub
}

func TestAgentRenewsItsCertificateWithoutTheRightToListRequests(t *testing.T) {
	certificate, key := selfSigned(t, "old", time.Now().Add(time.Minute)) // of one hour
	kubeconfig, err := identity{config: &rest.Config{Host: "https://hub:7443", TLSClientConfig: rest.TLSClientConfig{
		CAData: certificate, CertData: certificate, KeyData: key}}}.kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	member := fake.NewSimpleClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-kubeconfig"},
		Data:       map[string][]byte{CredentialsKey: kubeconfig}})
	stored := make(chan struct{}, 1)
	member.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		stored <- struct{}{}
		return false, nil, nil
	})
	c, err := loadCredentials(t.Context(), member, "karmada-system", "karmada-kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan *x509.CertificateRequest, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&rotation{cluster: "eu", credentials: c, hub: signer(t, requests)}).Start(ctx)
	}()
	asked := <-requests
	if asked.Subject.CommonName != "system:karmada:agent:eu" ||
		!slices.Equal(asked.Subject.Organization, []string{pull.Group}) {
		t.Errorf("the request is for %s", asked.Subject)
	}
	<-stored
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
