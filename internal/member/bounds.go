package member

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Limits bound the memory that one member, broken or hostile, can use in the hub. A zero field means its default.
type Limits struct {
	// Answer bounds one response in bytes. Larger lists are requested in pages.
	Answer int64
	// Memory bounds the bytes of a member's objects in memory (estimated), and separately the bytes of responses in
	// transit.
	Memory int64
	// Listing bounds how long a watch may take to list all objects.
	Listing time.Duration
	// Pause is the time from the end of a watch that exceeded a limit to the next attempt.
	Pause time.Duration
}

// The defaults of Limits.
const (
	DefaultAnswerLimit = 64 << 20
	DefaultMemoryLimit = 256 << 20

	defaultListing = 2 * time.Minute
	defaultPause   = time.Minute
)

// WithDefaults returns the limits with defaults for zero fields.
func (l Limits) WithDefaults() Limits {
	return Limits{Answer: cmp.Or(l.Answer, DefaultAnswerLimit), Memory: cmp.Or(l.Memory, DefaultMemoryLimit),
		Listing: cmp.Or(l.Listing, defaultListing), Pause: cmp.Or(l.Pause, defaultPause)}
}

const (
	// eventLimit bounds one watch event in bytes. It is larger than any object that a store accepts.
	eventLimit = 16 << 20
	// retryLimit bounds a member's Retry-After in seconds, because clients sleep that long.
	retryLimit = 1
	// The page sizes after a response was too large: the second if the first still is.
	largePage, smallPage = 500, 25
	// The limits for the kinds that a member serves, which are in the Cluster's status. A member may name any number.
	kindLimit, kindNameLimit = 10_000, 768 << 10
)

// ErrLimit is wrapped by all errors about responses of a member that are too large.
var ErrLimit = errors.New("over the hub's limit for one cluster")

// limitError describes which limit was exceeded, and what to do.
type limitError struct{ what, advice string }

func (e *limitError) Error() string        { return e.what + "; " + e.advice }
func (e *limitError) Is(target error) bool { return target == ErrLimit }

func size(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }

func (l Limits) answerError(path string) error {
	return &limitError{fmt.Sprintf("its response to GET %s is larger than %s", path, size(l.Answer)),
		"find out what creates so many of them there, or raise --member-answer-limit"}
}

func (l Limits) memoryError(what string) error {
	return &limitError{fmt.Sprintf("%s would need more than the %s that the hub may cache for one cluster", what,
		size(l.Memory)),
		"find out what creates so many of them there, or raise --member-memory-limit"}
}

func eventError(path string) error {
	return &limitError{fmt.Sprintf("an event of the watch of %s is larger than %s", path, size(eventLimit)),
		"API servers do not send such events: check that spec.apiEndpoint is the address of an API server"}
}

// excesses are the limits that a member exceeded recently.
type excesses struct {
	mu   sync.Mutex
	last map[string]excess // by the subject of the request
}

type excess struct {
	err error
	at  time.Time
}

// excessMemory is the time for which an excess is reported that does not repeat. Watches are retried earlier; other
// requests perhaps never.
const excessMemory = 3 * time.Minute

// set records an excess, or its end if err is nil.
func (e *excesses) set(subject string, err error, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		delete(e.last, subject)
		return
	}
	if e.last == nil {
		e.last = map[string]excess{}
	}
	e.last[subject] = excess{err, now}
}

// first returns the excess with the first subject by name, so that the message stays the same; nil if there is none.
func (e *excesses) first(now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.last, func(_ string, x excess) bool { return now.Sub(x.at) > excessMemory })
	if len(e.last) == 0 {
		return nil
	}
	return e.last[slices.Min(slices.Collect(maps.Keys(e.last)))].err
}

// Excess returns the limit that the member exceeds; nil if none.
func (m *Member) Excess() error { return m.excesses.first(m.o.Clock.Now()) }

// exceeds records that the member exceeds a limit, or that it does not if err is nil.
func (m *Member) exceeds(subject string, err error) { m.excesses.set(subject, err, m.o.Clock.Now()) }

// meter is a transport that fails at once while the member does not respond, and stops reading a response at the limit.
type meter struct {
	wrapping
	m *Member
}

func (t meter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.m.reach.send(t.next, req)
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, err
	}
	if text := resp.Header.Get("Retry-After"); text != "" {
		if after, err := strconv.Atoi(text); err != nil || after > retryLimit {
			resp.Header.Set("Retry-After", strconv.Itoa(retryLimit))
		}
	}
	g := gaugeOf(req.Context())
	// A watch is reported by its gauge: it may continue with smaller pages.
	exceeds := func(err error) {
		if g == nil {
			t.m.exceeds(req.Method+" "+req.URL.Path, err)
		}
	}
	if resp.StatusCode >= http.StatusBadRequest {
		shortenError(resp, t.m.o.Timeout)
		exceeds(nil)
		return resp, nil
	}
	if resp.StatusCode == http.StatusOK && req.URL.Query().Get("watch") == "true" {
		if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil ||
			media == runtime.ContentTypeJSON {
			resp.Body = watchBody(resp.Body, func() error {
				err := eventError(req.URL.Path)
				exceeds(err)
				if g != nil {
					g.after(req.Context(), err)
				}
				return err
			})
		} // other frames have a length, which client-go limits
		return resp, nil
	}
	if limits := t.m.o.Limits; resp.ContentLength > limits.Answer {
		_ = resp.Body.Close()
		err := limits.answerError(req.URL.Path)
		exceeds(err)
		return nil, err
	}
	resp.Body = t.m.answerBody(req.Context(), resp.Body, req.URL.Path, exceeds)
	return resp, nil
}

// checkedBody is a response that is read until check, which gets all its bytes, returns an error.
type checkedBody struct {
	io.ReadCloser
	check func(read []byte) error
	// ended is called at the end: with nil, or with the error of check.
	ended func(error)
	close func()
	err   error
}

func (b *checkedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if b.err = b.check(p[:n]); b.err != nil {
		b.ended(b.err)
		return 0, b.err
	}
	if err == io.EOF {
		b.ended(nil)
	}
	return n, err
}

func (b *checkedBody) Close() error {
	b.close()
	return b.ReadCloser.Close()
}

// answerBody bounds a response, and counts its bytes until it is closed. The bytes of a list count until all of its
// objects are stored.
func (m *Member) answerBody(ctx context.Context, body io.ReadCloser, path string, ended func(error)) io.ReadCloser {
	g, limits, read, pending := gaugeOf(ctx), m.o.Limits, int64(0), int64(0)
	return &checkedBody{ReadCloser: body, ended: ended, check: func(p []byte) error {
		read += int64(len(p))
		switch {
		case read > limits.Answer:
			return limits.answerError(path)
		case g != nil:
			return g.receive(ctx, int64(len(p)))
		}
		pending += int64(len(p))
		if m.pending.Add(int64(len(p))) > limits.Memory {
			return limits.memoryError("its response to GET " + path)
		}
		return nil
	}, close: func() {
		m.pending.Add(-pending)
		pending = 0
	}}
}

// watchBody stops reading a watch if one JSON event is too large, because its reader would buffer all of it.
func watchBody(body io.ReadCloser, over func() error) io.ReadCloser {
	event := 0
	return &checkedBody{ReadCloser: body, ended: func(error) {}, close: func() {}, check: func(p []byte) error {
		if last := bytes.LastIndexByte(p, '\n'); last >= 0 {
			event = len(p) - last - 1
		} else {
			event += len(p)
		}
		if event > eventLimit {
			return over()
		}
		return nil
	}}
}

// gaugeKey marks the requests of a watch with its gauge.
type gaugeKey struct{}

func gaugeOf(ctx context.Context) *gauge {
	g, _ := ctx.Value(gaugeKey{}).(*gauge)
	return g
}

// gauge bounds a watch. It requests pages if one response is too large, counts what is received and stored, and ends a
// watch that exceeds a limit. The store then keeps its content, because missing objects may still exist. A list may end
// after the reflector has left it and begun the next attempt; its context is then done, and it changes nothing here.
type gauge struct {
	m    *Member
	name string
	// budget and state are those of the store.
	budget *Budget
	state  func(error)

	// sizes are the bytes of each stored object, and total is their sum. The goroutine that runs the reflector alone uses
	// them, so mu does not guard them.
	sizes map[types.NamespacedName]int64
	total int64

	// page is the page size; 0 leaves it to the reflector.
	page atomic.Int64
	// listed: the next watch continues from a list right before it, so goneBack needs no check.
	listed atomic.Bool

	mu   sync.Mutex
	stop context.CancelFunc
	// deadline is that of the attempt under way to list all objects: its pages, or the events before the bookmark.
	deadline *time.Timer
	// received are the bytes of that attempt. They stay in memory until they are stored.
	received int64
	// rest is the time of the next attempt.
	rest time.Time
}

// source returns the list and watch functions of the reflector, until stop.
func (g *gauge) source(lw cache.ListWatch, stop context.CancelFunc) *cache.ListWatch {
	g.mu.Lock()
	g.stop = stop
	g.mu.Unlock()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.Continue == "" {
				g.begin(ctx)
			}
			list, err := g.list(ctx, o, lw.ListWithContextFunc)
			if ctx.Err() == nil {
				g.listed.Store(err == nil)
			}
			g.after(ctx, err)
			if err != nil && ctx.Err() == nil {
				g.report(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			initial := o.SendInitialEvents != nil && *o.SendInitialEvents
			if initial {
				g.begin(ctx)
			} else if err := g.goneBack(ctx, o.ResourceVersion, lw.ListWithContextFunc); err != nil {
				return nil, err
			}
			w, err := lw.WatchFuncWithContext(context.WithValue(ctx, gaugeKey{}, g), o)
			if initial || err != nil {
				g.after(ctx, err)
			}
			if !initial && ctx.Err() == nil { // after a failure of initial events, a list follows
				g.report(err)
			}
			return w, err
		},
	}
}

// lookTimeout bounds the question how far a member's time is.
const lookTimeout = 5 * time.Second

// goneBack returns an error, so that the reflector lists again, if the member's revision is lower than the version that
// a watch continues from: the member was restored from an older backup. Its API server would accept such a watch and
// send no events until its revision is reached again. If the member does not respond, it may be about to be restored,
// so the reflector lists again too.
func (g *gauge) goneBack(ctx context.Context, version string, list cache.ListWithContextFunc) error {
	fresh := g.listed.Swap(false)
	known, err := strconv.ParseUint(version, 10, 64)
	if fresh || err != nil || known == 0 {
		return nil // a version that is not a number cannot be compared
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	now, err := list(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsTooManyRequests(err) {
		return err // retried later, without a list
	}
	if err != nil {
		return apierrors.NewResourceExpired(fmt.Sprintf("cluster %q did not return its resource version: %v", g.m.Name, err))
	}
	listed, err := meta.ListAccessor(now)
	if err != nil {
		return nil
	}
	if at, err := strconv.ParseUint(listed.GetResourceVersion(), 10, 64); err == nil && at < known {
		klog.InfoS("the resource version of the member went backwards, for example after a restore: relisting", "cluster",
			g.m.Name, "watch", g.name, "from", known, "to", at)
		return apierrors.NewResourceExpired(fmt.Sprintf("cluster %q went back from resource version %d to %d", g.m.Name,
			known, at))
	}
	return nil
}

// list requests a page, and a smaller one if the page is too large.
func (g *gauge) list(ctx context.Context, o metav1.ListOptions,
	list cache.ListWithContextFunc) (runtime.Object, error) {
	ctx, cancel := context.WithTimeoutCause(context.WithValue(ctx, gaugeKey{}, g), g.m.o.Limits.Listing, g.lateError())
	defer cancel()
	for {
		asked, page := o, g.page.Load()
		if page > 0 {
			// An API server pages only reads from its store, not from its cache.
			asked.ResourceVersion, asked.ResourceVersionMatch, asked.Limit = "", "", page
		}
		got, err := list(ctx, asked)
		if late := context.Cause(ctx); err != nil && errors.Is(late, ErrLimit) {
			return nil, late
		}
		if !errors.Is(err, ErrLimit) || page == smallPage || ctx.Err() != nil {
			return got, err
		}
		if page == 0 {
			g.page.Store(largePage)
		} else {
			g.page.Store(smallPage)
		}
	}
}

// begin starts to count another attempt.
func (g *gauge) begin(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	g.settle()
	var mine *time.Timer
	mine = time.AfterFunc(g.m.o.Limits.Listing, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.deadline == mine {
			g.exceed(g.lateError())
		}
	})
	g.deadline = mine
}

func (g *gauge) lateError() error {
	return &limitError{fmt.Sprintf("%s were not listed within %v", g.name, g.m.o.Limits.Listing),
		"check that its API server is healthy and the network connection to it"}
}

// settle ends the attempt. It must be called with the lock.
func (g *gauge) settle() {
	if g.deadline != nil {
		g.deadline.Stop()
		g.m.pending.Add(-g.received)
		g.budget.add(-g.received)
		g.deadline, g.received = nil, 0
	}
}

// after ends an attempt that failed, for good if it went over a limit.
func (g *gauge) after(ctx context.Context, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, ErrLimit):
		g.exceed(err)
	default:
		g.settle()
	}
}

// report tells the store whether it is up to date.
func (g *gauge) report(err error) {
	if g.state != nil {
		g.state(err)
	}
}

// exceed pauses the watch and reports the member. It must be called with the lock.
func (g *gauge) exceed(err error) {
	g.m.exceeds(g.name, err)
	g.settle()
	g.rest = time.Now().Add(g.m.o.Limits.Pause)
	g.report(err)
	g.stop()
}

// pause returns how long the watch still waits; at most 0 if it may be tried.
func (g *gauge) pause() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.rest)
}

// receive counts bytes of the attempt under way.
func (g *gauge) receive(ctx context.Context, n int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ctx.Err() != nil || g.deadline == nil {
		return ctx.Err()
	}
	g.received += n
	within := g.budget.add(n)
	if g.m.pending.Add(n) <= g.m.o.Limits.Memory && within {
		return nil
	}
	err := g.m.o.Limits.memoryError(g.name)
	if !within {
		err = g.budget.excess(g.name)
	}
	g.exceed(err)
	return err
}

// store counts n bytes of an object from now on; 0 if it is gone.
func (g *gauge) store(object types.NamespacedName, n int64) error {
	if err := g.grow(n - g.sizes[object]); err != nil {
		return err
	}
	if g.sizes == nil {
		g.sizes = map[types.NamespacedName]int64{}
	}
	if g.sizes[object] = n; n == 0 {
		delete(g.sizes, object)
	}
	return nil
}

// replace counts the objects of a complete list, in place of all before.
func (g *gauge) replace(sizes map[types.NamespacedName]int64) error {
	var total int64
	for _, n := range sizes {
		total += n
	}
	if err := g.grow(total - g.total); err != nil {
		return err
	}
	g.sizes = sizes
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	g.m.exceeds(g.name, nil)
	return nil
}

// grow counts n more bytes of stored objects, unless they would exceed the limit.
func (g *gauge) grow(n int64) error {
	within := g.budget.add(n)
	if (g.m.stored.Add(n) > g.m.o.Limits.Memory || !within) && n > 0 {
		g.m.stored.Add(-n)
		g.budget.add(-n)
		g.mu.Lock()
		defer g.mu.Unlock()
		err := g.m.o.Limits.memoryError(g.name)
		if !within {
			err = g.budget.excess(g.name)
		}
		g.exceed(err)
		return err
	}
	g.total += n
	return nil
}

// trimmedWeight is the size that is counted for an object that is stored as one line.
const trimmedWeight = 512

// weigh estimates the memory of what is kept of an object.
func weigh(kept any) int64 {
	switch kept := kept.(type) {
	case interface{ weight() int64 }:
		return kept.weight()
	case *unstructured.Unstructured:
		return weighValue(kept.Object)
	case seenPod:
		if kept.trouble != nil {
			return 2 * trimmedWeight // with the texts of its trouble
		}
	}
	return trimmedWeight
}

func weighValue(v any) int64 {
	const word = 16
	switch v := v.(type) {
	case string:
		return word + int64(len(v))
	case map[string]any:
		n := int64(4 * word)
		for key, value := range v {
			n += 2*word + int64(len(key)) + weighValue(value)
		}
		return n
	case []any:
		n := int64(2 * word)
		for _, value := range v {
			n += word + weighValue(value)
		}
		return n
	}
	return word
}
