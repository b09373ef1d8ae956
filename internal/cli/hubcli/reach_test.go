package hubcli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestCauseOfAFailedConnection(t *testing.T) {
	for want, err := range map[string]error{
		"no such host":        &net.DNSError{Name: "hub", Err: "no such host", IsNotFound: true},
		"no answer within 5s": &net.DNSError{Name: "hub", Err: "i/o timeout", IsTimeout: true},
		"the name hub cannot be resolved: server misbehaving": &net.DNSError{Name: "hub", Err: "server misbehaving",
			IsTemporary: true},
		"connection refused": syscall.ECONNREFUSED,
	} {
		if got := NoResponseCause(&url.Error{Op: "Get", URL: "https://hub", Err: err}, 5*time.Second); got != want {
			t.Errorf("%v is told as %q, want %q", err, got, want)
		}
	}
}

// --request-timeout replaces the limits of commands.
func TestRequestTimeoutReplacesLimits(t *testing.T) {
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hangs.Close()
	defer close(release)
	config := &rest.Config{Host: hangs.URL, Timeout: 100 * time.Millisecond}
	for name, ask := range map[string]func() error{
		"reach":    func() error { return reach(config) },
		"responds": func() error { return Responds(t.Context(), config, "eu") },
	} {
		began := time.Now()
		if err := ask(); err == nil || time.Since(began) > AskTimeout/2 {
			t.Errorf("%s: after %s: %v", name, time.Since(began), err)
		} else if name == "reach" && !strings.Contains(err.Error(), "no answer within 100ms") {
			t.Error(err)
		}
	}
}
