package console

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
)

// front is a layer with a fake API server behind it, which records the last request that it got.
type front struct {
	*Layer
	t    *testing.T
	now  time.Time
	last *http.Request
}

var alice = &user.DefaultInfo{Name: "alice", Groups: []string{"shop", user.AllAuthenticated}}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{t: t, now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)}
	sealer, err := newSealer([]byte("key of the hubs"))
	if err != nil {
		t.Fatal(err)
	}
	f.Layer = &Layer{sealer: sealer, port: 7443, now: func() time.Time { return f.now },
		logins: newLogins(rate.Inf, 1),
		pages:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("page")) }),
		review: func(_ context.Context, token string) error {
			if token != "good" && !strings.HasPrefix(token, "long") {
				return errToken
			}
			return nil
		}}
	f.spent = &spent{maps: fake.NewClientset().CoreV1().ConfigMaps("karmada-system"), now: f.time}
	return f
}

// otherHub returns a second hub of the same etcd, with the same keys.
func (f *front) otherHub() *front {
	other := *f.Layer
	other.spent = &spent{maps: f.spent.maps, now: f.time}
	return &front{Layer: &other, t: f.t, now: f.now}
}

// send sends a request as a page of the console does; change may turn it into another.
func (f *front) send(method, path, body string, cookies []*http.Cookie, change ...func(*http.Request)) *http.Response {
	f.t.Helper()
	r := httptest.NewRequest(method, "https://hub:7443"+path, strings.NewReader(body))
	r.Host = "hub:7443"
	r.Header.Set("X-Argosy-Console", "1")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != http.MethodGet {
		r.Header.Set("Origin", "https://hub:7443")
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	for _, c := range change {
		c(r)
	}
	f.last = nil
	w := httptest.NewRecorder()
	f.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.last = r })).ServeHTTP(w, r)
	return w.Result()
}

func (f *front) logIn(token string) []*http.Cookie {
	f.t.Helper()
	resp := f.send("POST", "/console/session", `{"token":"`+token+`"}`, nil)
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("the login with %q gave %d", token, resp.StatusCode)
	}
	return resp.Cookies()
}

// link returns the code of a one-time link for alice, who has a client certificate.
func (f *front) link() string {
	f.t.Helper()
	r := httptest.NewRequest("POST", "/console/api/link", nil)
	r = r.WithContext(context.WithValue(r.Context(), loginKey{},
		login{certificates: []*x509.Certificate{{NotAfter: f.now.Add(24 * time.Hour)}}}))
	code, _, err := f.newLink(r, alice)
	if err != nil {
		f.t.Fatal(err)
	}
	return code
}

func setting(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func removeHeader(name string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(name) }
}

// evil is the origin of a foreign page.
const evil = "https://evil.example"

func TestTokenLoginBecomesTheUsersOwnCredential(t *testing.T) {
	f := newFront(t)
	cookies := f.logIn("good")
	if f.send("GET", "/console/k8s/api/v1/pods?limit=5", "", cookies); f.last == nil {
		t.Fatal("the request did not reach the API server")
	}
	if got := f.last.Header.Get("Authorization"); got != "Bearer good" {
		t.Errorf("Authorization is %q", got)
	}
	if f.last.URL.Path != "/api/v1/pods" || f.last.URL.RawQuery != "limit=5" {
		t.Errorf("the request is for %s", f.last.URL)
	}
	if got := f.last.Header.Get("Cookie"); got != "" {
		t.Errorf("the cookie goes on: %q", got)
	}
	if !strings.HasPrefix(f.last.UserAgent(), "argosy-console/") {
		t.Errorf("the audit log would not show the console: %q", f.last.UserAgent())
	}
}

func TestWrongTokenIsRefused(t *testing.T) {
	f := newFront(t)
	expired := "a." + "eyJleHAiOjE2MDAwMDAwMDB9" + ".c" // {"exp":1600000000}
	for token, want := range map[string]string{"bad": "does not accept", "": "give a token", expired: "expired at 2020",
		strings.Repeat("x", maxToken+1): "too long"} {
		resp := f.send("POST", "/console/session", `{"token":"`+token+`"}`, nil)
		var status struct{ Message string }
		_ = json.NewDecoder(resp.Body).Decode(&status)
		if resp.StatusCode != http.StatusUnauthorized || !strings.Contains(status.Message, want) ||
			len(resp.Cookies()) > 0 {
			t.Errorf("%.20q gave %d %q and %d cookies", token, resp.StatusCode, status.Message, len(resp.Cookies()))
		}
	}
}

func TestCookieIsOutOfReachOfScripts(t *testing.T) {
	f := newFront(t)
	for _, token := range []string{"good", "long" + strings.Repeat("x", 9000)} {
		cookies := f.logIn(token)
		for _, c := range cookies {
			if !strings.HasPrefix(c.Name, "__Host-argosy-7443") || !c.HttpOnly || !c.Secure || c.Path != "/" ||
				c.SameSite != http.SameSiteStrictMode || c.Domain != "" || len(c.String()) > 4096 ||
				strings.Contains(c.Value, "good") {
				t.Errorf("cookie %.60s… of %d bytes", c.String(), len(c.String()))
			}
		}
		if f.send("GET", "/console/api/me", "", cookies); f.last == nil ||
			f.last.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("a token of %d bytes does not survive", len(token))
		}
	}
}

func TestLinkLogsInOnceInTheWholeFleet(t *testing.T) {
	f := newFront(t)
	other := f.otherHub()
	code := f.link()
	resp := f.send("POST", "/console/session", `{"code":"`+code+`"}`, nil)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the link gave %d", resp.StatusCode)
	}
	other.send("GET", "/console/api/me", "", resp.Cookies())
	if other.last == nil || loginOf(other.last).user.GetName() != "alice" {
		t.Error("the other hub does not know the session")
	}
	for name, hub := range map[string]*front{"the same": f, "the other": other} {
		resp := hub.send("POST", "/console/session", `{"code":"`+code+`"}`, nil)
		if resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) > 0 {
			t.Errorf("the used link gave %d at %s hub", resp.StatusCode, name)
		}
	}
}

func TestLinkExpiresAndCannotBeForged(t *testing.T) {
	f := newFront(t)
	code := f.link()
	cookie := f.logIn("good")[0].Value
	other := newFront(t)
	other.sealer, _ = newSealer([]byte("key of another hub"))
	for name, wrong := range map[string]string{"changed": code[:len(code)-2] + "AA", "of another hub": other.link(),
		"a session's cookie": cookie, "empty seal": "AAAA"} {
		if resp := f.send("POST", "/console/session", `{"code":"`+wrong+`"}`, nil); resp.StatusCode != 401 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	// A link is no session either.
	resp := f.send("GET", "/console/api/me", "", []*http.Cookie{{Name: cookieName(7443, 0), Value: code}})
	if resp.StatusCode != http.StatusUnauthorized || f.last != nil {
		t.Errorf("a link as a cookie gave %d", resp.StatusCode)
	}
	f.now = f.now.Add(LinkLife)
	if resp := f.send("POST", "/console/session", `{"code":"`+code+`"}`, nil); resp.StatusCode != 401 {
		t.Errorf("the expired link gave %d", resp.StatusCode)
	}
}

func TestLinkNeedsTheUsersOwnCredential(t *testing.T) {
	f := newFront(t)
	for name, in := range map[string]login{
		"a session":          {session: &session{}, bearer: "good"},
		"an impersonated":    {impersonates: true, bearer: "good"},
		"without credential": {},
	} {
		r := httptest.NewRequest("POST", "/console/api/link", nil)
		r = r.WithContext(context.WithValue(r.Context(), loginKey{}, in))
		if code, _, err := f.newLink(r, alice); err == nil || code != "" {
			t.Errorf("%s user got a link", name)
		}
	}
}

func TestSessionEnds(t *testing.T) {
	expect := func(f *front, cookies []*http.Cookie, code int, when string) {
		t.Helper()
		if resp := f.send("GET", "/console/api/me", "", cookies); resp.StatusCode != code || f.last != nil && code != 200 {
			t.Errorf("%s: %d, want %d", when, resp.StatusCode, code)
		}
	}
	f := newFront(t)
	cookies := f.logIn("good")
	f.now = f.now.Add(idleLife - time.Minute)
	expect(f, cookies, 200, "before the idle end")
	used := f.send("PUT", "/console/session", "", cookies).Cookies()
	f.now = f.now.Add(2 * time.Minute)
	expect(f, cookies, 401, "after the idle end")
	expect(f, used, 200, "in use")
	if resp := f.send("PUT", "/console/session", "", cookies); resp.StatusCode != 401 {
		t.Errorf("an ended session was prolonged: %d", resp.StatusCode)
	}
	for range 15 {
		f.now = f.now.Add(50 * time.Minute)
		if next := f.send("PUT", "/console/session", "", used).Cookies(); len(next) > 0 {
			used = next
		}
	}
	expect(f, used, 401, "after the absolute end, although it was in use")

	f = newFront(t)
	other := f.otherHub()
	cookies = f.logIn("good")
	if resp := f.send("DELETE", "/console/session", "", cookies); resp.Cookies()[0].MaxAge >= 0 {
		t.Error("the cookie stays after the logout")
	}
	expect(f, cookies, 401, "a stolen cookie after the logout")
	expect(other, cookies, 401, "a stolen cookie after the logout, at another hub")
}

func TestSessionOfCertificateEndsWithIt(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	if s := newSession("", alice, now.Add(time.Minute), now); !s.end().Equal(now.Add(time.Minute)) {
		t.Errorf("it ends at %s", s.end())
	}
	if s := newSession("", alice, now.Add(1000*time.Hour), now); !s.Ends.Equal(now.Add(identityLife)) {
		t.Errorf("it ends at %s", s.Ends)
	}
}

func TestForeignPagesAreRefused(t *testing.T) {
	f := newFront(t)
	cookies := f.logIn("good")
	for name, change := range map[string][]func(*http.Request){
		"foreign origin":              {setting("Origin", evil)},
		"other port of the same host": {setting("Origin", "https://hub:8443"), setting("Sec-Fetch-Site", "same-site")},
		"sandboxed page":              {setting("Origin", "null")},
		"cross-site without origin":   {removeHeader("Origin"), setting("Sec-Fetch-Site", "cross-site")},
		"form post": {removeHeader("X-Argosy-Console"), setting("Content-Type", "text/plain"),
			setting("Origin", evil)},
		"no header of the console": {removeHeader("X-Argosy-Console")},
	} {
		for method, path := range map[string]string{
			"POST": "/console/k8s/api/v1/namespaces", "GET": "/console/k8s/api/v1/pods",
			"DELETE": "/console/session", "PUT": "/console/session"} {
			if resp := f.send(method, path, "", cookies, change...); resp.StatusCode < 400 || f.last != nil {
				t.Errorf("%s: %s %s gave %d", name, method, path, resp.StatusCode)
			}
		}
	}
	const login = `{"token":"good"}`
	resp := f.send("POST", "/console/session", login, nil, setting("Origin", evil))
	if resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) > 0 {
		t.Errorf("a foreign page logged in its own user: %d", resp.StatusCode)
	}
	resp = f.send("POST", "/console/session", login, nil, setting("Content-Type", "text/plain"))
	if resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a login that is not JSON gave %d", resp.StatusCode)
	}
}

func TestCookieCountsForTheConsoleOnly(t *testing.T) {
	f := newFront(t)
	cookies := f.logIn("good")
	for _, path := range []string{"/api/v1/pods", "/consoles", "/apis"} {
		if f.send("GET", path, "", cookies); f.last == nil || f.last.Header.Get("Authorization") != "" {
			t.Errorf("%s is requested with the session's credential", path)
		}
	}
	// Without the console's header it is a request of the CLI, and its cookie is no credential.
	f.send("GET", "/console/api/me", "", cookies, removeHeader("X-Argosy-Console"))
	if f.last != nil && (f.last.Header.Get("Authorization") != "" || loginOf(f.last).user != nil) {
		t.Error("the cookie counts without the console's header")
	}
}

func TestSessionIsItsUserWhateverElseARequestBrings(t *testing.T) {
	f := newFront(t)
	resp := f.send("POST", "/console/session", `{"code":"`+f.link()+`"}`, nil)
	f.send("GET", "/console/k8s/api", "", resp.Cookies(), setting("Authorization", "Bearer root"),
		setting("Impersonate-User", "root"), setting("Impersonate-Extra-x", "y"), setting("X-Remote-User", "root"),
		func(r *http.Request) {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}},
				VerifiedChains: [][]*x509.Certificate{{{}}}}
		})
	if f.last == nil {
		t.Fatal("the request did not reach the API server")
	}
	for _, name := range []string{"Authorization", "Impersonate-User", "Impersonate-Extra-X", "X-Remote-User"} {
		if got := f.last.Header.Get(name); got != "" {
			t.Errorf("%s: %s goes on", name, got)
		}
	}
	if len(f.last.TLS.PeerCertificates)+len(f.last.TLS.VerifiedChains) > 0 {
		t.Error("the browser's client certificate goes on")
	}
	got, ok, err := Authenticate(f.last)
	if err != nil || !ok || got.User.GetName() != "alice" || len(got.User.GetGroups()) != 2 {
		t.Errorf("it is authenticated as %v, %t, %v", got, ok, err)
	}
	// What a client sends cannot make it a session.
	if _, ok, _ := Authenticate(httptest.NewRequest("GET", "/api", nil)); ok {
		t.Error("a request without a session is authenticated")
	}
}

func TestUpgradesAreRefused(t *testing.T) {
	f := newFront(t)
	resp := f.send("GET", "/console/k8s/api/v1/namespaces/a/pods/b/exec", "", f.logIn("good"),
		setting("Upgrade", "websocket"), setting("Connection", "Upgrade"))
	if resp.StatusCode != http.StatusForbidden || f.last != nil {
		t.Errorf("an upgrade gave %d", resp.StatusCode)
	}
}

func TestEveryAnswerForbidsFramesAndForeignCode(t *testing.T) {
	f := newFront(t)
	cookies := f.logIn("good")
	for _, path := range []string{"/console/", "/console/clusters/x", "/console/session", "/console/api/me",
		"/console/k8s/api", "/console/assets/none"} {
		h := f.send("GET", path, "", cookies).Header
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
			"trusted-types 'none'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: the policy lacks %s", path, want)
			}
		}
		if strings.Contains(csp, "unsafe") || h.Get("X-Frame-Options") != "DENY" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
			h.Get("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Errorf("%s has the headers %v", path, h)
		}
	}
	// The page itself may be opened by a link on another page.
	if resp := f.send("GET", "/console/clusters", "", nil, setting("Sec-Fetch-Site", "cross-site"),
		setting("Sec-Fetch-Mode", "navigate")); resp.StatusCode != http.StatusOK {
		t.Errorf("a link to the page gave %d", resp.StatusCode)
	}
}

func TestLoginsAreBounded(t *testing.T) {
	f := newFront(t)
	f.logins = newLogins(rate.Limit(0), 2)
	var last int
	for range 3 {
		last = f.send("POST", "/console/session", `{"token":"bad"}`, nil).StatusCode
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the third login gave %d", last)
	}
	other := func(r *http.Request) { r.RemoteAddr = "192.0.2.77:1234" }
	if resp := f.send("POST", "/console/session", `{"token":"good"}`, nil, other); resp.StatusCode != http.StatusOK {
		t.Errorf("another address is kept out: %d", resp.StatusCode)
	}
}
