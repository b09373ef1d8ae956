package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/member"
)

// whoHeaders and whoPrefixes are the headers, in lower case, with which servers and proxies identify a caller.
var (
	whoHeaders = []string{"authorization", "proxy-authorization", "cookie", "cookie2", "forwarded", "via", "x-real-ip",
		"x-http-method", "x-http-method-override",
		"x-method-override", "x-rewrite-url", "x-user", "x-email", "x-access-token", "x-webauth-user", "x-amzn-oidc-data",
		"x-amzn-oidc-identity", "x-goog-iap-jwt-assertion"}
	whoPrefixes = []string{"impersonate-", "x-remote-", "x-forwarded-", "x-auth-", "x-original-", "x-ssl-", "x-client-",
		"x-impersonate-"}
)

// identifiesCaller reports whether a request header identifies the caller. An underscore is a dash to servers that make
// variables of headers.
func identifiesCaller(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
	return slices.Contains(whoHeaders, name) ||
		slices.ContainsFunc(whoPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// protocols are the protocols that Kubernetes upgrades connections to. Others, such as HTTP/2 without TLS, would carry
// requests that the hub cannot check.
var protocols = []string{"spdy/3.1", "websocket"}

// upgrade returns the protocol that a request wants to upgrade to; empty for none.
func upgrade(r *http.Request) (string, error) {
	asked := r.Header.Values("Upgrade")
	if len(asked) == 0 {
		return "", nil
	}
	if len(asked) == 1 && slices.Contains(protocols, strings.ToLower(asked[0])) {
		return asked[0], nil
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("connections to clusters can be upgraded to %s, not to %q",
		strings.Join(protocols, ", "), asked))
}

// answerHeaders are the response headers that reach the caller: those that describe the body. Other headers, such as
// cookies, redirects and authentication, would apply to the hub's own address.
var answerHeaders = map[string]bool{
	"Accept-Ranges": true, "Age": true, "Cache-Control": true, "Content-Disposition": true, "Content-Encoding": true,
	"Content-Language": true,
	"Content-Length":   true, "Content-Range": true, "Content-Type": true, "Date": true, "Etag": true, "Expires": true,
	"Last-Modified": true,
	"Retry-After":   true, "Vary": true, "Warning": true, "Allow": true,
	"Accept-Patch": true, "X-Stream-Protocol-Version": true, "X-Accepted-Stream-Protocol-Versions": true,
	"X-Content-Type-Options": true,
}

// switching are headers of an answer that upgrades the connection.
var switching = map[string]bool{"Connection": true, "Upgrade": true, "Sec-Websocket-Accept": true,
	"Sec-Websocket-Protocol": true, "Sec-Websocket-Extensions": true}

// errRefused reports that the member does not accept the hub's credentials.
var errRefused = errors.New("unauthorized")

// misleadingError is why an answer of a member is not passed on.
type misleadingError struct{ error }

// answer filters a response of the member for the caller, or returns why it must not be passed on. asked: the request
// wanted an upgrade.
func answer(resp *http.Response, asked bool) error {
	switched := resp.StatusCode == http.StatusSwitchingProtocols
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusProxyAuthRequired:
		return errRefused
	case member.Redirects(resp):
		return &misleadingError{member.RedirectError(resp)}
	case switched && !asked:
		return &misleadingError{errors.New("it upgraded a connection without a request to do so")}
	case resp.StatusCode < 200 && !switched:
		return &misleadingError{fmt.Errorf("it answers %d", resp.StatusCode)}
	}
	for name := range resp.Header {
		if !answerHeaders[name] && !(switched && switching[name]) {
			delete(resp.Header, name)
		}
	}
	resp.Trailer = nil
	if !switched {
		// Responses of members must not run scripts with the rights of the hub's pages, or be read as another type.
		resp.Header.Set("X-Content-Type-Options", "nosniff")
		resp.Header.Set("Content-Security-Policy", "sandbox")
	}
	return nil
}

// final drops informational responses, which have headers too.
type final struct{ next http.RoundTripper }

func (f final) RoundTrip(r *http.Request) (*http.Response, error) {
	return f.next.RoundTrip(r.WithContext(untraced{r.Context()}))
}

// untraced hides informational responses from a transport's trace.
type untraced struct{ context.Context }

func (u untraced) Value(key any) any {
	value := u.Context.Value(key)
	if _, ok := value.(*httptrace.ClientTrace); ok {
		return nil
	}
	return value
}

func badGateway(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadGateway,
		Reason: "BadGateway", Message: fmt.Sprintf(format, args...)}}
}
