package check

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A check makes the hub call an address of its author's choice: not one of the hub's own machine.
func TestOnlyPermittedAddressesAreCalled(t *testing.T) {
	own := []net.Addr{&net.IPNet{IP: net.ParseIP("10.0.0.5"), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("2001:db8::5"), Mask: net.CIDRMask(64, 128)}}
	for address, want := range map[string]bool{
		"10.0.0.6": true, "203.0.113.1": true, "2001:db8::6": true,
		"127.0.0.1": false, "127.8.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "224.0.0.1": false, "ff02::1": false,
		"255.255.255.255": false, "10.0.0.5": false, "::ffff:10.0.0.5": false, "2001:db8::5": false,
	} {
		if got := permitted(netip.MustParseAddr(address), nil, own); got != want {
			t.Errorf("%s is permitted: %t, want %t", address, got, want)
		}
	}
	networks := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.1.0.0/16")}
	for address, want := range map[string]bool{"127.0.0.1": true, "::ffff:127.0.0.1": true, "10.1.2.3": true,
		"10.2.2.3": false, "169.254.169.254": false, "::1": false} {
		if got := permitted(netip.MustParseAddr(address), networks, own); got != want {
			t.Errorf("with networks, %s is permitted: %t, want %t", address, got, want)
		}
	}
}

func TestTheHubsOwnServersAreNotCalled(t *testing.T) {
	called := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		called = true
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	// A name is as good as its address when the connection is opened.
	byName := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	for _, url := range []string{server.URL, byName} {
		a := caller{dial: guarded(nil)}.send(t.Context(), request{method: "GET", url: url, timeout: time.Minute})
		if a.Err == nil || !strings.Contains(a.Err.Error(), "--release-check-networks") {
			t.Errorf("%s answers %+v", url, a)
		}
	}
	if called {
		t.Fatal("the server was called")
	}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	a := caller{dial: guarded(loopback)}.send(t.Context(), request{method: "GET", url: server.URL, timeout: time.Minute})
	if a.Err != nil || a.Code != http.StatusNoContent || !called {
		t.Errorf("with its network, the server answers %+v", a)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path+r.Header.Get("Authorization"))
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	a := caller{dial: guarded(loopback)}.send(t.Context(), request{method: "GET", url: server.URL + "/x",
		header: http.Header{"Authorization": {"Bearer s"}}, timeout: time.Minute})
	if a.Err != nil || a.Code != http.StatusFound || len(paths) != 1 {
		t.Errorf("the answer is %+v after requests of %q", a, paths)
	}
}

func TestALongAnswerIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, answerLimit+1))
	}))
	defer server.Close()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	a := caller{dial: guarded(loopback)}.send(t.Context(), request{method: "GET", url: server.URL, timeout: time.Minute})
	if a.Err == nil || !strings.Contains(a.Err.Error(), "longer than") {
		t.Errorf("the answer is %d bytes, %v", len(a.Body), a.Err)
	}
}
