// Package etcd runs one etcd member inside this process. It serves the API server of the same process, by calls and
// over a unix socket. A cluster of several members runs outside.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// maxSocketPath is the longest socket path that all supported systems accept (104 bytes on Darwin, 108 on Linux,
// including the NUL).
const maxSocketPath = 103

// startTimeout bounds the slowest start: the replay of a large log after a crash.
const startTimeout = 2 * time.Minute

// Options are the folder and the durability of a store.
type Options struct {
	// Dir is the data folder. It is created with mode 0700, and must be used only by this member.
	Dir string
	// UnsafeNoFsync trades durability on power loss for speed, for data that can be created again, such as a simulated
	// member's. A killed process loses nothing either way.
	UnsafeNoFsync bool
	// Quota bounds the size of the store on disk, in bytes; default DefaultQuota. Beyond it etcd raises the alarm NOSPACE.
	Quota int64
	// Log receives warnings and errors, one JSON object a line; nil discards them.
	Log io.Writer
	// Fatal is called with the reason right before etcd ends the process, for example when the disk is full. It may be
	// nil.
	Fatal func(reason string)
}

// DefaultQuota is the largest that etcd's makers advise.
const DefaultQuota = 8 << 30

// Server is a running member.
type Server struct {
	// Endpoint is a client URL, unix:///…, that --etcd-servers and clientv3 accept. File permissions guard it.
	Endpoint string

	dir      string
	etcd     *embed.Etcd
	logLevel zap.AtomicLevel
	// started: etcd runs. broken is why it does not start.
	started atomic.Bool
	broken  chan error
	// tempDir is the folder of the socket if the path of Dir is too long. Stop removes it.
	tempDir string
}

// Start returns when the member serves. Cancelling ctx only ends the wait; Stop ends a started server.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create etcd's data folder: %w", err)
	}
	s := &Server{dir: o.Dir, logLevel: zap.NewAtomicLevel(), broken: make(chan error, 1)}
	socket, err := s.socketPath(o.Dir)
	if err != nil {
		return nil, err
	}
	s.Endpoint = "unix://" + socket

	c := config(o.Dir)
	c.ListenPeerUrls = nil // a member without peers does not listen; the advertised peer URL is only a name
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	// With a separate socket for HTTP, which is not used, gRPC needs no multiplexer.
	c.ListenClientHttpUrls = []url.URL{{Scheme: "unix", Path: socket + ".http"}}
	c.EnableGRPCGateway = false
	c.UnsafeNoFsync = o.UnsafeNoFsync
	// The API server compacts every five minutes, as it does with any etcd; a second compactor would only race it.
	c.AutoCompactionRetention = "0"
	c.QuotaBackendBytes = cmp.Or(o.Quota, DefaultQuota)
	// There is no other candidate, so waiting a second before electing oneself only delays the start.
	c.TickMs, c.ElectionMs = 50, 250
	// There are no followers: keep the raft log, which lives in memory, short.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 5000, 100
	// the default is only set by the flag: without it, every request is slow
	c.WarningUnaryRequestDuration = 500 * time.Millisecond
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.logger(o.Log, o.Fatal))

	if HasData(o.Dir) {
		if err := checkFiles(o.Dir); err != nil {
			s.removeTempDir()
			return nil, err
		}
	}
	if s.etcd, err = s.start(c); err != nil {
		s.removeTempDir()
		return nil, fmt.Errorf("start etcd on %s: %w", o.Dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-s.etcd.Server.ReadyNotify():
		if err = os.WriteFile(filepath.Join(o.Dir, endpointFile), []byte(s.Endpoint), 0o600); err == nil {
			return s, nil
		}
	case err = <-s.etcd.Err():
	case <-s.etcd.Server.StopNotify():
		err = fmt.Errorf("it stopped")
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.Stop()
	return nil, fmt.Errorf("wait for etcd on %s: %w", o.Dir, err)
}

// config returns the name of the member and its data folders.
func config(dir string) *embed.Config {
	c := embed.NewConfig()
	c.Name = "argosy"
	c.Dir = filepath.Join(dir, "data")
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return c
}

// HasData reports whether a folder holds a store.
func HasData(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "data", "member"))
	return err == nil
}

// start is embed.StartEtcd, but returns an error where etcd would end the process or panic.
func (s *Server) start(c *embed.Config) (*embed.Etcd, error) {
	type result struct {
		etcd *embed.Etcd
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() { done <- r }()
		defer notPanicking(&r.err)
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		r.err = errEnded // overwritten if the goroutine ends normally
		r.etcd, r.err = embed.StartEtcd(c)
	}()
	var r result
	select {
	case err := <-s.broken:
		r.err = err
	case r = <-done:
		if errors.Is(r.err, errEnded) {
			r.err = <-s.broken
		}
	}
	s.started.Store(r.err == nil)
	return r.etcd, r.err
}

// errEnded replaces an error that is reported later.
var errEnded = errors.New("etcd stopped while starting")

// last is what etcd calls for a fatal error: during a start it returns the error, later it ends the process.
type last struct {
	*Server
	fatal func(reason string)
}

// OnWrite implements zapcore.CheckWriteHook.
func (l last) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	reason := entry.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok {
			reason += ": " + err.Error()
		}
	}
	if !l.started.Load() {
		select {
		case l.broken <- errors.New(reason):
		default:
		}
		runtime.Goexit()
	}
	if l.fatal != nil {
		l.fatal(reason)
	}
	os.Exit(1)
}

// Client calls the server without a connection. Close it when done.
func (s *Server) Client() *clientv3.Client { return v3client.New(s.etcd.Server) }

// Err reports a failure of the running server, at most a few; it never closes before Stop.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Revision returns the store's current revision: the number of writes it has seen, plus one.
func (s *Server) Revision() int64 { return s.etcd.Server.KV().Rev() }

// Stop stops the server and returns when its data is closed. Clients should be closed before.
func (s *Server) Stop() {
	s.logLevel.SetLevel(zapcore.FatalLevel)           // it logs the normal end of its listeners as an error
	_ = os.Remove(filepath.Join(s.dir, endpointFile)) // a leftover names no socket
	s.etcd.Close()
	s.removeTempDir()
}

func (s *Server) removeTempDir() {
	if s.tempDir != "" {
		_ = os.RemoveAll(s.tempDir)
	}
}

// socketPath prefers the data folder, where permissions and life time are right by nature.
func (s *Server) socketPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find etcd's data folder: %w", err)
	}
	if p := filepath.Join(dir, "etcd.sock"); len(p+".http") <= maxSocketPath {
		return p, nil
	}
	if s.tempDir, err = os.MkdirTemp("", "argosy-"); err != nil {
		return "", fmt.Errorf("create a folder for etcd's socket: %w", err)
	}
	return filepath.Join(s.tempDir, "etcd.sock"), nil
}

func (s *Server) logger(w io.Writer, fatal func(string)) *zap.Logger {
	s.logLevel.SetLevel(zapcore.WarnLevel)
	core := zapcore.NewNopCore()
	if w != nil {
		encoder := zap.NewProductionEncoderConfig()
		encoder.EncodeTime = zapcore.RFC3339NanoTimeEncoder
		core = zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.Lock(zapcore.AddSync(w)), s.logLevel)
	}
	hook := last{s, fatal}
	return zap.New(core, zap.WithFatalHook(hook), zap.WithPanicHook(hook)).Named("etcd")
}

// checkTimeout bounds how long an external server may take to respond.
const checkTimeout = 5 * time.Second

// Check returns nil if one of the servers responds as an etcd, and otherwise why none does.
func Check(ctx context.Context, servers []string, caFile, certFile, keyFile string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	tlsInfo := transport.TLSInfo{TrustedCAFile: caFile, CertFile: certFile, KeyFile: keyFile}
	tlsConfig, err := tlsInfo.ClientConfig()
	if err != nil {
		return fmt.Errorf("the TLS files for etcd cannot be used (%w): correct --etcd-cafile, --etcd-certfile and --etcd-keyfile", err)
	}
	errs := make(chan error, len(servers))
	for _, server := range servers {
		go func() { errs <- checkOne(ctx, server, tlsConfig) }()
	}
	var failed error
	for range servers {
		err := <-errs
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("etcd is not responding (%w): start it, or correct --etcd-servers", failed)
}

// ConnectAll returns a client of all of servers, which goes on with another when one ends. Close it when done.
func ConnectAll(servers []string, caFile, certFile, keyFile string) (*clientv3.Client, error) {
	tlsConfig, err := (transport.TLSInfo{TrustedCAFile: caFile, CertFile: certFile, KeyFile: keyFile}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the TLS files for etcd cannot be used (%w): correct --etcd-cafile, --etcd-certfile and --etcd-keyfile", err)
	}
	if caFile+certFile == "" {
		tlsConfig = nil
		for _, server := range servers {
			if u, err := url.Parse(server); err == nil && u.Scheme == "https" {
				tlsConfig = &tls.Config{}
			}
		}
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: servers, TLS: tlsConfig, DialKeepAliveTime: 30 * time.Second,
		DialKeepAliveTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %v: %w", servers, err)
	}
	return client, nil
}

// checkOne dials by itself first: the client's own error for everything from a wrong port to a wrong CA is a deadline.
func checkOne(ctx context.Context, server string, tlsConfig *tls.Config) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	network, address := "tcp", u.Host
	if u.Scheme == "unix" {
		network, address = "unix", u.Host+u.Path
	}
	var conn net.Conn
	if u.Scheme == "https" {
		conn, err = (&tls.Dialer{Config: tlsConfig}).DialContext(ctx, network, address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		tlsConfig = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	_ = conn.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server}, TLS: tlsConfig, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	defer client.Close()
	if _, err := client.Status(ctx, server); err != nil {
		return fmt.Errorf("%s: %w", server, err)
	}
	return nil
}
