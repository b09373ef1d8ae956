package hubcli

import (
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"
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
