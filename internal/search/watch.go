package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// recheckEvery is the interval at which a watch asks for the rights of its user again.
	recheckEvery = 10 * time.Second
	// watchLife is the longest time of a watch; the next one is authenticated again.
	watchLife = 30 * time.Minute
	// bookmarkEvery is the interval of bookmarks.
	bookmarkEvery = time.Minute
)

// stream is a watch of a user.
type stream struct {
	*query
	format format
	filter *filter
	out    *output
	view   *view
	// seq is the number of the log that was reported.
	seq uint64
	// held are clusters that do not answer for now, or whose caches are not up to date: nothing of them is reported.
	// missed is true for those of which something was not reported.
	held, missed map[string]bool
	bookmarks    bool
	// partial is true while the objects of a cluster are reported, from which no watch resumes.
	partial bool
}

// errWatchEnds ends a watch that its client has to start again with a list.
type errWatchEnds struct{ status metav1.Status }

func (e errWatchEnds) Error() string { return e.status.Message }

func ends(why string) error {
	var status apierrors.APIStatus
	_ = errors.As(expired(why), &status) // it is one
	return errWatchEnds{status.Status()}
}

// watch answers a watch. It resumes from a version of a list or event, or begins with the present objects.
func (q *query) watch(v *view) error {
	f, err := q.format()
	if err != nil {
		return err
	}
	values := q.in.URL.Query()
	filter, err := q.filter(values)
	if err != nil {
		return err
	}
	if filter.decodes() {
		return apierrors.NewBadRequest("a watch selects by labels, and by the fields metadata.name, metadata.namespace, " +
			"spec.nodeName and status.phase")
	}
	s := &stream{query: q, format: f, filter: filter, view: v, held: map[string]bool{}, missed: map[string]bool{},
		bookmarks: values.Get("allowWatchBookmarks") == "true"}
	defer q.store.open()()
	from, initial, err := s.start(values)
	if err != nil {
		return err
	}
	q.w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	q.w.WriteHeader(http.StatusOK)
	s.out = newOutput(q.w)
	err = s.run(from, initial, values)
	var last errWatchEnds
	if errors.As(err, &last) {
		raw, _ := json.Marshal(last.status) // texts always encode
		_ = s.event(watch.Error, raw)
		_ = s.out.flush() // fails only if the client is gone
	}
	return nil
}

// start returns the version from which the watch resumes, or initial if it begins with the present objects.
func (s *stream) start(values url.Values) (from version, initial bool, err error) {
	text := values.Get("resourceVersion")
	if text == "" || text == "0" || values.Get("sendInitialEvents") == "true" {
		return version{}, true, nil
	}
	from, ok := parseVersion(text)
	switch {
	case !ok || from.epoch != s.store.epoch:
		return from, false, expired("another process made it")
	case from.hash != s.view.hash:
		return from, false, expired("the clusters have changed that can be read")
	}
	return from, false, nil
}

// run reports changes until the client leaves, the time of the watch ends, or an error. The error is errWatchEnds if
// the client has to list again.
func (s *stream) run(from version, initial bool, values url.Values) error {
	life := watchLife
	if seconds, err := strconv.Atoi(values.Get("timeoutSeconds")); err == nil && seconds > 0 {
		life = min(life, time.Duration(seconds)*time.Second)
	}
	end := time.NewTimer(life)
	defer end.Stop()
	if initial {
		if err := s.begin(values.Get("sendInitialEvents") == "true"); err != nil {
			return err
		}
	} else {
		s.seq = from.seq
	}
	tick := time.NewTicker(recheckEvery)
	defer tick.Stop()
	marked := time.Now()
	for {
		changed := s.store.next()
		if err := s.report(); err != nil {
			return err
		}
		if err := s.out.flush(); err != nil {
			return err
		}
		select {
		case <-s.r.Context().Done():
			return s.r.Context().Err()
		case <-s.engine.ctx.Done():
			return s.engine.ctx.Err()
		case <-end.C:
			return nil
		case <-changed:
		case <-tick.C:
			if err := s.recheck(); err != nil {
				return err
			}
			if s.bookmarks && time.Since(marked) >= bookmarkEvery {
				marked = time.Now()
				if err := s.bookmark(nil); err != nil {
					return err
				}
			}
		}
	}
}

// begin reports the present objects.
func (s *stream) begin(mark bool) error {
	now := s.store.state()
	s.seq = now.seq
	s.partial = true
	err := s.reportObjects(now, s.view.set, watch.Added)
	if s.partial = false; err != nil || !mark {
		return err
	}
	return s.bookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// reportTime bounds how long a slow reader may keep a former state in memory.
const reportTime = time.Minute

// reportObjects reports the objects of clusters.
func (s *stream) reportObjects(now snapshot, clusters map[string]uint64, kind watch.EventType) (err error) {
	ctx, cancel := context.WithTimeout(s.r.Context(), reportTime)
	defer cancel()
	seen := 0
	now.visit(s.namespace, nil, func(e *entry) bool {
		if seen++; seen%checkEvery == 0 && ctx.Err() != nil {
			err = ctx.Err()
			return false
		}
		if _, mine := clusters[e.cluster]; !mine || !s.filter.quick(e) {
			return true
		}
		if kind == watch.Deleted {
			err = s.event(kind, s.gone(e))
		} else {
			err = s.object(kind, e)
		}
		return err == nil
	})
	return err
}

func (s *stream) version() version {
	if s.partial {
		return version{s.store.epoch, s.seq, "0"}
	}
	return version{s.store.epoch, s.seq, s.view.hash}
}

// object reports an object.
func (s *stream) object(kind watch.EventType, e *entry) error {
	raw, err := s.format.one(e, s.version().object(e))
	if err != nil {
		return err
	}
	return s.event(kind, raw)
}

// gone returns an object that the user does not see any more.
func (s *stream) gone(e *entry) []byte {
	raw := e.stub(s.store.apiVersion(), s.store.kind, s.version().object(e))
	if !s.format.table {
		return raw
	}
	f := s.format
	f.rows = nil
	columns, row, err := f.row(e, raw, time.Now())
	if err != nil {
		return raw
	}
	table, _ := json.Marshal(metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
		ListMeta: metav1.ListMeta{ResourceVersion: s.version().object(e)}, ColumnDefinitions: columns,
		Rows: []metav1.TableRow{row}})
	return table
}

func (s *stream) event(kind watch.EventType, object []byte) error {
	_, err := fmt.Fprintf(s.out, `{"type":%q,"object":%s}`+"\n", kind, object)
	return err
}

func (s *stream) bookmark(annotations map[string]string) error {
	raw, err := json.Marshal(map[string]any{"apiVersion": s.store.apiVersion(), "kind": s.store.kind,
		"metadata": metav1.ObjectMeta{ResourceVersion: s.version().String(), Annotations: annotations}})
	if err != nil {
		return err
	}
	return s.event(watch.Bookmark, raw)
}

func (s *stream) report() error {
	_, err := s.reportAll()
	return err
}

// reportAll reports the changes since the last time, and returns the state that was reported. Several changes of an
// object are one event with its present state.
func (s *stream) reportAll() (snapshot, error) {
	now, ok := s.store.changesAfter(s.seq)
	if !ok {
		return now, ends("too many changes since then")
	}
	before := s.seq
	first := make(map[entryKey]*entry, len(now.changes))
	var order []change
	for _, c := range now.changes {
		if _, mine := s.view.set[c.at.cluster]; !mine || s.namespace != "" && s.namespace != c.at.namespace {
			continue
		}
		if s.held[c.at.cluster] {
			s.missed[c.at.cluster] = true
			continue
		}
		key := entryKey{c.at.namespace, c.at.name, c.at.cluster}
		if _, seen := first[key]; !seen {
			first[key] = c.was
			order = append(order, c)
		}
	}
	s.seq = now.seq
	for i, c := range order {
		if i%checkEvery == 0 && s.r.Context().Err() != nil {
			return now, s.r.Context().Err()
		}
		// A client that resumes in between gets the rest again.
		if i < len(order)-1 {
			s.seq = before
		} else {
			s.seq = now.seq
		}
		is, exists := now.tree.Get(c.at)
		if err := s.difference(first[entryKey{c.at.namespace, c.at.name, c.at.cluster}], is, exists); err != nil {
			return now, err
		}
	}
	return now, nil
}

type entryKey struct{ namespace, name, cluster string }

// difference reports what an object was and is now.
func (s *stream) difference(was, is *entry, exists bool) error {
	matched, matches := was != nil && s.filter.quick(was), exists && s.filter.quick(is)
	if matched && (!matches || was.uid != is.uid) {
		if err := s.event(watch.Deleted, s.gone(was)); err != nil {
			return err
		}
		matched = false
	}
	switch {
	case matches && matched:
		return s.object(watch.Modified, is)
	case matches:
		return s.object(watch.Added, is)
	}
	return nil
}

// recheck asks for the rights again. Objects that the user may not read any more are reported as deleted, and those of
// new clusters as added.
func (s *stream) recheck() error {
	if s.global && s.engine.registeredStore(s.gvr) != s.store {
		return ends("the registries have changed")
	}
	v, err := s.look(s.r.Context(), "watch")
	if apierrors.IsForbidden(err) {
		v, err = &view{set: map[string]uint64{}, left: map[string]string{}}, nil
	}
	if apierrors.IsServiceUnavailable(err) {
		v, err = &view{set: map[string]uint64{}, left: s.leftAll()}, nil
	}
	if err != nil {
		return ends(err.Error())
	}
	now, err := s.reportAll()
	if err != nil {
		return err
	}
	states, _ := s.store.states()
	lost, gained := map[string]uint64{}, map[string]uint64{}
	for name, generation := range s.view.set {
		current, readable := v.set[name]
		_, waits := v.left[name]
		_, cached := states[name]
		switch {
		case !cached || readable && current != generation || !waits && s.missed[name]:
			return ends("the objects of a cluster were read again")
		case readable:
			delete(s.held, name)
		case waits:
			s.held[name] = true
			v.set[name] = generation // it stays what the client knows
		default:
			lost[name] = generation
			delete(s.held, name)
		}
	}
	for name, generation := range v.set {
		if _, had := s.view.set[name]; !had {
			gained[name] = generation
		}
	}
	if len(lost) == 0 && len(gained) == 0 {
		return nil
	}
	// All that follows is of the state that was just reported. A client that resumes in between lists again.
	s.partial = true
	if err := s.reportObjects(now, lost, watch.Deleted); err != nil {
		return err
	}
	if err := s.reportObjects(now, gained, watch.Added); err != nil {
		return err
	}
	s.partial = false
	v.sum()
	s.view = v
	return nil
}

// leftAll is the state in which no cluster responds.
func (s *stream) leftAll() map[string]string {
	left := map[string]string{}
	for name := range s.view.set {
		left[name] = "it does not respond"
	}
	return left
}
