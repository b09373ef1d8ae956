package server

import (
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/test/kit"
)

// shown returns the serial number of the certificate that a hub shows to a new connection.
func shown(t *testing.T, h *Hub) string {
	t.Helper()
	u, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", u.Host, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func getVersion(t *testing.T, config *rest.Config) error {
	t.Helper()
	_, err := kubernetes.NewForConfigOrDie(config).Discovery().RESTClient().Get().AbsPath("/version").DoRaw(t.Context())
	if err == nil { // /version is open to all
		_, err = kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
			&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	}
	return err
}

// A serving certificate is taken without a restart; an authority and a signing key with one, and what was of the old
// counts until it is forgotten.
func TestKeysRotateAndTheOldCountUntilForgotten(t *testing.T) {
	kit.Long(t)
	c := testConfig(t)
	h, _ := start(t, c, Parts{})
	before := shown(t, h)
	admin, old := adminClient(t, AdminKubeconfig(c.DataDir))
	if restart, err := RenewCertificates(c, nil, time.Now()); err != nil || restart {
		t.Fatalf("restart %v, %v", restart, err)
	}
	kit.Eventually(t, "the new certificate, served", func() string {
		if shown(t, h) == before {
			return "still the old one"
		}
		return ""
	})
	if err := getVersion(t, old); err != nil {
		t.Errorf("a kubeconfig from before: %v", err)
	}

	if _, err := admin.CoreV1().ServiceAccounts("default").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := func() *rest.Config {
		t.Helper()
		_, config := adminClient(t, AdminKubeconfig(c.DataDir))
		made, err := kubernetes.NewForConfigOrDie(config).CoreV1().ServiceAccounts("default").CreateToken(t.Context(),
			"robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		robot := rest.AnonymousClientConfig(config)
		robot.BearerToken = made.Status.Token
		return robot
	}
	robot := token()
	if restart, err := RenewCertificates(c, []string{"ca", "sa"}, time.Now()); err != nil || !restart {
		t.Fatalf("restart %v, %v", restart, err)
	}
	if err := getVersion(t, robot); err != nil {
		t.Errorf("a token, before the restart: %v", err)
	}
	again := func() {
		t.Helper()
		c.Port = h.config.Port
		h.Stop()
		h, _ = start(t, c, Parts{})
	}
	again()
	fresh := token()
	_, config := adminClient(t, AdminKubeconfig(c.DataDir))
	for what, config := range map[string]*rest.Config{"an old kubeconfig": old, "an old token": robot,
		"the new kubeconfig": config, "a new token": fresh} {
		if err := getVersion(t, config); err != nil {
			t.Errorf("after the restart, %s: %v", what, err)
		}
	}

	if err := ForgetOldCertificates(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	again()
	_, config = adminClient(t, AdminKubeconfig(c.DataDir))
	for what, config := range map[string]*rest.Config{"the new kubeconfig": config, "a new token": fresh} {
		if err := getVersion(t, config); err != nil {
			t.Errorf("after all was forgotten, %s: %v", what, err)
		}
	}
	if err := getVersion(t, old); err == nil {
		t.Error("an old kubeconfig counts though its authority was forgotten")
	}
	robot.CAData = config.CAData // it is the token that is to be refused
	if err := getVersion(t, robot); !apierrors.IsUnauthorized(err) {
		t.Errorf("an old token gets %v", err)
	}

	all, err := Certificates(c, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Wrong != "" {
			t.Errorf("%s: %s", one.Name, one.Wrong)
		}
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "pki", "ca-old.crt")); err == nil {
		t.Error("the old authority is still there")
	}
	elsewhere := c
	elsewhere.DataDir = t.TempDir()
	if _, err := RenewCertificates(elsewhere, nil, time.Now()); err == nil {
		t.Error("a folder without a hub is renewed")
	} else if !strings.Contains(err.Error(), "--pki-dir") {
		t.Errorf("it says %v", err)
	}
}
