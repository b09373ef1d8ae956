package member

import (
	"fmt"
	"net/http"
)

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
