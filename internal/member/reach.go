package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/utils/clock"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// ErrUnreachable is in every error that a member's silence causes: it is not known whether the request took effect.
var ErrUnreachable = errors.New(membership.Unreachable)

// Unreachable reports whether an error means that the member did not respond.
func Unreachable(err error) bool { return errors.Is(err, ErrUnreachable) }

var errNoAnswer = errors.New(membership.NoAnswer)

// unreachableError is ErrUnreachable with its cause.
type unreachableError struct{ cause error }

func (e *unreachableError) Error() string        { return fmt.Sprintf("%v: %v", ErrUnreachable, e.cause) }
func (e *unreachableError) Unwrap() error        { return e.cause }
func (e *unreachableError) Is(target error) bool { return target == ErrUnreachable }

// Silence returns the reason for which a member did not answer, as the condition Failure of a Work records it, and the
// cause without the request. ok is false if err does not come from a member's silence.
func Silence(err error) (reason, cause string, ok bool) {
	var silence *unreachableError
	if !errors.As(err, &silence) {
		return "", "", false
	}
	switch {
	case errors.Is(silence.cause, errNoAnswer):
		reason = workv1alpha1.ReasonTimeout
	case Untrusted(silence.cause):
		reason = workv1alpha1.ReasonCertificateUntrusted
	default:
		reason = workv1alpha1.ReasonUnreachable
	}
	return reason, silence.Error(), true
}

// Untrusted reports whether a request failed because the certificate of the server is not trusted: another authority
// signed it, it is for another host, or it has expired.
func Untrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError))
}

// trialPeriod is the interval of requests that test whether a member responds again. Other requests fail at once.
const trialPeriod = time.Second

// reach remembers whether a member answers, so that those who wait for a silent one are few.
// It is shared by all connections that the member ever has.
type reach struct {
	clock clock.PassiveClock
	// answered is called when the member answers after it did not.
	answered func()

	mu    sync.Mutex
	cause error // nil while the member responds
	trial time.Time
}

// admit returns an error if a request must not be sent.
func (r *reach) admit() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		return nil
	}
	if now := r.clock.Now(); !now.Before(r.trial) {
		r.trial = now.Add(trialPeriod)
		return nil
	}
	return &unreachableError{r.cause}
}

// silent returns an error if the member does not respond and the request is not a test.
func (r *reach) silent() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil {
		return nil
	}
	return &unreachableError{r.cause}
}

func (r *reach) failed(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cause = cause
	r.trial = r.clock.Now().Add(trialPeriod)
}

// retry allows the next request as a test.
func (r *reach) retry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trial = time.Time{}
}

func (r *reach) succeeded() {
	r.mu.Lock()
	back := r.cause != nil
	r.cause = nil
	r.mu.Unlock()
	if back {
		r.answered()
	}
}

// send sends a request unless the member is known to be silent, and records whether it answered. A redirect is an
// error.
func (r *reach) send(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	beside := req.Context().Value(asideKey{}) != nil
	admit := r.admit
	if beside {
		admit = r.silent
	}
	if req.Context().Value(trialKey{}) == nil {
		if err := admit(); err != nil {
			return nil, err
		}
	}
	resp, err := refuseRedirect(next.RoundTrip(req))
	if err == nil {
		r.succeeded()
		return resp, nil
	}
	if ended := req.Context().Err(); errors.Is(ended, context.Canceled) || beside && ended != nil {
		return nil, inBrief(err)
	}
	r.failed(cause(err))
	return nil, &unreachableError{cause(err)}
}

// trialKey marks requests that are sent even if the member does not respond.
type trialKey struct{}

func trial(ctx context.Context) context.Context { return context.WithValue(ctx, trialKey{}, true) }

// asideKey marks requests that other servers than the member's API server answer. Their timeouts do not make the
// member unreachable.
type asideKey struct{}

func aside(ctx context.Context) context.Context { return context.WithValue(ctx, asideKey{}, true) }

// cause returns the error without what changes from one attempt to the next, such as the local port: the text reaches
// conditions, and must be the same for the same trouble. A text that the member chose is repeated in brief.
func cause(err error) error { return inBrief(root(err)) }

func root(err error) error {
	var silence *unreachableError
	var request *url.Error
	var timeout interface{ Timeout() bool }
	var op *net.OpError
	switch {
	case errors.As(err, &silence):
		return silence.cause
	case errors.Is(err, context.DeadlineExceeded):
		return errNoAnswer
	case errors.As(err, &op) && op.Addr != nil && op.Timeout():
		return fmt.Errorf("%s %s: no answer in time", op.Op, op.Addr)
	case errors.As(err, &op) && op.Addr != nil:
		return fmt.Errorf("%s %s: %w", op.Op, op.Addr, op.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return errNoAnswer
	case errors.As(err, &request):
		return request.Err
	}
	return err
}

// bounded is the transport that ends each request after the timeout, including its response body. The Timeout of
// http.Client would hide the cause. A redirect is an error.
type bounded struct {
	wrapping
	timeout time.Duration
	// limit bounds a response body in bytes; 0 means no limit.
	limit int64
}

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), b.timeout)
	resp, err := refuseRedirect(b.next.RoundTrip(req.WithContext(ctx)))
	if err != nil {
		cancel()
		return nil, err
	}
	if b.limit > 0 {
		resp.Body = http.MaxBytesReader(nil, resp.Body, b.limit)
	}
	resp.Body = &endingBody{resp.Body, cancel}
	return resp, nil
}

// wrapping is a transport that sends its requests with another one.
type wrapping struct{ next http.RoundTripper }

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (w wrapping) WrappedRoundTripper() http.RoundTripper { return w.next }

// endingBody releases the request's timer with the answer.
type endingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *endingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// refuseRedirect turns a member's redirect into an error. A client that followed it would send its request, with the
// credentials, to an address that the member chooses.
func refuseRedirect(resp *http.Response, err error) (*http.Response, error) {
	if err == nil && Redirects(resp) {
		_ = resp.Body.Close()
		return nil, RedirectError(resp)
	}
	return resp, err
}

// Redirects reports whether a response redirects the client. 304 Not Modified does not.
func Redirects(resp *http.Response) bool {
	return resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified
}

// RedirectError describes a redirect that is not followed.
func RedirectError(resp *http.Response) error {
	const most = 200 // a member may send 1 MiB, and this becomes a condition
	to := resp.Header.Get("Location")
	return fmt.Errorf("it responded with %d, a redirect to %q, which is not followed: API servers do not send redirects; check that spec.apiEndpoint is the address of an API server", resp.StatusCode, to[:min(len(to), most)])
}
