package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// streams are requests that stay under way until they are ended.
type streams struct {
	t      *testing.T
	server *httptest.Server
	mu     sync.Mutex
	ends   []func()
}

// open starts an endless request to a member, and returns the result once the response has begun.
func (s *streams) open(cluster string) (int, metav1.Status, http.Header) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+proxy.Path(cluster)+
		"/api/v1/configmaps?watch=true", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.server.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	end := func() { cancel(); _ = resp.Body.Close() }
	if resp.StatusCode == http.StatusOK {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ends = append(s.ends, end)
		return resp.StatusCode, metav1.Status{}, resp.Header
	}
	defer end()
	var status metav1.Status
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, status, resp.Header
}

func (s *streams) endAll() {
	for _, end := range s.ends {
		end()
	}
	s.ends = nil
}

// watched returns a member whose watches never end and send no events.
func watched(t *testing.T) *membertest.Server {
	m := membertest.New(t)
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "true" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	})
	return m
}

func TestOneUsersStreamsAndOneMembersLeaveRoomForTheOthers(t *testing.T) {
	eu, us := watched(t), watched(t)
	server, _, as := hubOf(t, 200, append(joined(eu, "eu"), joined(us, "us")...)...)
	s := &streams{t: t, server: server}
	t.Cleanup(s.endAll)
	called := func(name string) { as.Store(&user.DefaultInfo{Name: name, Groups: []string{"devs"}}) }
	refused := func(what, cluster, message string) {
		t.Helper()
		code, status, header := s.open(cluster)
		if code != http.StatusTooManyRequests || status.Reason != metav1.StatusReasonTooManyRequests ||
			header.Get("Retry-After") == "" ||
			!strings.Contains(status.Message, fmt.Sprintf("cluster %q: %s", cluster, message)) ||
			!strings.Contains(status.Message, "--member-proxy-requests") {
			t.Errorf("%s: %d %q, want 429 and %q", what, code, status.Message, message)
		}
	}
	for i := range 60 { // of both members, so that it is not a member's bound
		for _, cluster := range []string{"eu", "us"} {
			code, status, _ := s.open(cluster)
			if wanted := 2*i < 100; wanted && code != http.StatusOK {
				t.Fatalf("stream %d: %d %s", i, code, status.Message)
			} else if !wanted && code != http.StatusTooManyRequests {
				t.Fatalf("stream %d of one user is let through: %d", i, code)
			}
		}
	}
	refused("alice has her half", "eu", `user "alice" has 100 requests to clusters in flight`)
	called("bob")
	for range 50 {
		if code, status, _ := s.open("eu"); code != http.StatusOK {
			t.Fatalf("another user is refused: %s", status.Message)
		}
	}
	called("carol")
	refused("eu has its half", "eu", "100 requests to this cluster are in flight")
	called("bob")
	for range 50 {
		if code, status, _ := s.open("us"); code != http.StatusOK {
			t.Fatalf("another member is refused: %s", status.Message)
		}
	}
	called("carol")
	refused("so has us", "us", "100 requests to this cluster are in flight")
	as.Store(&user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}})
	if code, status, _ := s.open("eu"); code != http.StatusOK {
		t.Errorf("an administrator is kept out: %s", status.Message)
	}

	s.endAll()
	called("alice")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if code, status, _ := s.open("eu"); code == http.StatusOK {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("ended streams still count: %s", status.Message)
		}
	}
	if resp, err := server.Client().Get(server.URL + proxy.Path("us") + "/version"); err != nil ||
		resp.StatusCode != http.StatusOK {
		t.Errorf("a plain request after it: %v, %v", resp, err)
	} else {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

func TestOneUserLeavesRoomForOthersInACluster(t *testing.T) {
	server, _, as := hubOf(t, 40, joined(watched(t), "eu")...)
	s := &streams{t: t, server: server}
	t.Cleanup(s.endAll)
	for _, name := range []string{"alice", "bob"} {
		as.Store(&user.DefaultInfo{Name: name, Groups: []string{"devs"}})
		for i := range 10 {
			if code, status, _ := s.open("eu"); code != http.StatusOK {
				t.Fatalf("stream %d of %s: %d %s", i, name, code, status.Message)
			}
		}
		if code, status, _ := s.open("eu"); code != http.StatusTooManyRequests {
			t.Errorf("one more of %s: %d %q", name, code, status.Message)
		} else if message := fmt.Sprintf("user %q has 10 requests to this cluster in flight", name); name == "alice" &&
			!strings.Contains(status.Message, message) {
			t.Errorf("%s gets %q, want %q", name, status.Message, message)
		}
	}
}
