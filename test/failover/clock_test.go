package failover

import (
	"bufio"
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/sim"
)

// A Go process reads the clock of the kernel itself, so a member cannot be given another clock. wrongClock is a
// proxy that shows the hub what it would see of such a member: it moves the times that a member sets in objects and
// in the header Date, and moves them back in what the hub writes. Times that the hub sets, such as renewTime of its
// Lease, stay as they are. So do the times inside of tokens.
func wrongClock(t *testing.T, m *sim.Running, by time.Duration) (at string, authority []byte) {
	t.Helper()
	quiet := log.New(io.Discard, "", 0) // it would tell of each connection that the fault ends
	target, err := url.Parse(m.Server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: asMember(t, m), FlushInterval: -1, ErrorLog: quiet,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			r.Out.Header.Set("Accept", withoutProtobuf(r.In.Header.Get("Accept")))
			r.Out.Header.Del("Accept-Encoding")
			if r.In.Body == nil || !strings.Contains(r.In.Header.Get("Content-Type"), "json") {
				return
			}
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				return // the hub has given up
			}
			body = moved(body, -by)
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			r.Out.Header.Set("Content-Length", strconv.Itoa(len(body)))
		},
		ModifyResponse: func(r *http.Response) error {
			if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
				r.Header.Set("Date", date.Add(by).Format(http.TimeFormat))
			}
			if strings.Contains(r.Header.Get("Content-Type"), "json") {
				r.Body, r.ContentLength = movedLines(r.Body, by), -1
				r.Header.Del("Content-Length")
			}
			return nil
		},
	}
	s := httptest.NewUnstartedServer(proxy)
	s.EnableHTTP2, s.Config.ErrorLog = true, quiet
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// transport sends requests with a token as they are, and others with the certificate of the member's administrator,
// because the proxy cannot pass on certificates.
type transport struct{ plain, admin http.RoundTripper }

func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		return tr.plain.RoundTrip(r)
	}
	return tr.admin.RoundTrip(r)
}

func asMember(t *testing.T, m *sim.Running) transport {
	t.Helper()
	config, err := m.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.DisableCompression, config.DisableCompression = true, true
	plain, err := rest.TransportFor(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return transport{plain, admin}
}

// withoutProtobuf removes the media types that have times as numbers.
func withoutProtobuf(accept string) string {
	var kept []string
	for media := range strings.SplitSeq(accept, ",") {
		if media != "" && !strings.Contains(media, "protobuf") {
			kept = append(kept, media)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// memberTimes are the times that API servers, controllers and kubelets set by their own clock.
var memberTimes = regexp.MustCompile(
	`("(?:creationTimestamp|deletionTimestamp|last[A-Za-z]*Time|startTime|startedAt|finishedAt|completionTime|time)":")([0-9T:-]{19}Z)"`)

// moved is JSON with the times of the member moved.
func moved(data []byte, by time.Duration) []byte {
	return memberTimes.ReplaceAllFunc(data, func(match []byte) []byte {
		parts := memberTimes.FindSubmatch(match)
		at, err := time.Parse(time.RFC3339, string(parts[2]))
		if err != nil {
			return match
		}
		return []byte(string(parts[1]) + at.Add(by).UTC().Format(time.RFC3339) + `"`)
	})
}

// movedLines is a body of JSON with the times of the member moved, line by line, so that a watch goes on.
func movedLines(body io.ReadCloser, by time.Duration) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		defer body.Close()
		in := bufio.NewReader(body)
		for {
			line, err := in.ReadBytes('\n')
			if _, gone := w.Write(moved(line, by)); gone != nil {
				return
			}
			if err != nil {
				_ = w.CloseWithError(err) // io.EOF is the end
				return
			}
		}
	}()
	return both{r, body}
}

// both is a reader that closes what it reads from, too.
type both struct {
	*io.PipeReader
	body io.Closer
}

func (b both) Close() error {
	_ = b.PipeReader.Close()
	return b.body.Close()
}
