package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/klog/v2"
)

const (
	// lookEvery is the time between two looks of a stream at the state that all streams share.
	lookEvery = 200 * time.Millisecond
	// tickEvery shows a page that it is not cut off; sessions that were ended elsewhere end within that time.
	tickEvery = 5 * time.Second
	// streamLife bounds a stream: the next one is authenticated again, so that a revoked token ends open pages.
	streamLife = 5 * time.Minute
	// writeTimeout bounds how long a reader may be behind.
	writeTimeout = 10 * time.Second
	// Each tab of a browser has one stream. A script may open any number.
	maxStreamsOfUser = 16
	maxStreams       = 500
)

// serveStream sends the topics that the query names, as text/event-stream: first a snapshot of each, then what changed.
func (a *API) serveStream(w http.ResponseWriter, r *http.Request, u user.Info) {
	asked := strings.Split(r.URL.Query().Get("topics"), ",")
	for _, name := range asked {
		if topics[name] == nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("there is no topic %q", name))
			return
		}
	}
	who := identity(u)
	if !a.enter(who) {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
			"too many open pages of the console: close some tabs")
		return
	}
	defer a.leave(who)

	life := streamLife
	s := loginOf(r).session
	if s != nil {
		life = min(life, time.Until(s.end()))
	}
	ctx, cancel := context.WithTimeout(r.Context(), life)
	defer cancel()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out := &events{w: w, control: http.NewResponseController(w)}
	sent := map[string]sentView{}
	var last *fleetState
	var checked, ticked time.Time
	poll := time.NewTicker(lookEvery)
	defer poll.Stop()
	for {
		now := time.Now()
		current, err := a.rows.current(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			klog.V(1).InfoS("the console cannot read the fleet", "err", err)
			out.send("error", map[string]string{"message": "the hub cannot read the fleet now"})
		case current != last || now.Sub(checked) > rightsAge:
			last, checked = current, now
			for _, name := range asked {
				a.push(out, name, topics[name](a, ctx, u, current), sent, current.at)
			}
		}
		if now.Sub(ticked) >= tickEvery {
			ticked = now
			if s != nil && a.layer != nil {
				if ended, err := a.layer.spent.contains(ctx, s.ID); err == nil && ended {
					return
				}
			}
			out.send("tick", map[string]int64{"at": now.UnixMilli()})
		}
		if out.err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-a.Done:
			return
		case <-poll.C:
		}
	}
}

// sentView is what a stream sent of a topic: its rows, sorted by key, and what is beside them.
type sentView struct {
	rows   []*row
	beside uint64
}

// push sends what changed of a topic since it was last sent.
func (a *API) push(out *events, name string, v view, sent map[string]sentView, at time.Time) {
	slices.SortFunc(v.rows, func(a, b *row) int { return cmp.Compare(a.key, b.key) })
	v.rows = slices.CompactFunc(v.rows, func(a, b *row) bool { return a.key == b.key })
	before, again := sent[name]
	changed, gone := diff(before.rows, v.rows)
	beside := newRow("", struct {
		Totals  any        `json:"totals"`
		Missing []*Missing `json:"missing"`
	}{v.totals, v.missing})
	if again && len(changed) == 0 && len(gone) == 0 && before.beside == beside.sum {
		return
	}
	sent[name] = sentView{v.rows, beside.sum}
	kind := "patch"
	if !again {
		kind = "snapshot"
	}

	// The rows are encoded already. Only the text around them is written here.
	var b bytes.Buffer
	head, _ := json.Marshal(map[string]any{"topic": name, "at": at.UnixMilli(), "gone": gone, "beside": json.RawMessage(
		beside.json)}) // maps of texts and numbers can be encoded
	b.Write(head[:len(head)-1])
	b.WriteString(`,"rows":[`)
	for i, r := range changed {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(r.key)
		b.WriteByte('[')
		b.Write(key)
		b.WriteByte(',')
		b.Write(r.json)
		b.WriteByte(']')
	}
	b.WriteString("]}")
	out.write(kind, b.Bytes())
}

// diff returns the rows of now that are new or different, and the keys of the rows that are gone. Both slices are
// sorted by key.
func diff(before, now []*row) (changed []*row, gone []string) {
	for _, r := range now {
		for len(before) > 0 && before[0] != r && before[0].key < r.key {
			gone, before = append(gone, before[0].key), before[1:]
		}
		if len(before) == 0 || before[0] != r && before[0].key != r.key {
			changed = append(changed, r)
			continue
		}
		if before[0].sum != r.sum {
			changed = append(changed, r)
		}
		before = before[1:]
	}
	for _, r := range before {
		gone = append(gone, r.key)
	}
	return changed, gone
}

// events writes a text/event-stream. After an error it writes nothing more.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (e *events) send(event string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return // our events can be encoded
	}
	e.write(event, data)
}

func (e *events) write(event string, data []byte) {
	if e.err != nil {
		return
	}
	// Not every server can bound a write; then the connection's own timeouts do.
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, e.err = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", event, data); e.err == nil {
		e.err = e.control.Flush()
	}
	if e.err == nil {
		// A hub that is busy for longer than writeTimeout must not end the stream.
		_ = e.control.SetWriteDeadline(time.Time{})
	}
}

// enter counts a stream of a user; false if there are too many.
func (a *API) enter(who string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := 0
	for _, n := range a.streams {
		sum += n
	}
	if sum >= maxStreams || a.streams[who] >= maxStreamsOfUser {
		return false
	}
	a.streams[who]++
	return true
}

func (a *API) leave(who string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams[who]--; a.streams[who] <= 0 {
		delete(a.streams, who)
	}
	if len(a.streams) == 0 {
		a.rows.forget()
	}
}
