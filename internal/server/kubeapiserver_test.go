package server

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/server/pki"
	"github.com/argosy-io/argosy/test/kit"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestKubeAPIServerArgsOutsideTheAllowListAreRejected(t *testing.T) {
	ours := []string{"ArgosyClaim"}
	for arg, want := range map[string]string{
		"etcd-servers=http://a:1":                      "use --etcd-servers of the hub",
		"--etcd-servers=http://a:1":                    "use --etcd-servers of the hub",
		"bind-address=0.0.0.0":                         "use --bind-address of the hub",
		"tls-cert-file=x":                              "use --tls-cert-file of the hub",
		"client-ca-file=x":                             "use --client-ca-file of the hub",
		"oidc-issuer-url=https://x":                    "use --oidc-issuer-url of the hub",
		"encryption-provider-config=x":                 "use --encryption-provider-config of the hub",
		"etcd-prefix=/mine":                            "the hub manages all others",
		"secure-port=1":                                "the hub manages all others",
		"service-account-signing-key-file=x":           "the hub manages all others",
		"requestheader-client-ca-file=x":               "the hub manages all others",
		"authorization-mode=AlwaysAllow":               "does not accept authorization-mode",
		"audit-log-path=-":                             "does not accept audit-log-path",
		"token-auth-file=x":                            "does not accept token-auth-file",
		"default-watch-cache-size=0":                   "does not accept default-watch-cache-size",
		"v=9":                                          "does not accept v",
		"no-such-thing-at-all=1":                       "it accepts admission-control-config-file, ",
		"event-tll=2h":                                 "did you mean event-ttl?",
		"event-ttl":                                    "is not NAME=VALUE",
		"disable-admission-plugins=Foo,ArgosyClaim":    "the hub's own",
		"disable-admission-plugins=NamespaceLifecycle": "cannot be disabled",
		"enable-admission-plugins=PodSecurity":         "members enforce theirs",
		"runtime-config=api/all=false":                 "depends on",
		"runtime-config=apiextensions.k8s.io/v1=false": "depends on",
	} {
		if err := checkArg(arg, ours); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", arg, err, want)
		}
	}
	for _, arg := range []string{"event-ttl=2h", "--max-requests-inflight=10", "tls-min-version=VersionTLS13",
		"audit-webhook-config-file=/x", "enable-admission-plugins=AlwaysPullImages",
		"runtime-config=scheduling.k8s.io/v1alpha2=false", "anonymous-auth=false", "profiling=false",
		"authentication-token-webhook-version=v1", "authentication-token-webhook-cache-ttl=10s", "audit-log-compress=true",
		"audit-log-truncate-enabled=true", "audit-webhook-truncate-max-event-size=1024", "delete-collection-workers=2",
		"http2-max-streams-per-connection=500"} {
		if err := checkArg(arg, ours); err != nil {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestKubeAPIServerHasTheAcceptedArgs(t *testing.T) {
	for _, name := range acceptedArgs {
		if err := apiserver.CheckFlags([]string{"--" + name + "="}); err != nil &&
			strings.Contains(err.Error(), "unknown flag") {
			t.Errorf("kube-apiserver does not have the accepted argument %s: %v", name, err)
		}
	}
	if err := apiserver.CheckFlags([]string{"--no-such-flag="}); err == nil ||
		!strings.Contains(err.Error(), "unknown flag") {
		t.Errorf("kube-apiserver's error for a flag that it does not have is %v, want unknown flag", err)
	}
}

// pair returns a certificate for names, signed by itself, and its key, in files.
func pair(t testing.TB, begin, end time.Time, names ...string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "mine"}, NotBefore: begin,
		NotAfter:    end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
			continue
		}
		c.DNSNames = append(c.DNSNames, name)
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	write(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return certFile, keyFile
}

// issuer is an OpenID Connect issuer.
type issuer struct {
	url, caFile string
	key         *rsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	b64 := base64.RawURLEncoding.EncodeToString
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys",
				"authorization_endpoint": i.url + "/auth",
				"token_endpoint":         i.url + "/token", "response_types_supported": []string{"id_token"},
				"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"}})
		case "/keys":
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256",
				"kid": "one",
				"n":   b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes())}}})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	i.url = s.URL
	i.caFile = filepath.Join(t.TempDir(), "issuer.crt")
	write(t, i.caFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	return i
}

func (i *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": i.url, "exp": time.Now().Add(time.Hour).Unix(),
		"iat": time.Now().Add(-time.Minute).Unix()}
	for k, v := range claims {
		all[k] = v
	}
	encode := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	signed := encode(map[string]any{"alg": "RS256", "kid": "one", "typ": "JWT"}) + "." + encode(all)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// withToken returns a client at the hub of config that has a token and nothing else.
func withToken(t *testing.T, config *rest.Config, token string) *kubernetes.Clientset {
	t.Helper()
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	return kubernetes.NewForConfigOrDie(config)
}

// whoami returns the name and the groups that the hub knows a client by.
func whoami(ctx context.Context, client kubernetes.Interface) (string, []string, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return "", nil, err
	}
	return review.Status.UserInfo.Username, review.Status.UserInfo.Groups, nil
}

func TestHubAcceptsFlagsOfKubeAPIServer(t *testing.T) {
	h := useSharedHub(t)
	k, i, admin, config := h.config.KubeAPIServer, h.issuer, h.admin, h.adminConfig
	ctx := t.Context()

	t.Run("its own kubeconfig goes on to fit, and users are shown the certificate given", func(t *testing.T) {
		if _, err := admin.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		access, err := clientcmd.LoadFromFile(h.config.KubeconfigOut)
		if err != nil {
			t.Fatal(err)
		}
		ca := access.Clusters["argosy"].CertificateAuthorityData
		address := strings.TrimPrefix(h.URL(), "https://")
		shown := func(serverName string) *x509.Certificate {
			conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, ServerName: serverName})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0]
		}
		for name, want := range map[string]string{"hub.example.com": "mine", "": "mine", "other.example.com": "mine",
			"kubernetes.default.svc": "kube-apiserver", "localhost": "kube-apiserver"} {
			if got := shown(name).Subject.CommonName; got != want {
				t.Errorf("who asks for %q is shown the certificate of %s, want %s", name, got, want)
			}
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca)
		if _, err := shown("kubernetes.default.svc").Verify(x509.VerifyOptions{Roots: roots,
			DNSName: "kubernetes.default.svc"}); err != nil {
			t.Error(err)
		}
	})

	alice := withToken(t, config, i.token(t, map[string]any{"aud": "argosy", "email": "alice@example.com",
		"email_verified": true, "groups": []string{"devs"}}))
	t.Run("a token of the issuer is its user with their groups, and no other token is", func(t *testing.T) {
		kit.Eventually(t, "the issuer's keys", func() string {
			name, groups, err := whoami(ctx, alice)
			if err != nil || name != "oidc:alice@example.com" || !slices.Contains(groups, "oidc:devs") {
				return fmt.Sprint(name, groups, err)
			}
			return ""
		})
		stranger := newIssuer(t)
		stranger.url = i.url
		for what, token := range map[string]string{
			"for another client": i.token(t, map[string]any{"aud": "other", "email": "alice@example.com",
				"email_verified": true}),
			"that has ended": i.token(t, map[string]any{"aud": "argosy", "email": "alice@example.com",
				"email_verified": true, "exp": time.Now().Add(-time.Hour).Unix()}),
			"signed by another key": stranger.token(t, map[string]any{"aud": "argosy", "email": "alice@example.com",
				"email_verified": true}),
		} {
			if _, _, err := whoami(ctx, withToken(t, config, token)); !apierrors.IsUnauthorized(err) {
				t.Errorf("a token %s gives %v", what, err)
			}
		}
	})

	t.Run("a client certificate of the authority given counts, and one of no authority does not", func(t *testing.T) {
		stranger, _, err := pki.Ensure(t.TempDir(), []string{"elsewhere"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for want, files := range map[string]pki.Files{"argosy-admin": h.clients, "": stranger} {
			theirs := rest.AnonymousClientConfig(config)
			theirs.CertFile, theirs.KeyFile = files.Admin, files.AdminKey
			name, _, err := whoami(ctx, kubernetes.NewForConfigOrDie(theirs))
			if name != want || (want == "") != apierrors.IsUnauthorized(err) {
				t.Errorf("want %q, got %q, %v", want, name, err)
			}
		}
	})

	t.Run("rights are RBAC's, after who is asked before it, and the hub's loops have all", func(t *testing.T) {
		mallory := withToken(t, config, i.token(t, map[string]any{"aud": "argosy", "email": "mallory@example.com",
			"email_verified": true, "groups": []string{"devs"}}))
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "devs"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "oidc:devs"}}}
		if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "alice's rights", func() string {
			if _, err := alice.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
		if _, err := mallory.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("mallory, who is refused before RBAC, gets %v", err)
		}
		// A controller of the hub writes this.
		if _, err := admin.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "trusting"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "the namespace gets the hub's authority", func() string {
			if _, err := admin.CoreV1().ConfigMaps("trusting").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
				return err.Error()
			}
			return ""
		})
	})

	t.Run("the log of audit names user and cluster of a request into a member, and has no Secret's body",
		func(t *testing.T) {
			member := membertest.New(t)
			joinMember(t, config, member, "audited")
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"},
				StringData: map[string]string{"password": "swordfish-9000"}}
			if _, err := admin.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := alice.RESTClient().Get().AbsPath(proxy.Path("audited") + "/api/v1/nodes").DoRaw(ctx); err != nil {
				t.Error(err)
			}
			if _, err := alice.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			var proxied, wrote, read bool
			kit.Eventually(t, "lines of audit", func() string {
				log, err := os.ReadFile(k.Audit.LogFile)
				if err != nil {
					return err.Error()
				}
				for _, secret := range []string{"swordfish-9000", base64.StdEncoding.EncodeToString([]byte("swordfish-9000"))} {
					if bytes.Contains(log, []byte(secret)) {
						t.Fatal("it has a Secret's body")
					}
				}
				for line := range bytes.Lines(log) {
					var e auditv1.Event
					if err := json.Unmarshal(line, &e); err != nil || e.ObjectRef == nil {
						continue
					}
					o := e.ObjectRef
					alices := e.User.Username == "oidc:alice@example.com"
					proxied = proxied || alices && o.Resource == "clusters" && o.Subresource == "proxy" && o.Name == "audited" &&
						strings.HasSuffix(e.RequestURI, "/proxy/api/v1/nodes") && e.Verb == "get"
					wrote = wrote || e.User.Username == "argosy-admin" && o.Resource == "secrets" && o.Name == "s" &&
						e.Verb == "create"
					read = read || alices && o.Resource == "secrets" && o.Name == "s" && e.Verb == "get"
					if o.Resource == "leases" || o.Resource == "events" {
						t.Errorf("it has noise: %s", line)
					}
				}
				if !proxied || !wrote || !read {
					return fmt.Sprintf("request into the member %v, creation of the Secret %v, read of it %v", proxied, wrote, read)
				}
				return ""
			})
			if info, err := os.Stat(k.Audit.LogFile); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("others may read the log: %v, %v", info.Mode(), err)
			}
		})
	t.Run("an argument is passed on", func(t *testing.T) {
		_, err := admin.RESTClient().Get().AbsPath("/debug/pprof/cmdline").DoRaw(ctx)
		if !apierrors.IsNotFound(err) {
			t.Errorf("with profiling off, /debug/pprof gives %v", err)
		}
	})
}
