package membercli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/apimachinery/pkg/runtime"
	clientauthv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientauthv1beta1 "k8s.io/client-go/pkg/apis/clientauthentication/v1beta1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// authority returns a new certificate authority and its key in PEM.
func authority(t *testing.T, host string) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// requestFor is a request of a program that connects to a cluster.
func requestFor(config string) *clientauthv1.ExecCredential {
	return &clientauthv1.ExecCredential{Spec: clientauthv1.ExecCredentialSpec{
		Cluster: &clientauthv1.Cluster{Config: runtime.RawExtension{Raw: []byte(config)}}}}
}

const proxyOfEU = "https://hub:7443/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy"

// Whoever writes a ClusterProfile decides where a program sends its credential.
func TestCredentialIsOnlyForTheProxiesOfTheHub(t *testing.T) {
	ours, _ := authority(t, "hub")
	theirs, _ := authority(t, "hub")
	to := func(host string, authorities []byte) *rest.Config {
		return &rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAData: authorities}}
	}
	insecure := to(proxyOfEU, ours)
	insecure.Insecure = true
	named := to(proxyOfEU, ours)
	named.ServerName = "evil"
	of := func(change func(*rest.Config)) *rest.Config {
		hub := &rest.Config{Host: "https://hub:7443", BearerToken: "secret",
			TLSClientConfig: rest.TLSClientConfig{CAData: ours}}
		change(hub)
		return hub
	}
	same := func(*rest.Config) {}
	const eu = `{"cluster": "eu"}`
	for story, tc := range map[string]struct {
		hub     *rest.Config
		config  string
		cluster *rest.Config
		want    string // in the error; empty for none
	}{
		"the proxy of the cluster": {of(same), eu, to(proxyOfEU, ours), ""},
		"a hub with a path":        {of(func(c *rest.Config) { c.Host += "/" }), eu, to(proxyOfEU, ours), ""},
		"another host": {of(same), eu, to(strings.Replace(proxyOfEU, "hub", "evil", 1), ours),
			"is not for https://evil"},
		"another port":                {of(same), eu, to(strings.Replace(proxyOfEU, "7443", "1", 1), ours), "is not for"},
		"a host that begins the same": {of(same), eu, to("https://hub:7443.evil", ours), "is not for"},
		"another path":                {of(same), eu, to("https://hub:7443", ours), "is not for"},
		"the proxy of another cluster": {of(same), `{"cluster": "us"}`, to(proxyOfEU, ours),
			`serves cluster "us" at https://hub:7443`},
		"a name with a path": {of(same), `{"cluster": "x/../../../../../?"}`,
			to(strings.Replace(proxyOfEU, "/eu/", "/x/../../../../../?/", 1), ours), "names no cluster"},
		"another name in the certificate": {of(same), eu, named, "with the name"},
		"without encryption": {of(same), eu, to(strings.Replace(proxyOfEU, "https", "http", 1), ours),
			"is not for http://"},
		"another authority": {of(same), eu, to(proxyOfEU, theirs), "has a certificate authority that the kubeconfig"},
		"one more authority": {of(same), eu, to(proxyOfEU, append(ours[:len(ours):len(ours)], theirs...)),
			"has a certificate authority"},
		"no authority":      {of(same), eu, to(proxyOfEU, nil), "read the certificate authorities of the ClusterProfile"},
		"no verification":   {of(same), eu, insecure, "does not verify the certificate"},
		"no extension":      {of(same), "", to(proxyOfEU, ours), "names no cluster"},
		"another extension": {of(same), `"eu"`, to(proxyOfEU, ours), "names no cluster"},
		"an unknown hub": {of(func(c *rest.Config) { c.CAData = nil }), eu, to(proxyOfEU, ours),
			"has no certificate authorities"},
		"a missing authority": {of(func(c *rest.Config) { c.CAData, c.CAFile = nil, "missing" }), eu, to(proxyOfEU, ours),
			"missing"},
		"no credential": {of(func(c *rest.Config) { c.BearerToken = "" }), eu, to(proxyOfEU, ours),
			"neither a token nor a client certificate"},
		"a password": {of(func(c *rest.Config) { c.BearerToken, c.Username = "", "u" }), eu, to(proxyOfEU, ours),
			"neither a token nor a client certificate"},
		"an impersonated user": {of(func(c *rest.Config) { c.Impersonate.UserName = "dev" }), eu, to(proxyOfEU, ours),
			"impersonates a user"},
	} {
		o := &credential{lifetime: time.Hour, now: time.Now}
		answer, err := o.answer(t.Context(), tc.hub, requestFor(tc.config), tc.cluster)
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", story, err)
		case tc.want != "" && (answer != nil || err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, %v, want an error with %q", story, answer, err, tc.want)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: the error has the token: %v", story, err)
		}
	}
}

// A program asks again when the credential ends, or after its lifetime.
func TestCredentialOfTheKubeconfig(t *testing.T) {
	authorities, _ := authority(t, "hub")
	certificate, key := authority(t, "dev")
	chain, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	token := func(ends time.Duration) string {
		claims := jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(now.Add(ends))}
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("key"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	short, long := token(30*time.Minute), token(24*time.Hour)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for story, tc := range map[string]struct {
		change             func(*rest.Config)
		token, certificate string
		ends               time.Time
	}{
		"a token without an end":   {func(c *rest.Config) { c.BearerToken = "opaque" }, "opaque", "", now.Add(time.Hour)},
		"a token that ends later":  {func(c *rest.Config) { c.BearerToken = long }, long, "", now.Add(time.Hour)},
		"a token that ends before": {func(c *rest.Config) { c.BearerToken = short }, short, "", now.Add(30 * time.Minute)},
		"a token in a file":        {func(c *rest.Config) { c.BearerTokenFile = file }, "of a file", "", now.Add(time.Hour)},
		"a certificate": {func(c *rest.Config) { c.CertData, c.KeyData = certificate, key }, "", string(certificate),
			now.Add(time.Hour)},
		"a command": {func(c *rest.Config) {
			c.ExecProvider = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1",
				InteractiveMode: clientcmdapi.NeverExecInteractiveMode, Args: []string{"-c", `echo '{"kind": "ExecCredential",
					"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "of a command"}}'`}}
		}, "of a command", "", now.Add(time.Hour)},
	} {
		hub := &rest.Config{Host: "https://hub:7443", TLSClientConfig: rest.TLSClientConfig{CAData: authorities}}
		tc.change(hub)
		o := &credential{lifetime: time.Hour, now: func() time.Time { return now }}
		answer, err := o.answer(t.Context(), hub, requestFor(`{"cluster": "eu"}`), &rest.Config{Host: proxyOfEU,
			TLSClientConfig: rest.TLSClientConfig{CAData: authorities}})
		if err != nil {
			t.Errorf("%s: %v", story, err)
			continue
		}
		status := answer.(*clientauthv1.ExecCredential).Status
		if status.Token != tc.token || status.ClientCertificateData != tc.certificate ||
			(status.ClientKeyData != "") != (tc.certificate != "") || !status.ExpirationTimestamp.Time.Equal(tc.ends) {
			t.Errorf("%s: %+v, want %+v", story, status, tc)
		}
	}
	if !chain[0].NotAfter.After(now.Add(time.Hour)) {
		t.Error("the certificate ends too early for this test")
	}

	// The answer has the version of the request.
	o := &credential{lifetime: time.Hour, now: time.Now}
	hub := &rest.Config{Host: "https://hub:7443", BearerToken: "a",
		TLSClientConfig: rest.TLSClientConfig{CAData: authorities}}
	to := &rest.Config{Host: proxyOfEU, TLSClientConfig: rest.TLSClientConfig{CAData: authorities}}
	answer, err := o.answer(t.Context(), hub, &clientauthv1beta1.ExecCredential{Spec: clientauthv1beta1.ExecCredentialSpec{
		Cluster: &clientauthv1beta1.Cluster{Config: runtime.RawExtension{Raw: []byte(`{"cluster": "eu"}`)}}}}, to)
	if err != nil || answer.(*clientauthv1.ExecCredential).APIVersion != "client.authentication.k8s.io/v1beta1" {
		t.Errorf("for v1beta1: %+v, %v", answer, err)
	}
	refused := func(flag, want string) {
		t.Helper()
		_, err := o.answer(t.Context(), hub, requestFor(`{"cluster": "eu"}`), to)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	for _, account := range []string{"kueue", "/kueue", "kueue/", "a/b/c"} {
		o.account = account
		refused("--service-account "+account, "NAMESPACE/NAME")
	}
	o.lifetime = time.Minute
	refused("--lifetime 1m", "--lifetime is 1m0s")
}
