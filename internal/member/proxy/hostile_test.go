package proxy_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// An administrator's `kubectl delete --raw …/proxy/…` was sent by a member's 307 to the hub itself, with the
// administrator's rights.
func TestRedirectOfMemberNeverReachesHub(t *testing.T) {
	m := membertest.New(t)
	server, _ := hub(t, joined(m, "eu")...)
	var followed atomic.Int32
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { followed.Add(1); return http.ErrUseLastResponse }
	for _, code := range []int{300, 301, 302, 303, 305, 307, 308, 399} {
		for _, to := range []string{server.URL + "/api/v1/namespaces/treasury", "/api/v1/namespaces/treasury",
			"//elsewhere.example.com/", ""} {
			m.Behave(func(w http.ResponseWriter, _ *http.Request) bool {
				if to != "" {
					w.Header().Set("Location", to)
				}
				w.WriteHeader(code)
				return true
			})
			for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPost} {
				req, err := http.NewRequestWithContext(t.Context(), method, server.URL+proxy.Path("eu")+"/api/v1/namespaces/shop",
					strings.NewReader(""))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				var status metav1.Status
				if err := json.Unmarshal(body, &status); err != nil || resp.StatusCode != http.StatusBadGateway ||
					status.Code != http.StatusBadGateway ||
					!strings.Contains(status.Message, `cluster "eu" at 127.0.0.1:`) ||
					!strings.Contains(status.Message, fmt.Sprintf("it responded with %d, a redirect to", code)) {
					t.Errorf("%s answered with %d to %q becomes %s %s", method, code, to, resp.Status, body)
				}
				if resp.Header.Get("Location") != "" {
					t.Errorf("the caller is redirected to %s", resp.Header.Get("Location"))
				}
			}
		}
	}
	if followed.Load() != 0 {
		t.Errorf("%d redirects were followed", followed.Load())
	}
}

func TestAMembersRedirectOfAnUpgradeLeadsNowhereEither(t *testing.T) {
	m := membertest.New(t)
	server, _ := hub(t, joined(m, "eu")...)
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, server.URL+"/api/v1/namespaces/shop/pods/web-1/exec", http.StatusTemporaryRedirect)
		return true
	})
	config := through(server, "eu")
	target, err := url.Parse(config.Host + "/api/v1/namespaces/shop/pods/web-1/exec?command=sh&stdout=true")
	if err != nil {
		t.Fatal(err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, "POST", target)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(config, "GET", target.String())
	if err != nil {
		t.Fatal(err)
	}
	for protocol, executor := range map[string]remotecommand.Executor{"SPDY": spdy, "websocket": socket} {
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), `cluster "eu" at 127.0.0.1:`) ||
			!strings.Contains(err.Error(), "it responded with 307, a redirect to") {
			t.Errorf("%s: ended with %v", protocol, err)
		}
	}
}

func TestMemberHeadersForHubAddressAreDropped(t *testing.T) {
	m := membertest.New(t)
	server, _ := hub(t, joined(m, "eu")...)
	kept := map[string]string{"Content-Type": "application/json", "Etag": `"1"`, "Cache-Control": "no-store",
		"Warning": `299 - "deprecated"`, "Retry-After": "1"}
	dropped := []string{"Set-Cookie", "Set-Cookie2", "Location", "Content-Location", "Link", "Refresh", "Alt-Svc",
		"Strict-Transport-Security", "Www-Authenticate",
		"Proxy-Authenticate", "Clear-Site-Data", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
		"Report-To", "Nel", "Service-Worker-Allowed",
		"Content-Security-Policy", "Public-Key-Pins", "X-Accel-Redirect", "X-Sendfile", "Authorization", "Impersonate-User"}
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/early" {
			w.Header().Set("Link", "</evil.js>; rel=preload")
			w.Header().Set("Set-Cookie", "hub=theirs")
			w.WriteHeader(http.StatusEarlyHints)
		}
		for name, value := range kept {
			w.Header().Set(name, value)
		}
		for _, name := range dropped {
			w.Header().Set(name, "theirs")
		}
		w.Header().Set("Audit-Id", "theirs")
		w.Header().Set(http.TrailerPrefix+"Set-Cookie", "hub=theirs")
		_, _ = io.WriteString(w, "{}")
		return true
	})
	for _, path := range []string{"/plain", "/early"} {
		resp, body := raw(t, server, "GET "+proxy.Path("eu")+path+" HTTP/1.1")
		if resp.StatusCode != http.StatusOK || body != "{}" { // an early answer would have been read first
			t.Fatalf("%s: %s %s", path, resp.Status, body)
		}
		for name, value := range kept {
			if resp.Header.Get(name) != value {
				t.Errorf("%s: %s is %q, want %q", path, name, resp.Header.Get(name), value)
			}
		}
		for name, values := range resp.Header {
			if strings.Contains(strings.Join(values, ","), "theirs") {
				t.Errorf("%s: %s: %s comes from the member", path, name, values)
			}
		}
		if resp.Header.Get("Audit-Id") != "the hub's" || resp.Header.Get("X-Content-Type-Options") != "nosniff" ||
			resp.Header.Get("Content-Security-Policy") != "sandbox" {
			t.Errorf("%s: the hub's own are %v", path, resp.Header)
		}
	}
	m.Behave(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotModified); return true })
	if resp, _ := raw(t, server, "GET "+proxy.Path("eu")+
		"/openapi/v3 HTTP/1.1"); resp.StatusCode != http.StatusNotModified {
		t.Errorf("what did not change is %s", resp.Status)
	}
	for _, code := range []int{http.StatusUnauthorized, http.StatusProxyAuthRequired} {
		m.Behave(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Www-Authenticate", `Basic realm="the hub"`)
			w.WriteHeader(code)
			return true
		})
		resp, body := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1")
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Www-Authenticate") != "" ||
			!strings.Contains(body, "rejects the token") {
			t.Errorf("%d becomes %s %v %s", code, resp.Status, resp.Header, body)
		}
	}
}

// A connection that is upgraded carries what the hub does not see.
func TestConnectionIsUpgradedOnlyToTheRequestedProtocol(t *testing.T) {
	m := membertest.New(t)
	asked := ""
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		asked = r.Header.Get("Upgrade")
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return true
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSet-Cookie: theirs\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ntheirs")
		return true
	})
	server, _ := hub(t, joined(m, "eu")...)
	for name, c := range map[string]struct {
		header string
		code   int
	}{
		"nothing asked for":         {"Accept: */*", http.StatusBadGateway},
		"HTTP/2 in the clear":       {"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", http.StatusBadRequest},
		"a name without an upgrade": {"Upgrade: h2c", http.StatusBadRequest},
		"two at once":               {"Connection: Upgrade\r\nUpgrade: websocket, h2c", http.StatusBadRequest},
		"a websocket":               {"Connection: Upgrade\r\nUpgrade: websocket", http.StatusSwitchingProtocols},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", server.Listener.Addr().String(),
				&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "GET %s/exec HTTP/1.1\r\nHost: hub\r\n%s\r\n\r\n", proxy.Path("eu"), c.header)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.code || resp.Header.Get("Set-Cookie") != "" {
				t.Errorf("answered %s %v, want %d; the member was asked for %q", resp.Status, resp.Header, c.code, asked)
			}
			if asked != "" && asked != "websocket" {
				t.Errorf("the member was asked for %q", asked)
			}
		})
	}
}

func TestAlternativeIdentityHeadersAreDropped(t *testing.T) {
	m, requests := membertest.New(t), &seen{}
	m.Behave(requests.note)
	server, _ := hub(t, joined(m, "eu")...)
	headers := []string{"Impersonate_User", "X_Remote_User", "X-Forwarded-User", "X-Forwarded-For", "X-Auth-Request-User",
		"X-Original-Url", "X-Client-Cert", "X-Ssl-Client-Cert",
		"X-Http-Method-Override", "Forwarded", "X-Real-Ip", "Proxy-Authorization", "IMPERSONATE-EXTRA-a%2fb",
		"X-Remote-Extra-Scopes", "Cookie2"}
	text := "GET " + proxy.Path("eu") + "/version HTTP/1.1"
	for _, name := range headers {
		text += "\n" + name + ": stolen"
	}
	resp, body := raw(t, server, text+"\nX-Of-An-App: kept")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Status, body)
	}
	got := requests.last().Header
	for name, values := range got {
		if strings.Contains(strings.Join(values, ","), "stolen") {
			t.Errorf("the member got %s", name)
		}
	}
	if got.Get("X-Of-An-App") != "kept" {
		t.Errorf("the member got %v", got)
	}
}

func TestAMembersHeadersAreReadNoFurtherThanTheirLimit(t *testing.T) {
	m := membertest.New(t)
	server, _ := hub(t, joined(m, "eu")...)
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/line" {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return true
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, strings.Repeat("x", 900_000)+"\r\n\r\n")
			return true
		}
		for i := range 32 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 64<<10))
		}
		return true
	})
	for _, path := range []string{"/headers", "/line"} {
		for _, more := range []string{"", "\nConnection: Upgrade\nUpgrade: websocket"} {
			text := "GET " + proxy.Path("eu") + path + " HTTP/1.1" + more
			if more != "" {
				text = strings.Replace(text, " HTTP/1.1", "?upgraded HTTP/1.1", 1)
			}
			resp, body := raw(t, server, text)
			if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, `cluster \"eu\" is not reachable`) ||
				len(body) > 4<<10 {
				t.Errorf("%s%s: %s with %d bytes: %.200s", path, more, resp.Status, len(body), body)
			}
		}
	}
}
