package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/console"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// lasting is a test with temporary folders and cleanups that last until all tests of the package have ended.
type lasting struct {
	testing.TB
	dir      string
	cleanups []func()
}

func (l *lasting) Context() context.Context { return context.Background() }
func (l *lasting) Cleanup(f func())         { l.cleanups = append(l.cleanups, f) }
func (l *lasting) TempDir() string {
	dir, err := os.MkdirTemp(l.dir, "")
	if err != nil {
		l.Fatal(err)
	}
	return dir
}

var whole = &lasting{}

func TestMain(m *testing.M) {
	unsafeNoFsync = true
	os.Exit(func() int {
		var err error
		if whole.dir, err = os.MkdirTemp("", "argosy-server-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(whole.dir) }() // a temporary folder; leftovers are harmless
		code := m.Run()
		for _, f := range slices.Backward(whole.cleanups) {
			f()
		}
		return code
	}())
}

// sharedHub is a hub for tests that read it, or configure what no other test uses.
type sharedHub struct {
	*Hub
	greeting string
	issuer   *issuer
	// clients is the pki of the authority given by --client-ca-file.
	clients pki.Files
	// controllers is closed when the controllers run.
	controllers chan struct{}
	admin       *kubernetes.Clientset
	adminConfig *rest.Config
}

var (
	startShared sync.Once
	sharedByAll *sharedHub
)

// useSharedHub returns the hub that tests share, started by the first of them. All that can be set about its API server
// is set: a kubeconfig with other contexts, a serving certificate, an issuer, audit, an authorizer before RBAC that
// denies mallory, few places for requests, and arguments passed on. It has the hub's own admission, and no controllers.
func useSharedHub(t *testing.T) *sharedHub {
	t.Helper()
	startShared.Do(func() {
		whole.TB = t
		s := &sharedHub{controllers: make(chan struct{}), issuer: newIssuer(whole)}
		c := testConfig(whole)
		c.KubeconfigOut = filepath.Join(whole.TempDir(), "config")
		write(t, c.KubeconfigOut, `apiVersion: v1
kind: Config
current-context: mine
contexts: [{name: mine, context: {cluster: mine, user: me}}]
clusters: [{name: mine, cluster: {server: "https://mine.example.com"}}]
users: [{name: me, user: {token: abc}}]
`)
		k := &c.KubeAPIServer
		k.TLSCertFile, k.TLSPrivateKeyFile = pair(whole, time.Now().Add(-time.Hour), time.Now().Add(time.Hour),
			"hub.example.com", "127.0.0.1")
		k.OIDC = OIDCConfig{IssuerURL: s.issuer.url, ClientID: "argosy", UsernameClaim: "email", UsernamePrefix: "oidc:",
			GroupsClaim: "groups", GroupsPrefix: "oidc:", CAFile: s.issuer.caFile}
		k.Audit.LogFile = filepath.Join(whole.TempDir(), "audit", "audit.log")
		var err error
		if s.clients, _, err = pki.Ensure(whole.TempDir(), []string{"elsewhere"}, time.Now()); err != nil {
			t.Fatal(err)
		}
		k.ClientCAFile = s.clients.ClusterCA
		// Requests may wait in a queue for a quarter of the request timeout.
		k.Args = []string{"event-ttl=2h", "profiling=false", "max-requests-inflight=20", "max-mutating-requests-inflight=10",
			"request-timeout=10m"}
		k.AuthorizationConfig = filepath.Join(whole.TempDir(), "authorization.yaml")
		write(t, k.AuthorizationConfig, fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: mallory
  webhook: {timeout: 3s, subjectAccessReviewVersion: v1, matchConditionSubjectAccessReviewVersion: v1, authorizedTTL: 1s, unauthorizedTTL: 1s, failurePolicy: Deny,
    matchConditions: [{expression: "request.user.startsWith('oidc:')"}],
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}}
- {type: RBAC, name: rbac}
`, denyMallory(whole)))
		s.Hub, s.greeting = start(whole, c, Parts{
			Admission: AllParts().Admission,
			Handler: func(d Deps, next http.Handler) http.Handler {
				return historyHandler(d, consoleHandler(d, &atomic.Pointer[console.Cache]{}, nil, nil, proxied(d, next)))
			},
			Controllers: func(ctx context.Context, _ Deps) error {
				close(s.controllers)
				<-ctx.Done()
				return nil
			},
		})
		s.admin, s.adminConfig = adminClient(t, c.KubeconfigOut)
		if _, err := os.Stat(filepath.Join(c.DataDir, history.File)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a hub that starts opens the history database: %v", err)
		}
		sharedByAll = s
	})
	if sharedByAll == nil {
		t.Fatal("the shared hub did not start, see the first test that uses it")
	}
	return sharedByAll
}

// denyMallory serves an authorization webhook, and returns the kubeconfig for it.
func denyMallory(t testing.TB) (kubeconfig string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		_ = json.NewDecoder(r.Body).Decode(&review)
		spec, _ := review["spec"].(map[string]any)
		review["status"] = map[string]any{"allowed": false, "denied": spec["user"] == "oidc:mallory@example.com",
			"reason": "not mallory"}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	kubeconfig = filepath.Join(t.TempDir(), "webhook.kubeconfig")
	write(t, kubeconfig, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}], users: [{name: x, user: {}}], clusters: [{name: x, cluster: {server: %q}}]}`, s.URL))
	return kubeconfig
}
