// Package membertest runs member clusters in memory for unit tests.
package membertest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/argosy-io/argosy/test/kit/memserver"
)

type (
	// Server is the member.
	Server = memserver.Server
	// Kind is a kind that the server serves.
	Kind = memserver.Kind
)

// Lease is the kind with which real members record their ownership.
var Lease = memserver.Lease

// Kinds that every server serves.
var (
	Node      = memserver.Node
	Pod       = memserver.Pod
	ConfigMap = memserver.ConfigMap
	Namespace = memserver.Namespace
	Quota     = memserver.Quota
)

// Token is the default token that the server accepts.
const Token = memserver.Token

// New returns a server for the given kinds and the standard ones on a loopback address, until the test ends.
func New(t testing.TB, kinds ...Kind) *Server {
	s := memserver.New(kinds...)
	s.Transport = http.DefaultTransport
	start(t, s, httptest.NewServer(s))
	return s
}

// NewInMemory is New without the network of the machine: clients reach the server with Dial.
func NewInMemory(t testing.TB, kinds ...Kind) *Server {
	s := memserver.New(kinds...)
	way := &http.Transport{DialContext: Dial}
	s.Transport = way
	server := Serve(s)
	t.Cleanup(way.CloseIdleConnections)
	start(t, s, server)
	return s
}

// start ends the server with the test.
func start(t testing.TB, s *Server, server *httptest.Server) {
	s.URL = server.URL
	t.Cleanup(func() {
		s.Close()
		server.CloseClientConnections()
		server.Close()
	})
}

// Dial connects to a server in memory, such as that of NewInMemory.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return memserver.Dial(ctx, network, address)
}

// Listen accepts what Dial connects to the address, a host and a port, until the listener is closed.
func Listen(address string) net.Listener { return memserver.Listen(address) }

// last is the number of the last address that Serve took.
var last atomic.Int64

// Serve returns a server in memory with an address of its own.
func Serve(handler http.Handler) *httptest.Server {
	s := &httptest.Server{Listener: Listen(fmt.Sprintf("server%d.test:80", last.Add(1))),
		Config: &http.Server{Handler: handler}}
	s.Start()
	return s
}
