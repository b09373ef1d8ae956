package memserver

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// The network in memory has the listeners of this process. Its connections block on channels alone, so that a test in a
// testing/synctest bubble can wait for servers and clients.

// listeners are the listeners of the network in memory, by address.
var listeners sync.Map

// Dial connects to a listener made by Listen.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: syscall.ECONNREFUSED}
	found, ok := listeners.Load(address)
	if !ok {
		return nil, refused
	}
	l := found.(*listener)
	client, server := net.Pipe()
	select {
	case l.accept <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listener accepts connections that Dial opens.
type listener struct {
	addr   addr
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen accepts what Dial connects to the address, a host and a port, until the listener is closed.
func Listen(address string) net.Listener {
	l := &listener{addr: addr(address), accept: make(chan net.Conn), closed: make(chan struct{})}
	if _, taken := listeners.LoadOrStore(address, l); taken {
		panic(address + " is in use")
	}
	return l
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		listeners.Delete(string(l.addr))
		close(l.closed)
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

// addr is the host name and port of a server in memory.
type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }
