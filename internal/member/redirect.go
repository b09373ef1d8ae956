package member

import (
	"fmt"
	"net/http"
)

// ownWords makes an error of a member's redirect. Following it, a client would send what it sends to the member, credentials among it,
// to whom the member names.
type ownWords struct{ next http.RoundTripper }

func (o ownWords) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(req)
	if err == nil && Redirects(resp) {
		_ = resp.Body.Close() // nothing of it is read
		return nil, RedirectError(resp)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go look through.
func (o ownWords) WrappedRoundTripper() http.RoundTripper { return o.next }

// Redirects says whether an answer sends its reader elsewhere. One that says that nothing changed does not.
func Redirects(resp *http.Response) bool {
	return resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified
}

// RedirectError is what is told of a redirect.
func RedirectError(resp *http.Response) error {
	const most = 200
	to := resp.Header.Get("Location")
	return fmt.Errorf("it responded with %d, a redirect to %q, which is not followed: API servers do not send redirects; check that spec.apiEndpoint is the address of an API server", resp.StatusCode, to[:min(len(to), most)])
}
