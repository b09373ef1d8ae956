// Package pages has the tests of the console's pages in a real browser, on a hub that the test plays.
package pages

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/argosy-io/argosy/internal/console/web"
	"github.com/argosy-io/argosy/test/console/browser"
)

// object is a JSON object.
type object = map[string]any

// topic is what a stream sends of one topic.
type topic struct {
	rows    []any // pairs of a key and a row
	totals  object
	missing []object
}

// answer is a response to a request of the API.
type answer struct {
	code int
	body any
}

// hub plays a hub: it serves the real pages, and answers that the test chooses.
type hub struct {
	*httptest.Server

	mu sync.Mutex
	// topics are sent to every stream. While refused has a code, streams end with it.
	topics  map[string]topic
	refused answer
	// answers has the responses to "METHOD PATH" below /console/, and to "METHOD PATH?before" with that parameter. A
	// request without an answer waits until the test ends.
	answers map[string]answer
	// sent are the bodies of requests that write. prolonged counts those that prolong the login.
	sent      []string
	prolonged int
	// query is that of the last request for the time line, for objects of a member, for usage, or for a search.
	query url.Values
	// changed is closed when streams are to be sent anew.
	changed chan struct{}
	done    chan struct{}
}

func newHub(t *testing.T) *hub {
	t.Helper()
	if testing.Short() {
		t.Skip("in the long suite: make test-long")
	}
	if why := browser.Missing(); why != "" {
		t.Skip(why)
	}
	pages, err := web.Handler("/console/")
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{topics: map[string]topic{}, answers: map[string]answer{},
		changed: make(chan struct{}), done: make(chan struct{})}
	h.answers["GET api/me"] = answer{200, object{"user": "jane", "groups": []string{"shop"}, "join": true}}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.Protect(w.Header())
		path := strings.TrimPrefix(r.URL.Path, "/console/")
		switch {
		case path == "api/stream":
			h.stream(w, r)
		case strings.HasPrefix(path, "api/"), strings.HasPrefix(path, "k8s/"), path == "session":
			h.respond(w, r, path)
		default:
			pages.ServeHTTP(w, r)
		}
	}))
	h.Server.EnableHTTP2 = true
	h.Server.StartTLS()
	t.Cleanup(func() { close(h.done); h.Server.CloseClientConnections(); h.Server.Close() })
	return h
}

func (h *hub) respond(w http.ResponseWriter, r *http.Request, path string) {
	var body json.RawMessage
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&body) // an empty body is not an error
	}
	h.mu.Lock()
	if r.Method+" "+path == "PUT session" {
		h.prolonged++
		h.mu.Unlock()
		_, _ = io.WriteString(w, "{}") // fails only if the browser is gone
		return
	}
	if r.Method != http.MethodGet {
		h.sent = append(h.sent, r.Method+" "+path+" "+string(body))
	}
	key := r.Method + " " + path
	if slices.Contains([]string{"api/timeline", "api/objects", "api/usage", "api/search"}, path) {
		h.query = r.URL.Query()
	}
	if r.URL.Query().Has("before") {
		key += "?before"
	}
	a, found := h.answers[key]
	h.mu.Unlock()
	if !found {
		select {
		case <-h.done:
		case <-r.Context().Done():
		}
		return
	}
	if plain, is := a.body.(text); is {
		_, _ = io.WriteString(w, string(plain)) // fails only if the browser is gone
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	_ = json.NewEncoder(w).Encode(a.body) // fails only if the browser is gone
}

// text is a body that is not JSON.
type text string

func (h *hub) stream(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	changed, refused, topics := h.changed, h.refused, h.topics
	h.mu.Unlock()
	if refused.code != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(refused.code)
		_ = json.NewEncoder(w).Encode(refused.body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for _, name := range strings.Split(r.URL.Query().Get("topics"), ",") {
		if t, found := topics[name]; found {
			rows := t.rows
			if rows == nil {
				rows = []any{}
			}
			body, _ := json.Marshal(object{"topic": name, "at": 1_800_000_000_000, "gone": nil, "rows": rows,
				"beside": object{"totals": t.totals, "missing": t.missing}})
			fmt.Fprintf(w, "event: snapshot\ndata: %s\n\n", body)
		}
	}
	fmt.Fprint(w, "event: tick\ndata: {\"at\":1}\n\n")
	_ = flush.Flush()
	select {
	case <-changed:
	case <-h.done:
	case <-r.Context().Done():
	}
}

// set changes what the hub answers; all streams end, and the pages open new ones.
func (h *hub) set(change func(h *hub)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := map[string]topic{}
	for name, t := range h.topics {
		next[name] = t
	}
	h.topics = next
	change(h)
	close(h.changed)
	h.changed = make(chan struct{})
}

// writes are the requests that were sent to write.
func (h *hub) writes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.sent...)
}

func failure(code int, message string) answer {
	return answer{code, object{"kind": "Status", "code": code, "message": message}}
}

func missing(verb, group, resource string) object {
	return object{"verb": verb, "group": group, "resource": resource}
}
