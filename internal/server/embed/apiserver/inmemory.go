package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// windowBytes bounds how much a handler may write before its reader reads. Most responses fit completely, and the
// server's own limits still detect a slow watcher.
const windowBytes = 256 << 10

// Loopback is an http.RoundTripper that calls a server of this process directly, without TLS, sockets or HTTP framing.
// It behaves like an HTTP/2 connection. The handler's context ends when the caller's context ends, when the caller
// closes the body, or when the handler returns. Flushed data is readable at once. A handler waits if it is too far
// ahead of its reader. Upgraded connections (exec, port-forward) are not supported.
//
// A request with a single response is handled on the caller's goroutine: this saves a switch, and the stack has already
// grown to the size that a handler needs.
//
// A Loopback, and clients from its Config, can be created before the server. Until the server runs, and after it
// stopped, requests fail.
type Loopback struct {
	target atomic.Pointer[target]
	// passed are the keys of the values of a caller's context that the handler's context has.
	passed []any
}

// target is a running server.
type target struct {
	handler http.Handler
	// token authenticates as the server itself.
	token string
	// longRunning reports whether a request is a watch or another stream, which has no timeout. Other requests end after
	// timeout.
	longRunning func(*http.Request) bool
	timeout     time.Duration
	// closed ends every exchange, as losing the connection would.
	closed context.Context
}

// NewLoopback returns a loopback without a server; Options.Loopback connects it. Handlers get only the values of the
// passed keys from the caller's context.
func NewLoopback(passed ...any) *Loopback { return &Loopback{passed: passed} }

// Config returns a client configuration with every right and no rate limit. Clients choose their own content type.
func (l *Loopback) Config() *rest.Config {
	return &rest.Config{Host: "https://loopback", Transport: l, QPS: -1, DisableCompression: true}
}

var errNotRunning = errors.New("the API server is not running")

// RoundTrip implements http.RoundTripper. The response of a stream is returned at its first flush, when the window
// is full, or when the handler returns, whichever comes first.
func (l *Loopback) RoundTrip(req *http.Request) (*http.Response, error) {
	t := l.target.Load()
	if t == nil || t.closed.Err() != nil {
		closeBody(req)
		return nil, errNotRunning
	}
	ctx := onlyPassed{req.Context(), l.passed}
	if t.longRunning(req) {
		return t.stream(ctx, req)
	}
	return t.answer(ctx, req)
}

// answer handles req here and now.
func (t *target) answer(caller context.Context, req *http.Request) (*http.Response, error) {
	ctx, release := context.WithTimeout(caller, t.timeout)
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.closed, func() { cancel(errNotRunning) })()
	x := newExchange(ctx, cancel, req)
	x.unbounded = true
	t.serve(x, t.inbound(ctx, req))
	if x.end != io.EOF { // no lock: x is not shared yet
		return nil, x.end
	}
	return x.response, nil
}

// stream handles req in a goroutine that lasts as long as the stream does.
func (t *target) stream(caller context.Context, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(caller)
	x := newExchange(ctx, cancel, req)
	stop := context.AfterFunc(t.closed, func() { cancel(errNotRunning) })
	wake := context.AfterFunc(ctx, x.wake)
	in := t.inbound(ctx, req)
	go func() {
		t.serve(x, in)
		stop()
		wake()
	}()
	select {
	case <-x.started:
	case <-ctx.Done():
		select {
		case <-x.started: // if both are ready, return the response
		default:
			return nil, context.Cause(ctx)
		}
	}
	if err := x.silent(); err != nil {
		return nil, err
	}
	return x.response, nil
}

// onlyPassed ends with a context and has its values of the passed keys only. A caller that serves a request itself,
// such as one into a member, calls with that request's context: its audit event, user and trace are not those of the
// new request.
type onlyPassed struct {
	context.Context
	passed []any
}

func (c onlyPassed) Value(key any) any {
	if slices.Contains(c.passed, key) {
		return c.Context.Value(key)
	}
	return nil
}

// AfterFunc saves contexts that derive from this one a goroutine.
func (c onlyPassed) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.Context, f) }

// inbound returns req as a handler gets it from a connection. It may change req.
func (t *target) inbound(ctx context.Context, req *http.Request) *http.Request {
	in := req.Clone(ctx)
	in.RequestURI = req.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/2.0", 2, 0
	if in.Header.Get("Authorization") == "" {
		in.Header.Set("Authorization", "Bearer "+t.token)
	}
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

func (t *target) serve(x *exchange, in *http.Request) {
	defer func() {
		closeBody(in)
		end := io.EOF
		if r := recover(); r != nil { // as net/http does: the exchange breaks, the process goes on
			end = io.ErrUnexpectedEOF
			if r != http.ErrAbortHandler { // net/http compares it so
				klog.ErrorS(nil, "handler panicked", "panic", r, "stack", string(debug.Stack()))
			}
		}
		x.finish(end)
	}()
	t.handler.ServeHTTP(x, in)
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// exchange is the response of one request: the handler writes it, the caller reads it.
type exchange struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	header   http.Header    // the handler's, until the response starts
	started  chan struct{}  // closed when response is set
	response *http.Response // written once, before started is closed
	// unbounded: the answer is read when it is complete, so its writer must not wait.
	unbounded bool

	mu     sync.Mutex
	cond   sync.Cond // signalled on every change below, and when ctx ends
	code   int       // 0 until WriteHeader
	buffer []byte    // written and not yet read
	sent   bool      // started is closed
	end    error     // returned to a reader when buffer is empty; nil while the handler runs
	closed bool      // the reader has gone
}

func newExchange(ctx context.Context, cancel context.CancelCauseFunc, req *http.Request) *exchange {
	x := &exchange{ctx: ctx, cancel: cancel, header: http.Header{}, started: make(chan struct{})}
	x.cond.L = &x.mu
	x.response = &http.Response{Proto: "HTTP/2.0", ProtoMajor: 2, ContentLength: -1, Body: (*body)(x), Request: req}
	return x
}

// Header implements http.ResponseWriter.
func (x *exchange) Header() http.Header { return x.header }

// WriteHeader implements http.ResponseWriter.
func (x *exchange) WriteHeader(code int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writeHeader(code)
}

func (x *exchange) writeHeader(code int) {
	if x.code != 0 || code < 200 { // informational responses are dropped
		return
	}
	x.code = code
	x.response.StatusCode = code
	x.response.Status = http.StatusText(code)
	x.response.Header = x.header.Clone()
}

// Write implements http.ResponseWriter. It waits while the window is full and there is a reader.
func (x *exchange) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writeHeader(http.StatusOK)
	x.buffer = append(x.buffer, p...)
	if x.sent {
		x.cond.Broadcast()
	}
	if len(x.buffer) >= windowBytes && !x.unbounded {
		x.send()
	}
	for len(x.buffer) >= windowBytes && !x.unbounded && !x.closed && x.ctx.Err() == nil {
		x.cond.Wait()
	}
	if x.closed || x.ctx.Err() != nil {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// Flush implements http.Flusher.
func (x *exchange) Flush() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writeHeader(http.StatusOK)
	if !x.unbounded {
		x.send()
	}
}

// CloseNotify implements the deprecated http.CloseNotifier. Without it, the API server's filters assume that the writer
// cannot flush.
func (x *exchange) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(x.ctx, func() { gone <- true })
	return gone
}

// send lets RoundTrip return. The caller must have locked x.mu.
func (x *exchange) send() {
	if !x.sent {
		x.sent = true
		close(x.started)
	}
	x.cond.Broadcast()
}

// finish is called once, when the handler has returned.
func (x *exchange) finish(end error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if end == io.EOF && x.ctx.Err() != nil { // the response may be incomplete
		end = context.Cause(x.ctx)
	}
	x.end = end
	if end == io.EOF {
		x.writeHeader(http.StatusOK)
		if !x.sent {
			x.response.ContentLength = int64(len(x.buffer))
		}
	}
	x.send()
	x.cancel(nil) // the buffer and the end can still be read
}

// silent returns why the handler ended without a response; nil if there is one.
func (x *exchange) silent() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.code == 0 {
		return x.end
	}
	return nil
}

func (x *exchange) wake() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cond.Broadcast()
}

// body is the reader's end.
type body exchange

func (b *body) Read(p []byte) (int, error) {
	x := (*exchange)(b)
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		switch {
		case x.closed:
			return 0, http.ErrBodyReadAfterClose
		case len(x.buffer) > 0:
			full := len(x.buffer) >= windowBytes
			n := copy(p, x.buffer)
			if x.buffer = x.buffer[n:]; len(x.buffer) == 0 {
				x.buffer = nil // an idle watch uses no memory
			}
			if full {
				x.cond.Broadcast()
			}
			return n, nil
		case x.end != nil:
			return 0, x.end
		case x.ctx.Err() != nil:
			return 0, context.Cause(x.ctx)
		}
		x.cond.Wait()
	}
}

func (b *body) Close() error {
	x := (*exchange)(b)
	x.mu.Lock()
	x.closed, x.buffer = true, nil
	x.cond.Broadcast()
	x.mu.Unlock()
	x.cancel(context.Canceled)
	return nil
}
