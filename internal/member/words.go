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

// Error messages of members appear in conditions, events and the hub's log. They are cut, because an oversized
// condition would make the whole status unwritable, including that the member is not Ready.
const (
	// wordsLimit bounds the length of a member's error in messages.
	wordsLimit = 1 << 10
	// plainLimit is the limit for messages that are no Status, for example failed health checks.
	plainLimit = 16 << 10
	// faultLimit bounds how much of an error response is read.
	faultLimit = 256 << 10
	// headerLimit bounds the headers of a response.
	headerLimit = 1 << 20
)

// brief returns the part of a text that is repeated in messages.
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

// inBrief shortens the text of an error if it is long.
func inBrief(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); len(text) > wordsLimit {
		return &briefError{brief(text), err}
	}
	return err
}

// shortenError reads an error response, for at most timeout, and shortens its message. It does not change short ones.
func shortenError(resp *http.Response, timeout time.Duration) {
	if resp.ContentLength >= 0 && resp.ContentLength <= wordsLimit {
		return
	}
	body := resp.Body // Body may be replaced before a late end
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

// fewHeaders sets headerLimit on a new transport.
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
