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

// whoHeaders and whoPrefixes are how servers, and what stands before them, are told who calls or what for, in small
// letters.
var (
	whoHeaders = []string{"authorization", "proxy-authorization", "cookie", "cookie2", "forwarded", "via", "x-real-ip",
		"x-http-method", "x-http-method-override",
		"x-method-override", "x-rewrite-url", "x-user", "x-email", "x-access-token", "x-webauth-user", "x-amzn-oidc-data",
		"x-amzn-oidc-identity", "x-goog-iap-jwt-assertion"}
	whoPrefixes = []string{"impersonate-", "x-remote-", "x-forwarded-", "x-auth-", "x-original-", "x-ssl-", "x-client-",
		"x-impersonate-"}
)

// tellsWho says whether a request header speaks of the caller. An underscore is a dash to servers that make variables
// of headers.
func tellsWho(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
	return slices.Contains(whoHeaders, name) ||
		slices.ContainsFunc(whoPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// protocols are those that Kubernetes upgrades connections to. Another, such as HTTP/2 in the clear, would carry
// requests that the hub does not see.
var protocols = []string{"spdy/3.1", "websocket"}

// upgrade is the protocol that a request asks for in place of HTTP; empty for none.
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

// answerHeaders are those of a member's answer that go on to the caller: what says how to read it. All others speak to
// the hub's own address, where a browser or a client takes them for the hub's: cookies, redirects, further addresses,
// how to authenticate.
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

// errRefused says that the member does not know the hub.
var errRefused = errors.New("unauthorized")

// misleadingError is why an answer of a member is not passed on.
type misleadingError struct{ error }

// answer makes an answer of the member one that the hub may give, or says why there is none. asked is whether the
// connection was to be upgraded.
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
		// Pages of members are no pages of the hub: a browser gives them neither its scripts' rights nor another type.
		resp.Header.Set("X-Content-Type-Options", "nosniff")
		resp.Header.Set("Content-Security-Policy", "sandbox")
	}
	return nil
}

// final passes on no answers that come before the answer: they have headers, too.
type final struct{ next http.RoundTripper }

func (f final) RoundTrip(r *http.Request) (*http.Response, error) {
	return f.next.RoundTrip(r.WithContext(untraced{r.Context()}))
}

// untraced hides from a transport who wants to know of such answers.
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
