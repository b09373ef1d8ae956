package search

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A change costs the same however many watches there are: they are woken together, a little later.
func TestWatchesAreWokenOnceForManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod")
		change := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			e := &entry{namespace: "shop", name: fmt.Sprint("web-", s.seq), cluster: "eu"}
			s.put(e, e, true)
		}
		const watches = 2000
		for range watches {
			defer s.open()()
		}
		first := s.next()
		for range 1000 {
			change()
		}
		synctest.Wait()
		if closed(first) {
			t.Error("each change wakes all watches")
		}
		time.Sleep(wakeAfter + watches*wakeEach)
		synctest.Wait()
		if !closed(first) {
			t.Error("the watches are not woken")
		}
		second := s.next()
		time.Sleep(time.Minute)
		if closed(second) {
			t.Error("the watches are woken without a change")
		}
		change()
		time.Sleep(time.Minute)
		if !closed(second) {
			t.Error("the watches are not woken again")
		}
	})
}

// A member decides what its objects are: none may end the hub, or be read as one of another cluster.
func TestObjectsThatNoAPIServerSendsAreNotKept(t *testing.T) {
	for name, metadata := range map[string]any{"null": nil, "a text": "x", "no name": map[string]any{"namespace": "shop"},
		"a long name": map[string]any{"name": strings.Repeat("n", 600)},
		"a version with another object": map[string]any{"name": "web",
			"resourceVersion": `1"}},{"metadata":{"name":"forged"`},
		"a version with an event": map[string]any{"name": "web", "resourceVersion": "1\n{}"},
		"a long version":          map[string]any{"name": "web", "resourceVersion": strings.Repeat("1", 65)},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata}}
		if e, err := newEntry("eu", u); err == nil {
			t.Errorf("metadata that are %s are kept: %s", name, e.json(e.version))
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "web", "resourceVersion": "12"}}}
	e, err := newEntry("eu", u)
	if err != nil || !json.Valid(e.json("7.1.a."+e.version)) {
		t.Errorf("a usual object is not kept: %v", err)
	}
}

func TestLogOfChangesIsBoundedInBytes(t *testing.T) {
	s := newStore(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod")
	s.mu.Lock()
	for i := range 100 {
		long := strings.Repeat(fmt.Sprint(i%10), 1<<20)
		e := &entry{namespace: "shop", name: "web", cluster: "eu", labels: pairs{"a", long}}
		s.put(e, e, true)
	}
	logged, entries := s.logged, len(s.log)
	s.mu.Unlock()
	if logged > logMemory || entries == 0 || entries > 40 {
		t.Errorf("the log has %d entries of %d bytes", entries, logged)
	}
	if _, ok := s.changesAfter(0); ok {
		t.Error("a watch resumes from a change that is gone")
	}
	if now, ok := s.changesAfter(99); !ok || len(now.changes) != 1 {
		t.Errorf("a watch does not resume from the last change: %d, %t", len(now.changes), ok)
	}
}
