package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/why"
)

// fakeCache is a cache whose objects are those of a fake client, and whose events the test sends.
type fakeCache struct {
	client.Client
	handlers    map[*fakeInformer]toolscache.ResourceEventHandler
	gets, lists int
	broken      error // of each read
}

func newFakeCache(objs ...client.Object) *fakeCache {
	return &fakeCache{Client: fake.NewClientBuilder().WithScheme(why.Scheme()).WithObjects(objs...).Build(),
		handlers: map[*fakeInformer]toolscache.ResourceEventHandler{}}
}

func (c *fakeCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.gets++
	return errors.Join(c.broken, c.Client.Get(ctx, key, o, opts...))
}

func (c *fakeCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c.lists++
	return errors.Join(c.broken, c.Client.List(ctx, list, opts...))
}

func (c *fakeCache) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer,
	error) {
	return &fakeInformer{c: c, object: o}, nil
}

// send sends an event to the handlers of a kind.
func (c *fakeCache) send(kind client.Object, event func(toolscache.ResourceEventHandler)) {
	for i, h := range c.handlers {
		if fmt.Sprintf("%T", i.object) == fmt.Sprintf("%T", kind) {
			event(h)
		}
	}
}

// fakeInformer has at most one handler. It is the registration of its handler too.
type fakeInformer struct {
	cache.Informer
	toolscache.ResourceEventHandlerRegistration
	c      *fakeCache
	object client.Object
}

func (i *fakeInformer) HasSynced() bool                          { return true }
func (i *fakeInformer) HasSyncedChecker() toolscache.DoneChecker { return nil }
func (i *fakeInformer) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	delete(i.c.handlers, registration.(*fakeInformer))
	return nil
}

func (i *fakeInformer) AddEventHandler(h toolscache.ResourceEventHandler) (
	toolscache.ResourceEventHandlerRegistration, error) {
	i.c.handlers[i] = h
	gvk, err := apiutil.GVKForObject(i.object, i.c.Scheme())
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	list, err := i.c.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	if err := i.c.Client.List(context.Background(), list.(client.ObjectList)); err != nil {
		return nil, err
	}
	return i, meta.EachListItem(list, func(o runtime.Object) error {
		h.OnAdd(o, true)
		return nil
	})
}

// trackedRows returns rows of a cache, and a clock that moves on by each call.
func trackedRows(c *fakeCache) (r *rows, later func()) {
	now := time.Now()
	r = newRows(Options{Cached: func() Cache { return c }})
	r.now = func() time.Time { return now }
	return r, func() { now = now.Add(freshFor) }
}

// shown returns all that streams read of the objects of a state.
func shown(s *fleetState) (all []string) {
	for _, c := range s.clusters {
		all = append(all, c.row.key+string(c.row.json)+c.facts.Region)
	}
	for _, w := range s.workloads {
		all = append(all, w.row.key+string(w.row.json)+w.facts.Name)
	}
	for _, r := range s.releases {
		all = append(all, fmt.Sprint(r.row.key, string(r.row.json), r.facts.waiting))
	}
	for _, m := range s.works {
		all = append(all, m.row.key+string(m.row.json))
	}
	return all
}

// randomObject returns one of a few objects of each kind. Some bindings are of the same template.
func randomObject(random *rand.Rand) client.Object {
	name, n := fmt.Sprint("o", random.IntN(8)), random.IntN(5)
	ns := []string{"shop", "bank"}[random.IntN(2)]
	switch random.IntN(5) {
	case 0:
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: clusterv1alpha1.ClusterSpec{Region: fmt.Sprint("r", n)}}
	case 1:
		b := binding("Deployment", ns, fmt.Sprint("web", n), fmt.Sprint("c", n))
		b.Name = name
		return b
	case 2:
		b := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: fmt.Sprint("n", n)}
		return b
	case 3:
		mw := faultyWork(ns)
		mw.Name, mw.Status.Conditions[0].Message = name, fmt.Sprint("message ", n)
		return mw
	}
	r := waitingRelease(ns)
	r.Name, r.Status.Reason = name, fmt.Sprint("Reason", n)
	if n < 2 {
		r.Status.Conditions = nil
	}
	return r
}

// Whatever happens to objects, rows that events keep up are those that a list of all objects gives, and states that
// streams still read do not change. Events of a watch that was interrupted come late, and deletions without the object.
func TestRowsOfEventsAreThoseOfAList(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	c := newFakeCache()
	for range 20 {
		_ = c.Create(t.Context(), randomObject(random)) // some exist already
	}
	r, later := trackedRows(c)
	var last *fleetState
	var before []string
	happened := map[string]int{}
	for step := range 300 {
		var late []func()
		interrupted := random.IntN(3) == 0
		for range random.IntN(6) {
			o := randomObject(random)
			key, old := client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)
			err := c.Client.Get(t.Context(), key, old)
			var event func(toolscache.ResourceEventHandler)
			switch {
			case apierrors.IsNotFound(err):
				happened["created"]++
				err = c.Create(t.Context(), o)
				event = func(h toolscache.ResourceEventHandler) { h.OnAdd(o, false) }
			case err == nil && random.IntN(3) == 0:
				happened["deleted"]++
				err = c.Delete(t.Context(), old)
				event = func(h toolscache.ResourceEventHandler) { h.OnDelete(old) }
				if interrupted {
					event = func(h toolscache.ResourceEventHandler) {
						h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: toolscache.MetaObjectToName(old).String()})
					}
				}
			case err == nil:
				happened["updated"]++
				o.SetResourceVersion(old.GetResourceVersion())
				err = c.Update(t.Context(), o)
				event = func(h toolscache.ResourceEventHandler) { h.OnUpdate(old, o) }
			}
			if err != nil {
				t.Fatal(err)
			}
			send := func() { c.send(o, event) }
			if interrupted {
				late = append(late, send)
			} else {
				send()
			}
		}
		// A read in the middle of an interruption sees nothing or a part of it.
		later()
		if _, err := r.current(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, send := range late {
			send()
		}
		later()
		lists := c.lists
		got, err := r.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.lists != lists {
			t.Fatalf("step %d: objects were listed", step)
		}
		all := newRows(r.o)
		want, err := all.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all.forget()
		if got, want := shown(got), shown(want); !slices.Equal(got, want) {
			t.Fatalf("step %d: the rows are\n%q, want\n%q", step, got, want)
		}
		if last != nil && !slices.Equal(shown(last), before) {
			t.Fatalf("step %d: a state changed that a stream reads", step)
		}
		last, before = got, shown(got)
	}
	if len(happened) != 3 || len(before) < 20 {
		t.Errorf("the history is poor: %v, %d objects at its end", happened, len(before))
	}
}

func TestStateStaysUntilARowChanges(t *testing.T) {
	c := newFakeCache(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		binding("Deployment", "shop", "web", "c1"))
	r, later := trackedRows(c)
	current := func() *fleetState {
		t.Helper()
		s, err := r.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := current()
	later()
	if current() != first || c.gets > 0 {
		t.Errorf("the objects of the initial list were read again: %d", c.gets)
	}

	var changed clusterv1alpha1.Cluster
	write := func(change func()) {
		if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "c1"}, &changed); err != nil {
			t.Fatal(err)
		}
		change()
		if err := c.Update(t.Context(), &changed); err != nil {
			t.Fatal(err)
		}
		c.send(&changed, func(h toolscache.ResourceEventHandler) { h.OnUpdate(&changed, &changed) })
	}
	write(func() { changed.Annotations = map[string]string{"heard": "now"} })
	later()
	if current() != first || c.gets != 1 {
		t.Errorf("a change that no row shows is a new state after %d reads", c.gets)
	}
	write(func() { changed.Spec.Region = "eu" })
	if current() != first || c.gets != 1 {
		t.Error("the fleet is read more often than every freshFor")
	}
	later()
	second := current()
	if second.clusters[0].facts.Region != "eu" || first.clusters[0].facts.Region != "" {
		t.Errorf("the cluster is %+v, and was %+v", second.clusters[0].facts, first.clusters[0].facts)
	}
	if second.workloads[0] != first.workloads[0] {
		t.Error("a workload that did not change has a new row")
	}
}

// What changed is not lost by a read that fails.
func TestFailedReadIsFollowedByAList(t *testing.T) {
	c := newFakeCache()
	r, later := trackedRows(c)
	if _, err := r.current(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := binding("Deployment", "shop", "web", "c1")
	if err := c.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	c.send(b, func(h toolscache.ResourceEventHandler) { h.OnAdd(b, false) })
	later()
	c.broken = errors.New("it is broken")
	if _, err := r.current(t.Context()); !errors.Is(err, c.broken) || len(c.handlers) > 0 {
		t.Errorf("error %v, %d handlers", err, len(c.handlers))
	}
	c.broken = nil
	if s, err := r.current(t.Context()); err != nil || len(s.workloads) != 1 {
		t.Errorf("state %+v, error %v", s, err)
	}
}

// The controllers of another leader have another cache. Those of another hub have none here.
func TestRowsFollowTheCacheOfTheControllers(t *testing.T) {
	named := func(name string) *fakeCache {
		return newFakeCache(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	first, second, api := named("first"), named("second"), named("api")
	r, later := trackedRows(first)
	r.remote = api
	for _, step := range []struct {
		cached Cache
		sees   string
		first  int
		second int
	}{{first, "first", 5, 0}, {second, "second", 0, 5}, {nil, "api", 0, 0}, {second, "second", 0, 5}} {
		r.o.Cached = func() Cache { return step.cached }
		for range freshRemote / freshFor {
			later()
		}
		s, err := r.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.clusters) != 1 || s.clusters[0].row.key != step.sees || len(first.handlers) != step.first ||
			len(second.handlers) != step.second {
			t.Errorf("%s: clusters %v, %d and %d handlers", step.sees, s.clusters, len(first.handlers), len(second.handlers))
		}
	}
}

func TestLastStreamRemovesTheEventHandlers(t *testing.T) {
	a := newTestAPI(t, grants{})
	c := a.Cached().(*fakeCache)
	for _, who := range []string{"alice", "bob"} {
		if !a.enter(who) {
			t.Fatal("refused")
		}
		if _, err := a.rows.current(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a.leave("alice")
	if len(c.handlers) != 5 {
		t.Errorf("while a stream is open, there are %d handlers, want 5", len(c.handlers))
	}
	a.leave("bob")
	if len(c.handlers) > 0 || a.rows.last != nil {
		t.Errorf("without a stream, there are %d handlers and the state %v", len(c.handlers), a.rows.last)
	}
}

// A page that replaces the changed rows and deletes those that are gone has the rows that the stream has.
func TestDifferenceMakesThePageCurrent(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	same := newRow("k3", "same")
	table := func() (all []*row) {
		for i := range 8 {
			switch {
			case i == 3 && random.IntN(2) == 0:
				all = append(all, same)
			case random.IntN(3) > 0:
				all = append(all, newRow(fmt.Sprint("k", i), random.IntN(2)))
			}
		}
		return all
	}
	page := func(all []*row) map[string]string {
		m := map[string]string{}
		for _, r := range all {
			m[r.key] = string(r.json)
		}
		return m
	}
	for range 2000 {
		before, now := table(), table()
		changed, gone := diff(before, now)
		was, want := page(before), page(now)
		for _, r := range changed {
			if was[r.key] == string(r.json) {
				t.Fatalf("%s is sent again", r.key)
			}
		}
		for _, key := range gone {
			delete(was, key)
		}
		maps.Copy(was, page(changed))
		if !maps.Equal(was, want) {
			t.Fatalf("changed %v and gone %v make %v, want %v", page(changed), gone, was, want)
		}
	}
}

// lister counts lists of ManifestWorks, and returns its objects in pages.
type lister struct {
	client.Client
	works  int
	limits []int64
}

func (l *lister) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	works, is := list.(*ocmv1.ManifestWorkList)
	if !is {
		return l.Client.List(ctx, list, opts...)
	}
	l.works, l.limits = l.works+1, append(l.limits, o.Limit)
	var all ocmv1.ManifestWorkList
	if err := l.Client.List(ctx, &all); err != nil {
		return err
	}
	from, _ := strconv.Atoi(o.Continue)
	until := min(from+2, len(all.Items))
	if works.Items = all.Items[from:until]; until < len(all.Items) {
		works.Continue = strconv.Itoa(until)
	}
	return nil
}

// On a replica without controllers, ManifestWorks are read in pages and less often than the rest.
func TestManifestWorksOfARemoteHubAreReadInPagesAndSeldom(t *testing.T) {
	works := []client.Object{}
	for i := range 5 {
		mw := faultyWork("c1")
		mw.Name = fmt.Sprint("w", i)
		works = append(works, mw)
	}
	hub := &lister{Client: newFakeCache(works...).Client}
	now := time.Now()
	r := newRows(Options{Cached: func() Cache { return nil }})
	r.now, r.remote = func() time.Time { return now }, paged{hub}
	for range 3 {
		s, err := r.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(s.works) != 5 || s.works[4].name.Name != "w4" {
			t.Fatalf("%d ManifestWorks were read", len(s.works))
		}
		now = now.Add(freshRemote)
	}
	if hub.works != 3 || !slices.Equal(hub.limits, []int64{pageSize, pageSize, pageSize}) {
		t.Errorf("%d requests with the limits %d read ManifestWorks 3 times, want 3 pages once", hub.works, hub.limits)
	}
	now = now.Add(freshWorks)
	if err := hub.Delete(t.Context(), works[0]); err != nil {
		t.Fatal(err)
	}
	if s, err := r.current(t.Context()); err != nil || len(s.works) != 4 {
		t.Errorf("later, the ManifestWorks are %d: %v", len(s.works), err)
	}
	r.forget()
	before := hub.works
	if _, err := r.current(t.Context()); err != nil || hub.works == before {
		t.Errorf("the first page after a while reads no ManifestWorks: %v", err)
	}
}
