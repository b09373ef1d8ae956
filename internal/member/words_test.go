package member_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// mostWords is what a condition, an event or a line of the log may repeat of a member: the API takes 32768 characters.
const mostWords = 20 << 10

func TestMemberErrorIsShortened(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	status := func(message string) string {
		s, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
			Code: 403, Reason: metav1.StatusReasonForbidden, Message: message})
		return string(s)
	}
	for name, c := range map[string]struct {
		answer    func(w http.ResponseWriter, r *http.Request)
		wantText  string
		forbidden bool
	}{
		"a short one is told as it is": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(403)
			_, _ = io.WriteString(w, status("no: "+strings.Repeat("y", 500)+" end"))
		}, "no: " + strings.Repeat("y", 500) + " end", true},
		"a long message": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(403)
			_, _ = io.WriteString(w, status("no: "+long[:200_000]))
		}, "no: xxx", true},
		"one of a megabyte": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(403)
			_, _ = io.WriteString(w, status("no: "+long))
		}, "", true},
		"one that does not end": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(500)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, long); err != nil {
					return
				}
			}
		}, "", false},
		"one that comes by drops": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(10 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
		}, "", false},
		"headers that do not end": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 64 {
				w.Header().Set(fmt.Sprint("X-", i), long[:64<<10])
			}
		}, "", false},
		"a line that is no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, long[:900_000]+"\r\n\r\n")
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			membertest.Run(t, func(t *testing.T) {
				s := membertest.NewInMemory(t)
				s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/api/v1/namespaces/shop/configmaps/c" && r.URL.Path != "/readyz" {
						return false
					}
					c.answer(w, r)
					return true
				})
				_, m, _ := joined(t, s, member.Options{Timeout: 5 * time.Second})
				_, err := m.Get(t.Context(), membertest.ConfigMap.GroupVersionKind, "shop", "c")
				if err == nil || len(err.Error()) > mostWords || !strings.Contains(err.Error(), c.wantText) ||
					apierrors.IsForbidden(err) != c.forbidden {
					t.Errorf("the error has %d bytes: %.300v", len(fmt.Sprint(err)), err)
				}
				if p := m.Probe(t.Context()); len(p.Err)+len(p.Body) > mostWords || p.Code == http.StatusOK {
					t.Errorf("the probe has %d and %d bytes: %.300s", len(p.Err), len(p.Body), p.Err)
				}
			})
		})
	}
}

// HTTP/2 has its headers in frames of its own.
func TestHeadersOfHTTP2AreBoundedToo(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		tls := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/version" {
				for i := range 32 {
					w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 64<<10))
				}
			}
			s.ServeHTTP(w, r)
		}))
		tls.Listener.Close()
		tls.Listener = membertest.Listen("http2.test:443")
		tls.EnableHTTP2 = true
		tls.StartTLS()
		t.Cleanup(tls.Close)
		cluster := s.Cluster("m1")
		cluster.Spec.APIEndpoint, cluster.Spec.InsecureSkipTLSVerification = tls.URL, true
		_, m, _ := joinedAs(t, cluster, s.Secret("m1"), member.Options{Timeout: 30 * time.Second})
		if version, err := m.Version(t.Context()); err == nil {
			t.Errorf("it was read, as %q", version)
		}
		if p := m.Probe(t.Context()); p.Code != http.StatusOK {
			t.Errorf("with few headers it answers %+v", p)
		}
	})
}

func TestEmptyContinuedPagesEnd(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		var asked atomic.Int64
		s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/namespaces/shop/configmaps") {
				return false
			}
			asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"more"},"items":[]}`)
			return true
		})
		_, m, _ := joined(t, s, member.Options{})
		_, err := m.Contents(t.Context(), "shop")
		if !errors.Is(err, member.ErrContentsUnknown) ||
			!strings.Contains(err.Error(), `the list of configmaps in shop of cluster "m1" does not end`) {
			t.Errorf("the look into a namespace says %v", err)
		}
		if asked.Load() > 200 {
			t.Errorf("%d pages were asked for", asked.Load())
		}
	})
}
