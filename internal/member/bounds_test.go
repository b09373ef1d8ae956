package member_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// few are limits that a test goes over soon. What went over one rests until the test has ended.
var few = member.Limits{Answer: 1 << 20, Memory: 4 << 20, Listing: time.Minute, Pause: time.Hour}

// sockets is how much of an unread response the network buffers.
const sockets = 16 << 20

// hostile answers lists and watches of ConfigMaps; sent counts what of it was taken.
type hostile struct {
	// stream is how it answers a listing as events of a watch, list a listing in pages, watch what follows that; nil
	// refuses.
	stream, list, watch func(w io.Writer, r *http.Request)
	sent                atomic.Int64
}

func (h *hostile) serve(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/api/v1/configmaps" {
		return false
	}
	q := r.URL.Query()
	answer := h.list
	switch {
	case q.Get("sendInitialEvents") == "true":
		answer = h.stream
	case q.Get("watch") == "true":
		answer = h.watch
	}
	if answer == nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: 400,
			Reason: metav1.StatusReasonBadRequest, Status: "Failure"})
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	answer(&counted{w, h}, r)
	return true
}

// counted ends the handler when the client stops reading.
type counted struct {
	http.ResponseWriter
	h *hostile
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.h.sent.Add(int64(n))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func (c *counted) flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

func item(name string, size int) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"shop","uid":%q,"resourceVersion":"7","labels":{"karmada.io/managed":"true"}},"data":{"k":%q}}`,
		name, name, strings.Repeat("x", size))
}

func page(items, next string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"9","continue":%q},"items":[%s]}`, next, items)
}

func event(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
}

// endless writes the results of next until the client stops reading.
func endless(next func(i int) string) func(io.Writer, *http.Request) {
	return func(w io.Writer, _ *http.Request) {
		for i := 0; ; i++ {
			_, _ = io.WriteString(w, next(i))
		}
	}
}

func emptyList(w io.Writer, _ *http.Request) { _, _ = io.WriteString(w, page("", "")) }

func TestAHostileMemberTakesNoMoreOfTheHubThanItsLimit(t *testing.T) {
	var pages atomic.Int64
	for name, c := range map[string]struct {
		hostile  *hostile
		limits   func(*member.Limits)
		wantText string
	}{
		"a list that does not end": {&hostile{list: endless(func(i int) string {
			if i == 0 {
				return strings.TrimSuffix(page(item("first", 1), ""), "]}")
			}
			return "," + item(fmt.Sprint(i), 1000)
		})}, nil, "its response to GET /api/v1/configmaps is larger than 1Mi"},
		"pages that do not end": {&hostile{list: func(w io.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, page(item(fmt.Sprint(pages.Add(1)), 100_000), "more"))
		}}, nil, "would need more than the 4Mi that the hub may cache for one cluster"},
		"an object of gigantic size": {&hostile{list: func(w io.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, page(item("giant", 3<<20), ""))
		}}, nil, "is larger than 1Mi"},
		"a bomb of zeros": {&hostile{list: func(w io.Writer, _ *http.Request) {
			w.(*counted).Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for zeros := make([]byte, 1<<20); ; {
				_, _ = z.Write(zeros)
			}
		}}, nil, "is larger than 1Mi"},
		"first events that do not end": {&hostile{stream: endless(func(i int) string {
			return event("ADDED", item(fmt.Sprint(i), 1000))
		})}, nil,
			"would need more than the 4Mi"},
		"a watch that floods": {&hostile{list: emptyList,
			watch: endless(func(i int) string { return event("ADDED", item(fmt.Sprint(i), 1000)) })}, nil,
			"would need more than the 4Mi"},
		"an object that grows": {&hostile{list: emptyList,
			watch: endless(func(i int) string { return event("MODIFIED", item("one", i<<20)) })}, nil,
			"would need more than the 4Mi"},
		"an event that does not end": {&hostile{list: emptyList, watch: endless(func(i int) string {
			if i == 0 {
				return `{"type":"ADDED","object":{"metadata":{"name":"`
			}
			return strings.Repeat("x", 4096)
		})}, nil, "an event of the watch of /api/v1/configmaps is larger than 16Mi"},
		"a list that comes by drops": {&hostile{list: func(w io.Writer, r *http.Request) {
			for {
				_, _ = io.WriteString(w, " ")
				w.(*counted).flush()
				select {
				case <-time.After(10 * time.Millisecond):
				case <-r.Context().Done():
					return
				}
			}
		}}, func(l *member.Limits) { l.Listing = 200 * time.Millisecond }, "were not listed within 200ms"},
		"first events that never come": {&hostile{stream: func(w io.Writer, r *http.Request) {
			w.(*counted).flush()
			<-r.Context().Done()
		}}, func(l *member.Limits) { l.Listing = 200 * time.Millisecond }, "were not listed within 200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			membertest.Run(t, func(t *testing.T) {
				limits := few
				if c.limits != nil {
					c.limits(&limits)
				}
				s := membertest.NewInMemory(t)
				s.Behave(c.hostile.serve)
				_, m, _ := joined(t, s, member.Options{Limits: limits})
				m.Watch(configMaps)
				eventually(t, "an excess", func() bool { return m.Excess() != nil })
				if err := m.Excess(); !errors.Is(err, member.ErrLimit) || !strings.Contains(err.Error(), c.wantText) {
					t.Errorf("the excess is %q, want it to say %q", err, c.wantText)
				}
				eventually(t, "what is on its way is let go", func() bool { return m.Pending() == 0 })
				if kept := m.Kept(); kept > limits.Memory {
					t.Errorf("the hub keeps %d bytes of it, want %d at most", kept, limits.Memory)
				}
				// Each of the three sizes of a page is tried once, and then it rests.
				if sent := c.hostile.sent.Load(); sent > 3*limits.Answer+limits.Memory+16<<20+sockets {
					t.Errorf("it could send %d bytes", sent)
				}
			})
		})
	}
}

func TestLargeListComesInPages(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		const objects = 3000
		h := hostile{}
		var largest atomic.Int64
		h.list = func(w io.Writer, r *http.Request) {
			var from, limit int
			q := r.URL.Query()
			_, _ = fmt.Sscan(q.Get("continue"), &from)
			if _, _ = fmt.Sscan(q.Get("limit"), &limit); limit == 0 || q.Get("resourceVersion") == "0" {
				limit = objects // as an API server that answers from memory
			}
			largest.Store(max(largest.Load(), int64(limit)))
			to, next := min(from+limit, objects), ""
			if to < objects {
				next = fmt.Sprint(to)
			}
			items := make([]string, 0, limit)
			for i := from; i < to; i++ {
				items = append(items, item(fmt.Sprint("c", i), 600))
			}
			_, _ = io.WriteString(w, page(strings.Join(items, ","), next))
		}
		h.watch = func(w io.Writer, r *http.Request) { w.(*counted).flush(); <-r.Context().Done() }
		s := membertest.NewInMemory(t)
		s.Behave(h.serve)
		_, m, _ := joined(t, s, member.Options{Limits: member.Limits{Answer: 1 << 20, Memory: 16 << 20}})
		m.Watch(configMaps)
		eventually(t, "all are known", func() bool {
			_, synced := m.Cached(configMaps, "shop", "c0")
			return synced
		})
		for i := range objects {
			if u, _ := m.Cached(configMaps, "shop", fmt.Sprint("c", i)); u == nil {
				t.Fatalf("c%d is not known", i)
			}
		}
		if largest.Load() != objects {
			t.Errorf("the most asked for at once was %d, want all first", largest.Load())
		}
		if err := m.Excess(); err != nil {
			t.Errorf("a member with much in it is over a limit: %v", err)
		}
		if m.Pending() != 0 || m.Kept() == 0 {
			t.Errorf("%d bytes are on their way and %d kept, want none and some", m.Pending(), m.Kept())
		}
	})
}

func TestObjectsOverALimitAreNotMissing(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		changes := recorder(make(chan change, 10_000))
		h := hostile{}
		var round atomic.Int64
		h.list = func(w io.Writer, _ *http.Request) {
			if round.Add(1) == 1 {
				_, _ = io.WriteString(w, page(item("mine", 10), ""))
				return
			}
			_, _ = io.WriteString(w, page("", "")+strings.Repeat(" ", 2<<20))
		}
		h.watch = func(w io.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, event("ERROR",
				`{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired","status":"Failure"}`))
		}
		s := membertest.NewInMemory(t)
		s.Behave(h.serve)
		_, m, _ := joined(t, s, member.Options{Limits: few, Handler: changes.handle})
		m.Watch(configMaps)
		if c := changes.next(t); c.new == nil || c.new.GetName() != "mine" {
			t.Fatalf("the first news is %v, want mine", c)
		}
		eventually(t, "an excess", func() bool { return m.Excess() != nil })
		changes.expectNone(t)
		if u, synced := m.Cached(configMaps, "shop", "mine"); u == nil || !synced {
			t.Error("what was known is forgotten")
		}
	})
}

func TestMemberRecoversBelowTheLimit(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		var calm atomic.Bool
		h := hostile{}
		h.list = func(w io.Writer, r *http.Request) {
			if calm.Load() {
				_, _ = io.WriteString(w, page(item("mine", 10), ""))
				return
			}
			endless(func(int) string { return strings.Repeat(" ", 4096) })(w, r)
		}
		h.watch = func(w io.Writer, r *http.Request) { w.(*counted).flush(); <-r.Context().Done() }
		s := membertest.NewInMemory(t)
		s.Behave(h.serve)
		limits := few
		limits.Pause = 50 * time.Millisecond
		_, m, _ := joined(t, s, member.Options{Limits: limits})
		m.Watch(configMaps)
		eventually(t, "an excess", func() bool { return m.Excess() != nil })
		calm.Store(true)
		eventually(t, "no excess", func() bool { return m.Excess() == nil })
		if u, _ := m.Cached(configMaps, "shop", "mine"); u == nil {
			t.Error("its object is not known")
		}
	})
}

func TestGarbageIsAnErrorAndNoExcess(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := hostile{}
		var asked atomic.Int64
		h.list = func(w io.Writer, _ *http.Request) { asked.Add(1); _, _ = io.WriteString(w, "\x00\xff{{{") }
		s := membertest.NewInMemory(t)
		s.Behave(h.serve)
		_, m, _ := joined(t, s, member.Options{Limits: few})
		m.Watch(configMaps)
		eventually(t, "it is asked again", func() bool { return asked.Load() > 1 })
		if _, synced := m.Cached(configMaps, "shop", "c"); synced || m.Excess() != nil || m.Kept() != 0 {
			t.Errorf("synced %v, excess %v, kept %d: want nothing known and nothing kept", synced, m.Excess(), m.Kept())
		}
	})
}

func TestADiscoveryLargerThanAnyClustersIsRefused(t *testing.T) {
	groups := func(w http.ResponseWriter, n int, name func(int) string) {
		w.Header().Set("Content-Type", discovery.AcceptV2)
		_, _ = io.WriteString(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"x.io"},"versions":[{"version":"v1","freshness":"Current","resources":[`)
		for i := range n {
			if _, err := fmt.Fprintf(w, `{"resource":%q,"responseKind":{"group":"x.io","version":"v1","kind":%q},"scope":"Namespaced","verbs":["get"]},`, name(i), name(i)); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `{"resource":"last","responseKind":{"kind":"Last"},"scope":"Namespaced","verbs":["get"]}]}]}]}`)
	}
	for name, c := range map[string]struct {
		behave   func(w http.ResponseWriter, r *http.Request)
		wantText string
	}{
		"without end": {func(w http.ResponseWriter, _ *http.Request) {
			groups(w, 1<<20, func(i int) string { return fmt.Sprint("kind", i) })
		}, "is larger than 4Mi"},
		"of very many kinds": {func(w http.ResponseWriter, _ *http.Request) {
			groups(w, 12_000, func(i int) string { return fmt.Sprint("k", i) })
		}, "it serves 24004 resources"},
		"of names that take six times their room in JSON": {func(w http.ResponseWriter, _ *http.Request) {
			groups(w, 2_000, func(int) string { return strings.Repeat("<", 100) })
		}, "it serves 4004 resources"},
		"of a thousand versions that are asked for one by one": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path != "/apis" {
				_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":[]}`)
				return
			}
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"x.io","versions":[{"groupVersion":"x.io/v0","version":"v0"}`)
			for i := range 2000 {
				_, _ = fmt.Fprintf(w, `,{"groupVersion":"x.io/v%d","version":"v%d"}`, i, i)
			}
			_, _ = io.WriteString(w, `]}]}`)
		}, "it serves 2001 group versions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			membertest.Run(t, func(t *testing.T) {
				s := membertest.NewInMemory(t)
				var asked atomic.Int64
				s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path != "/api" && !strings.HasPrefix(r.URL.Path, "/apis") {
						return false
					}
					asked.Add(1)
					c.behave(w, r)
					return true
				})
				_, m, _ := joined(t, s, member.Options{Limits: member.Limits{Answer: 4 << 20}})
				if _, err := m.Discover(t.Context()); !errors.Is(err, member.ErrLimit) {
					t.Errorf("discovery says %v, want a limit", err)
				}
				if err := m.Excess(); err == nil || !strings.Contains(err.Error(), c.wantText) {
					t.Errorf("the excess is %v, want it to say %q", err, c.wantText)
				}
				if asked.Load() > 20 {
					t.Errorf("it was asked %d times", asked.Load())
				}
			})
		})
	}
}

func TestAMemberCannotHaveItsCallersSleep(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		var asked atomic.Int64
		s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/api/v1/namespaces/shop/configmaps/c" || asked.Add(1) > 1 {
				return false
			}
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		_, m, _ := joined(t, s, member.Options{})
		if _, err := m.Get(t.Context(), membertest.ConfigMap.GroupVersionKind, "shop", "c"); err != nil || asked.Load() != 2 {
			t.Errorf("asked %d times: %v; want it asked again, as an answer that has not come yet", asked.Load(), err)
		}
	})
}

// The text of a trouble counts, so that the limit also covers a flood of pods that do not run.
func TestPodWithTroubleCountsTwice(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		kept := func(states ...corev1.ContainerState) int64 {
			s := membertest.NewInMemory(t)
			for i, state := range states {
				s.Put(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i)},
					Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "web"}}},
					Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", State: state,
						Ready: state.Running != nil}}}})
			}
			_, m, _ := joined(t, s, member.Options{})
			<-m.Load()
			return m.Kept()
		}
		runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		if one, two, ailing := kept(runs), kept(runs, runs), kept(waits); one == 0 || two != 2*one || ailing != two {
			t.Errorf("a pod counts %d bytes, two %d, and one with a trouble %d", one, two, ailing)
		}
	})
}
