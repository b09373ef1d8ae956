package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/argosy-io/argosy/internal/core/release/sample"
)

const (
	// requestTimeout bounds a request to a Prometheus, and one to a webhook that sets none.
	requestTimeout = 10 * time.Second
	// answerLimit bounds what the hub reads of an answer. Users choose who answers.
	answerLimit = 1 << 20
)

// caller sends requests that users have written. They have no credentials but those of a Secret, follow no redirects
// and use no proxy, so that the address that was permitted is the one that is called.
type caller struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

type request struct {
	method, url string
	header      http.Header
	body        []byte
	// authorities are PEM certificates to trust instead of those of the system; nil for those.
	authorities []byte
	timeout     time.Duration
}

func (c caller) send(ctx context.Context, r request) sample.Answer {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.authorities != nil {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(r.authorities) {
			return sample.Answer{Err: errors.New("ca.crt of the Secret in secretRef has no PEM certificate: " +
				"store one, or remove the key")}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return sample.Answer{Err: errors.New("the url of the ReleaseCheck is not valid: correct it")}
	}
	req.Header = r.header
	client := &http.Client{
		Transport: &http.Transport{DialContext: c.dial, TLSClientConfig: settings, DisableKeepAlives: true,
			ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return sample.Answer{Err: causeOf(err, r.timeout)}
	}
	return read(resp, r.timeout)
}

// read reads an answer and closes it.
func read(resp *http.Response, timeout time.Duration) sample.Answer {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	switch {
	case err != nil:
		return sample.Answer{Err: causeOf(err, timeout)}
	case len(body) > answerLimit:
		return sample.Answer{Err: fmt.Errorf("the answer is longer than %d bytes", answerLimit)}
	}
	return sample.Answer{Code: resp.StatusCode, Body: body}
}

// causeOf returns an error of a request without its URL, which may have a query.
func causeOf(err error, timeout time.Duration) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", timeout)
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// errAddress is the reason why an address is not called.
var errAddress = errors.New("the hub does not call this address for ReleaseChecks: an administrator can permit its " +
	"network with --release-check-networks")

// guarded returns a function that opens TCP connections to permitted addresses only. It looks at the address that a
// name has when the connection is opened, so that a name cannot change in between.
func guarded(networks []netip.Prefix) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: requestTimeout / 2, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("parse address %s: %w", address, err)
		}
		own, err := net.InterfaceAddrs()
		if err != nil {
			return fmt.Errorf("list the addresses of this machine: %w", err)
		}
		if !permitted(at.Addr(), networks, own) {
			return errAddress
		}
		return nil
	}}
	return dialer.DialContext
}

// permitted reports whether checks may call an address: one in the networks, or without them any address but those of
// this machine and of its link. own are the addresses of the machine.
func permitted(to netip.Addr, networks []netip.Prefix, own []net.Addr) bool {
	to = to.Unmap().WithZone("")
	if len(networks) > 0 {
		return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(to) })
	}
	if !to.IsGlobalUnicast() { // loopback, link-local, multicast, unspecified
		return false
	}
	return !slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap().WithZone("") == to
	})
}
