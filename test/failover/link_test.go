package failover

import (
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/argosy-io/argosy/internal/sim"
)

// link is the network between the hub and a member. A test can slow it down, cut it, or stop one direction of it.
// Bytes in a direction that is stopped arrive when it works again, as TCP would send them again.
type link struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	is      network
	changed chan struct{} // closed at each change
	conns   map[net.Conn]bool
}

// network is how a link behaves. The zero value is a good network.
type network struct {
	// cut closes all connections and accepts none.
	cut bool
	// toMember and toHub are the directions that are stopped.
	toMemberStopped, toHubStopped bool
	// delay is added to each direction.
	delay time.Duration
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	go l.serve()
	t.Cleanup(func() {
		_ = listener.Close()
		l.set(network{cut: true})
	})
	return l
}

// set changes how the link behaves.
func (l *link) set(is network) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.is = is
	close(l.changed)
	l.changed = make(chan struct{})
	if is.cut {
		for conn := range l.conns {
			_ = conn.Close()
		}
		clear(l.conns)
	}
}

func (l *link) state() network {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is
}

func (l *link) serve() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.carry(conn)
	}
}

// carry connects one connection of the hub to the member.
func (l *link) carry(hub net.Conn) {
	defer hub.Close()
	if l.state().cut {
		return
	}
	member, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer member.Close()
	l.mu.Lock()
	cut := l.is.cut
	if !cut {
		l.conns[hub], l.conns[member] = true, true
	}
	l.mu.Unlock()
	if cut {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.pump(member, hub, func(is network) bool { return is.toMemberStopped }) })
	both.Go(func() { l.pump(hub, member, func(is network) bool { return is.toHubStopped }) })
	both.Wait()
	l.mu.Lock()
	delete(l.conns, hub)
	delete(l.conns, member)
	l.mu.Unlock()
}

// chunk are bytes, and when they were sent.
type chunk struct {
	data []byte
	at   time.Time
}

// pump carries bytes from one side to the other until one of them closes.
func (l *link) pump(to, from net.Conn, stopped func(network) bool) {
	chunks := make(chan chunk, 64)
	go func() {
		defer close(chunks)
		for {
			data := make([]byte, 16<<10)
			n, err := from.Read(data)
			if n > 0 {
				chunks <- chunk{data[:n], time.Now()}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		if !l.wait(c.at, stopped) {
			break
		}
		if _, err := to.Write(c.data); err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
	for range chunks { // so that the reader ends
	}
}

// wait returns when bytes that were sent at a time arrive. It returns false if they never do.
func (l *link) wait(sent time.Time, stopped func(network) bool) bool {
	for {
		l.mu.Lock()
		is, changed := l.is, l.changed
		l.mu.Unlock()
		left := time.Until(sent.Add(is.delay))
		switch {
		case is.cut:
			return false
		case stopped(is):
			<-changed
		case left <= 0:
			return true
		default:
			select {
			case <-changed:
			case <-time.After(left):
			}
		}
	}
}

// kubeconfig is that of a member, through the link. authority is who signed the certificate at its end, if it is not
// the member's.
func (l *link) kubeconfig(t *testing.T, m *sim.Running, authority []byte) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(m.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + l.listener.Addr().String()
		if authority != nil {
			cluster.CertificateAuthorityData = authority
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// address of a member's API server, without the scheme.
func address(m *sim.Running) string { return strings.TrimPrefix(m.Server, "https://") }
