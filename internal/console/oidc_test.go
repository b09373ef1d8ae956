package console

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// testIssuer is an issuer that knows one code, for one challenge.
type testIssuer struct {
	*httptest.Server
	challenge, nonce string
	exchanges        int
}

func newTestIssuer(t *testing.T, f *front) *testIssuer {
	t.Helper()
	i := &testIssuer{}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/.well-known/openid-configuration" {
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/auth",
				"token_endpoint": i.URL + "/token", "scopes_supported": []string{"openid", "groups"}})
			return
		}
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if r.FormValue("code") != "code" || base64.RawURLEncoding.EncodeToString(sum[:]) != i.challenge || i.exchanges > 0 {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant"})
			return
		}
		i.exchanges++
		claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"nonce":%q,"exp":%d}`, i.nonce,
			f.now.Add(time.Hour).Unix()))
		_ = json.NewEncoder(w).Encode(map[string]string{"access_token": "x", "token_type": "Bearer",
			"id_token": "long." + claims + ".c"})
	}))
	t.Cleanup(i.Close)
	file := filepath.Join(t.TempDir(), "ca.crt")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	f.issuer = &issuer{OIDC: OIDC{IssuerURL: i.URL, ClientID: "argosy", CAFile: file}}
	return i
}

// start starts a login and returns the query that the issuer gets, and the cookie of the attempt.
func (i *testIssuer) start(f *front) (url.Values, []*http.Cookie) {
	f.t.Helper()
	resp := f.send("GET", "/console/login/oidc", "", nil)
	at, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != http.StatusFound || !strings.HasPrefix(at.String(), i.URL+"/auth?") {
		f.t.Fatalf("the login gave %d, %s", resp.StatusCode, at)
	}
	query := at.Query()
	i.challenge, i.nonce = query.Get("code_challenge"), query.Get("nonce")
	return query, resp.Cookies()
}

// back is the request by which the issuer sends the browser back.
func back(f *front, state string, cookies []*http.Cookie) *http.Response {
	return f.send("GET", "/console/login/callback?code=code&state="+url.QueryEscape(state), "", cookies,
		removeHeader("X-Argosy-Console"), setting("Sec-Fetch-Site", "cross-site"), setting("Sec-Fetch-Mode", "navigate"))
}

func TestOpenIDConnectLogsIn(t *testing.T) {
	f := newFront(t)
	i := newTestIssuer(t, f)
	query, cookies := i.start(f)
	if query.Get("code_challenge_method") != "S256" || query.Get("client_id") != "argosy" ||
		query.Get("redirect_uri") != "https://hub:7443/console/login/callback" ||
		query.Get("scope") != "openid email profile groups" || query.Get("response_type") != "code" {
		t.Errorf("the issuer is asked %v", query)
	}
	if c := cookies[0]; !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 300 {
		t.Errorf("the cookie of the attempt is %s", c)
	}
	resp := back(f, query.Get("state"), cookies)
	if resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "/console/" {
		t.Fatalf("the callback gave %d", resp.StatusCode)
	}
	f.send("GET", "/console/api/me", "", resp.Cookies())
	if f.last == nil || !strings.HasPrefix(f.last.Header.Get("Authorization"), "Bearer long.") {
		t.Error("the session does not use the ID token")
	}
	f.now = f.now.Add(59 * time.Minute)
	used := f.send("PUT", "/console/session", "", resp.Cookies()).Cookies()
	f.now = f.now.Add(2 * time.Minute)
	if resp := f.send("GET", "/console/api/me", "", used); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the session outlives its token: %d", resp.StatusCode)
	}
}

func TestForeignLoginOfOpenIDConnectIsRefused(t *testing.T) {
	for name, c := range map[string]func(f *front, i *testIssuer, query url.Values, cookies []*http.Cookie) *http.Response{
		"another browser": func(f *front, _ *testIssuer, query url.Values, _ []*http.Cookie) *http.Response {
			return back(f, query.Get("state"), nil)
		},
		"another state": func(f *front, _ *testIssuer, _ url.Values, cookies []*http.Cookie) *http.Response {
			return back(f, "other", cookies)
		},
		"too late": func(f *front, _ *testIssuer, query url.Values, cookies []*http.Cookie) *http.Response {
			f.now = f.now.Add(oidcLife)
			return back(f, query.Get("state"), cookies)
		},
		"a token of another login": func(f *front, i *testIssuer, query url.Values, cookies []*http.Cookie) *http.Response {
			i.nonce = "other"
			return back(f, query.Get("state"), cookies)
		},
		"a used code": func(f *front, i *testIssuer, query url.Values, cookies []*http.Cookie) *http.Response {
			i.exchanges = 1
			return back(f, query.Get("state"), cookies)
		},
		"another verifier": func(f *front, i *testIssuer, query url.Values, cookies []*http.Cookie) *http.Response {
			i.challenge = "other"
			return back(f, query.Get("state"), cookies)
		},
		"a session's cookie": func(f *front, _ *testIssuer, query url.Values, _ []*http.Cookie) *http.Response {
			return back(f, query.Get("state"), []*http.Cookie{{Name: attemptCookie(7443), Value: f.logIn("good")[0].Value}})
		},
	} {
		f := newFront(t)
		i := newTestIssuer(t, f)
		query, cookies := i.start(f)
		resp := c(f, i, query, cookies)
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
		for _, c := range resp.Cookies() {
			if c.MaxAge >= 0 {
				t.Errorf("%s: it sets the cookie %s", name, c.Name)
			}
		}
	}
}

func TestHubWithoutIssuerOffersNoOpenIDConnect(t *testing.T) {
	f := newFront(t)
	if resp := f.send("GET", "/console/login/oidc", "", nil); resp.StatusCode != 200 || resp.Header.Get("Location") != "" {
		t.Errorf("the login gave %d", resp.StatusCode)
	}
	var ways struct{ OIDC bool }
	if _ = json.NewDecoder(f.send("GET", "/console/session", "", nil).Body).Decode(&ways); ways.OIDC {
		t.Error("it is offered")
	}
}
