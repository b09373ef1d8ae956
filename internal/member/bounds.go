package member

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
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
	"k8s.io/utils/clock"
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

func (l Limits) withDefaults() Limits {
	return Limits{Answer: cmp.Or(l.Answer, DefaultAnswerLimit), Memory: cmp.Or(l.Memory, DefaultMemoryLimit),
		Listing: cmp.Or(l.Listing, defaultListing), Pause: cmp.Or(l.Pause, defaultPause)}
}

const (
	// eventLimit bounds one watch event in bytes. It is larger than any object that a store accepts.
	eventLimit = 16 << 20
	// retryLimit bounds a member's Retry-After in seconds, because clients sleep that long.
	retryLimit = 1
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

func (e *excesses) add(subject string, err error, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last == nil {
		e.last = map[string]excess{}
	}
	e.last[subject] = excess{err, now}
}

func (e *excesses) clear(subject string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.last, subject)
}

// first returns the excess with the first subject by name, so that the message stays the same; nil if there is none.
func (e *excesses) first(now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var first string
	var err error
	for subject, x := range e.last {
		if now.Sub(x.at) > excessMemory {
			delete(e.last, subject)
		} else if err == nil || subject < first {
			first, err = subject, x.err
		}
	}
	return err
}

// Excess returns the limit that the member exceeds; nil if none.
func (m *Member) Excess() error { return m.excesses.first(m.o.Clock.Now()) }

// meter is a transport that fails at once while the member does not respond, and stops reading a response at the limit.
type meter struct {
	next http.RoundTripper
	m    *Member
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t meter) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t meter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.m.reach.send(t.next, req)
	if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return resp, err
	}
	if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || after > retryLimit {
		if resp.Header.Get("Retry-After") != "" {
			resp.Header.Set("Retry-After", strconv.Itoa(retryLimit))
		}
	}
	if resp.StatusCode >= http.StatusBadRequest {
		shortenError(resp, t.m.o.Timeout)
		t.exceeded(req, nil)
		return resp, nil
	}
	path := req.URL.Path
	if resp.StatusCode == http.StatusOK && req.URL.Query().Get("watch") == "true" {
		if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil ||
			media == runtime.ContentTypeJSON {
			g := gaugeOf(req.Context())
			resp.Body = &watchBody{ReadCloser: resp.Body, gauge: g, over: func() error {
				err := eventError(path)
				if g != nil {
					g.exceed(err)
				} else {
					t.exceeded(req, err)
				}
				return err
			}}
		} // other frames have a length, which client-go limits
		return resp, nil
	}
	limits := t.m.o.Limits
	if resp.ContentLength > limits.Answer {
		_ = resp.Body.Close()
		err := limits.answerError(path)
		t.exceeded(req, err)
		return nil, err
	}
	body := &answerBody{ReadCloser: resp.Body, m: t.m, path: path, ended: func(err error) { t.exceeded(req, err) }}
	if g := gaugeOf(req.Context()); g != nil {
		body.listing = g.current()
	}
	resp.Body = body
	return resp, nil
}

// exceeded records an excess, or its end if err is nil. It ignores watches, which may continue with smaller pages.
func (t meter) exceeded(req *http.Request, err error) {
	subject := req.Method + " " + req.URL.Path
	switch {
	case gaugeOf(req.Context()) != nil:
	case err == nil:
		t.m.excesses.clear(subject)
	default:
		t.m.excesses.add(subject, err, t.m.o.Clock.Now())
	}
}

// answerBody counts the bytes of a response. A list counts until all of its objects are stored.
type answerBody struct {
	io.ReadCloser
	m       *Member
	listing *listing
	path    string
	// ended is called at the end: with nil, or with why reading stopped.
	ended  func(error)
	read   int64
	err    error
	closed sync.Once
}

func (b *answerBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	limits := b.m.o.Limits
	pending := b.m.pending.Add(int64(n))
	switch {
	case b.read > limits.Answer:
		b.err = limits.answerError(b.path)
	case pending > limits.Memory:
		b.err = limits.memoryError("its response to GET " + b.path)
	}
	if b.err != nil {
		b.ended(b.err)
		return 0, b.err
	}
	if err == io.EOF {
		b.ended(nil)
	}
	return n, err
}

func (b *answerBody) Close() error {
	b.closed.Do(func() {
		if !b.listing.reserve(b.read) {
			b.m.pending.Add(-b.read)
		}
	})
	return b.ReadCloser.Close()
}

// watchBody stops reading a watch if one JSON event is too large, because its reader would buffer all of it, or if the
// watch's objects exceed a limit.
type watchBody struct {
	io.ReadCloser
	gauge *gauge // nil for a watch without limits
	over  func() error
	event int
	err   error
}

func (b *watchBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.gauge != nil && b.gauge.pause() > 0 {
		b.err = ErrLimit
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if last := bytes.LastIndexByte(p[:n], '\n'); last >= 0 {
		b.event = n - last - 1
	} else {
		b.event += n
	}
	if b.event > eventLimit {
		b.err = b.over()
		return 0, b.err
	}
	return n, err
}

// listing is one attempt to list all objects of a watch: its pages, or the events before the bookmark. They stay in
// memory until they are stored.
type listing struct {
	m  *Member
	mu sync.Mutex
	// reserved is the part of Limits.Memory that it uses.
	reserved int64
	over     bool
}

// gaugeKey marks the requests of a watch with its gauge.
type gaugeKey struct{}

func gaugeOf(ctx context.Context) *gauge {
	g, _ := ctx.Value(gaugeKey{}).(*gauge)
	return g
}

// reserve takes over bytes from the member's pending count. It returns false if the caller must release them now.
func (l *listing) reserve(n int64) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.reserved += n
	return true
}

// end releases the bytes.
func (l *listing) end() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.m.pending.Add(-l.reserved)
	l.reserved = 0
}

// gauge is between a watch and its store. It requests pages if one response is too large, counts what is stored, and
// ends a watch that exceeds a limit. The store then keeps its content, because missing objects may still exist.
type gauge struct {
	cache.ReflectorStore
	m     *Member
	name  string
	clock clock.PassiveClock

	mu    sync.Mutex
	sizes map[types.NamespacedName]int64
	total int64
	// of the attempt under way
	listing  *listing
	deadline *time.Timer
	stop     context.CancelFunc
	// page is the page size; 0 leaves it to the reflector.
	page int64
	// rest is the time of the next attempt.
	rest time.Time
	// listed: the next watch continues from a list right before it, so goneBack needs no check.
	listed bool
}

var _ cache.TransformingStore = (*gauge)(nil)

// pages are the page sizes after a response was too large: the second if the first still is.
var pages = []int64{500, 25}

// source returns the list and watch functions of the reflector, until stop.
func (g *gauge) source(lw cache.ListWatch, stop context.CancelFunc) *cache.ListWatch {
	g.mu.Lock()
	g.stop = stop
	g.mu.Unlock()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.Continue == "" {
				g.begin()
			}
			list, err := g.list(ctx, o, lw.ListWithContextFunc)
			g.mu.Lock()
			g.listed = err == nil
			g.mu.Unlock()
			g.after(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			initial := o.SendInitialEvents != nil && *o.SendInitialEvents
			if initial {
				g.begin()
			} else if err := g.goneBack(ctx, o.ResourceVersion, lw.ListWithContextFunc); err != nil {
				return nil, err
			}
			w, err := lw.WatchFuncWithContext(context.WithValue(ctx, gaugeKey{}, g), o)
			if initial || err != nil {
				g.after(err)
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
	g.mu.Lock()
	fresh := g.listed
	g.listed = false
	g.mu.Unlock()
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
	ctx = context.WithValue(ctx, gaugeKey{}, g)
	ctx, cancel := context.WithTimeout(ctx, g.m.o.Limits.Listing)
	defer cancel()
	g.mu.Lock()
	page := g.page
	g.mu.Unlock()
	for {
		asked := o
		if page > 0 {
			// An API server pages only reads from its store, not from its cache.
			asked.ResourceVersion, asked.ResourceVersionMatch, asked.Limit = "", "", page
		}
		got, err := list(ctx, asked)
		smaller := int64(0)
		for _, p := range pages {
			if page == 0 || p < page {
				smaller = p
				break
			}
		}
		if err == nil || !errors.Is(err, ErrLimit) || smaller == 0 {
			return got, err
		}
		page = smaller
		g.mu.Lock()
		g.page = page
		g.mu.Unlock()
	}
}

func (g *gauge) current() *listing {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listing
}

// begin starts to count another attempt.
func (g *gauge) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	g.listing = &listing{m: g.m}
	limit := g.m.o.Limits.Listing
	mine := g.listing
	g.deadline = time.AfterFunc(limit, func() {
		if g.current() == mine {
			g.exceed(&limitError{fmt.Sprintf("%s were not listed within %v", g.name, limit),
				"check that its API server is healthy and the network connection to it"})
		}
	})
}

// settle must be called with the lock.
func (g *gauge) settle() {
	if g.listing != nil {
		g.listing.end()
		g.deadline.Stop()
		g.listing, g.deadline = nil, nil
	}
}

// after ends an attempt that failed, for good if it went over a limit.
func (g *gauge) after(err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrLimit):
		g.exceed(err)
	default:
		g.mu.Lock()
		defer g.mu.Unlock()
		g.settle()
	}
}

// exceed pauses the watch and reports the member.
func (g *gauge) exceed(err error) {
	g.m.excesses.add(g.name, err, g.clock.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	g.rest = time.Now().Add(g.m.o.Limits.Pause)
	if g.stop != nil {
		g.stop()
	}
}

// pause returns how long the watch still waits; at most 0 if it may be tried.
func (g *gauge) pause() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.rest)
}

// Transformer trims the objects of a list while it is received, and counts them. It never fails, because the reflector
// would log the object.
func (g *gauge) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		kept, err := g.trim(obj)
		if err != nil {
			name, _ := nameOf(obj)
			return &unreadable{metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, err}, nil
		}
		n := weigh(kept)
		if g.current().reserve(n) && g.m.pending.Add(n) > g.m.o.Limits.Memory {
			g.exceed(g.m.o.Limits.memoryError(g.name))
		}
		return kept, nil
	}
}

// unreadable is an object that could not be trimmed.
type unreadable struct {
	metav1.ObjectMeta
	err error
}

func (g *gauge) trim(obj any) (any, error) {
	if u, bad := obj.(*unreadable); bad {
		return nil, u.err
	}
	if t, ok := g.ReflectorStore.(cache.TransformingStore); ok {
		return t.Transformer()(obj)
	}
	return obj, nil
}

func (g *gauge) Add(obj any) error    { return g.put(obj, g.ReflectorStore.Add) }
func (g *gauge) Update(obj any) error { return g.put(obj, g.ReflectorStore.Update) }

func (g *gauge) put(obj any, put func(any) error) error {
	obj, err := g.trim(obj)
	if err != nil {
		klog.ErrorS(err, "Cannot read an object of a member", "watch", g.name)
		return nil // the reflector would log the object
	}
	key, err := nameOf(obj)
	if err != nil {
		return err
	}
	g.mu.Lock()
	n := weigh(obj)
	grown := n - g.sizes[key]
	if g.m.kept.Add(grown) > g.m.o.Limits.Memory && grown > 0 {
		g.m.kept.Add(-grown)
		g.mu.Unlock()
		g.exceed(g.m.o.Limits.memoryError(g.name))
		return nil
	}
	if g.sizes == nil {
		g.sizes = map[types.NamespacedName]int64{}
	}
	g.sizes[key] = n
	g.total += grown
	g.mu.Unlock()
	return put(obj)
}

func (g *gauge) Delete(obj any) error {
	key, err := nameOf(obj)
	if err != nil {
		return err
	}
	g.mu.Lock()
	n := g.sizes[key]
	delete(g.sizes, key)
	g.total -= n
	g.m.kept.Add(-n)
	g.mu.Unlock()
	return g.ReflectorStore.Delete(obj)
}

// Replace stores the result of a list, unless it exceeds the limit.
func (g *gauge) Replace(list []any, version string) error {
	sizes := make(map[types.NamespacedName]int64, len(list))
	var total int64
	for i, obj := range list {
		obj, err := g.trim(obj)
		if err != nil {
			return err
		}
		key, err := nameOf(obj)
		if err != nil {
			return err
		}
		list[i] = obj
		sizes[key] = weigh(obj)
		total += sizes[key]
	}
	g.mu.Lock()
	grown := total - g.total
	if g.m.kept.Add(grown) > g.m.o.Limits.Memory && grown > 0 {
		g.m.kept.Add(-grown)
		g.mu.Unlock()
		err := g.m.o.Limits.memoryError(g.name)
		g.exceed(err)
		return err
	}
	g.sizes, g.total = sizes, total
	g.settle()
	g.mu.Unlock()
	g.m.excesses.clear(g.name)
	return g.ReflectorStore.Replace(list, version)
}

// forget releases what the store of an ended watch used.
func (g *gauge) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	g.m.kept.Add(-g.total)
	g.sizes, g.total = nil, 0
	g.m.excesses.clear(g.name)
}

func nameOf(obj any) (types.NamespacedName, error) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return types.NamespacedName{}, err
	}
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, nil
}

// trimmedWeight is the size that is counted for an object that is stored as one line.
const trimmedWeight = 512

// weigh estimates the memory of an object.
func weigh(obj any) int64 {
	switch t := obj.(type) {
	case *trimmed[*unstructured.Unstructured]:
		return weighValue(t.kept.Object)
	case *trimmed[seenPod]:
		if t.kept.trouble != nil {
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

// pending and kept count against Limits.Memory.
type counters struct{ pending, kept atomic.Int64 }
