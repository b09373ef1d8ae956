package member

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// What a member says went wrong reaches conditions, events and the hub's log: a condition that is too long to be stored
// would keep all else of a status from being written, that the member is not Ready above all.
const (
	// wordsLimit is the most bytes of a member's error that are repeated.
	wordsLimit = 1 << 10
	// plainLimit is the same of one that is no Status: what checks of its health failed, say.
	plainLimit = 16 << 10
	// faultLimit is the most bytes that are read of an answer that is an error.
	faultLimit = 256 << 10
	// headerLimit is the most bytes that are read of an answer's headers.
	headerLimit = 1 << 20
)

// brief is as much of a text as is repeated.
func brief(text string) string {
	if len(text) <= wordsLimit {
		return text
	}
	return strings.ToValidUTF8(text[:wordsLimit], "") + fmt.Sprintf("… (of %d bytes)", len(text))
}

// briefError is an error in fewer words.
type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.err }

// inBrief is the error if its text is short, or else one with the beginning of it.
func inBrief(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); len(text) > wordsLimit {
		return &briefError{brief(text), err}
	}
	return err
}

// retell reads an answer that is an error, for as long as timeout, and shortens what it says. What is short is left as
// it is.
func retell(resp *http.Response, timeout time.Duration) {
	if resp.ContentLength >= 0 && resp.ContentLength <= wordsLimit {
		return
	}
	body := resp.Body // which is another one by the time that a late end sees it
	late := time.AfterFunc(timeout, func() { _ = body.Close() })
	raw, err := io.ReadAll(io.LimitReader(body, faultLimit+1))
	late.Stop()
	_ = body.Close()
	all := err == nil && len(raw) <= faultLimit
	if all && len(raw) <= wordsLimit {
		rebody(resp, raw, resp.Header.Get("Content-Type"))
		return
	}
	var status metav1.Status
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if all && media == runtime.ContentTypeJSON && json.Unmarshal(raw, &status) == nil && status.Kind == "Status" {
		if len(status.Message) > wordsLimit {
			status.Message = brief(status.Message)
			if shorter, err := json.Marshal(status); err == nil {
				raw = shorter
			}
		}
		rebody(resp, raw, resp.Header.Get("Content-Type"))
		return
	}
	if all && len(raw) <= plainLimit {
		rebody(resp, raw, resp.Header.Get("Content-Type"))
		return
	}
	// Clients go by the code then.
	rebody(resp, []byte(strings.ToValidUTF8(string(raw[:min(len(raw), plainLimit)]), "")+"…"), "text/plain")
}

func rebody(resp *http.Response, body []byte, contentType string) {
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Type", contentType)
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Header.Del("Content-Encoding")
}

// fewHeaders has a transport that was just made read no more of an answer's headers than headerLimit.
func fewHeaders(rt http.RoundTripper) http.RoundTripper {
	under := rt
	for {
		if t, ok := under.(*http.Transport); ok {
			t.MaxResponseHeaderBytes = headerLimit
			return rt
		}
		wrapper, ok := under.(utilnet.RoundTripperWrapper)
		if !ok {
			return rt
		}
		under = wrapper.WrappedRoundTripper()
	}
}
