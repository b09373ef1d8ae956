package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

// selfSigned returns a certificate and its key.
func selfSigned(t *testing.T, user string, until time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user},
		NotBefore: until.Add(-time.Hour), NotAfter: until}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), key
}

func TestRenewedCertificatesAreStoredInTheMember(t *testing.T) {
	until := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	certificate, key := selfSigned(t, "old", until)
	kubeconfig, err := identity{config: &rest.Config{Host: "https://hub:7443", TLSClientConfig: rest.TLSClientConfig{
		CAData: certificate, CertData: certificate, KeyData: key}}}.kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	member := fake.NewSimpleClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-kubeconfig"},
		Data:       map[string][]byte{CredentialsKey: kubeconfig}})
	c, err := loadCredentials(t.Context(), member, "karmada-system", "karmada-kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.expired("eu", until.Add(-time.Minute)); err != nil {
		t.Errorf("a valid certificate: %v", err)
	}
	if err := c.expired("eu", until); !errors.Is(err, errExpired) ||
		!strings.Contains(err.Error(), "argosy token create --cluster-name eu --print-register-command") ||
		!strings.Contains(err.Error(), "the clock of the agent shows "+until.UTC().Format(time.RFC3339)) {
		t.Errorf("an expired certificate: %v", err)
	}
	renewed, renewedKey := selfSigned(t, "new", until.Add(time.Hour))
	if _, err := c.Update(renewed, renewedKey); err != nil {
		t.Fatal(err)
	}
	if current, _ := c.Current(); current.Leaf.Subject.CommonName != "new" {
		t.Errorf("the current certificate is of %s", current.Leaf.Subject)
	}
	again, err := loadCredentials(t.Context(), member, "karmada-system", "karmada-kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if current, _ := again.Current(); current.Leaf.Subject.CommonName != "new" || again.server != "https://hub:7443" {
		t.Errorf("after a restart, the certificate is of %s and the hub at %s", current.Leaf.Subject, again.server)
	}
}

// Each connection costs the hub memory: TLS, HTTP/2 and what serves them.
func TestClientsOfTheHubShareAConnection(t *testing.T) {
	var connections atomic.Int32
	hub := httptest.NewUnstartedServer(http.NotFoundHandler())
	hub.EnableHTTP2 = true
	hub.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	hub.StartTLS()
	t.Cleanup(hub.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw})
	certificate, key := selfSigned(t, "agent", time.Now().Add(time.Hour))
	kubeconfig, err := identity{config: &rest.Config{Host: hub.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: authority, CertData: certificate, KeyData: key}}}.kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := loadCredentials(t.Context(), fake.NewSimpleClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-kubeconfig"},
		Data:       map[string][]byte{CredentialsKey: kubeconfig}}), "karmada-system", "karmada-kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	for range 3 {
		client, err := rest.HTTPClientFor(c.config())
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(hub.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("three clients opened %d connections, want one", n)
	}
}

func TestMissingCredentialsNameTheCommand(t *testing.T) {
	_, err := loadCredentials(t.Context(), fake.NewSimpleClientset(), "karmada-system", "karmada-kubeconfig")
	if err == nil || !strings.Contains(err.Error(), "argosy register") {
		t.Errorf("error %v", err)
	}
}
