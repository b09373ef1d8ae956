package member

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/argosy-io/argosy/internal/core/kind"
)

func gaugeWith(l Limits) *gauge {
	return &gauge{name: "objects", m: &Member{Name: "m1", o: Options{Limits: l.WithDefaults(), Clock: clock.RealClock{}}}}
}

// The reflector does not wait for a list when its connection is replaced.
func TestLateListLeavesTheNextAttemptAlone(t *testing.T) {
	for name, late := range map[string]func(context.Context, *gauge, *cache.ListWatch){
		"an error":      func(ctx context.Context, g *gauge, _ *cache.ListWatch) { g.after(ctx, ctx.Err()) },
		"another list":  func(ctx context.Context, g *gauge, _ *cache.ListWatch) { g.begin(ctx) },
		"a large event": func(ctx context.Context, g *gauge, _ *cache.ListWatch) { g.after(ctx, eventError("/")) },
		"bytes": func(ctx context.Context, g *gauge, _ *cache.ListWatch) {
			if err := g.receive(ctx, 1<<40); !errors.Is(err, context.Canceled) {
				t.Errorf("its bytes are read on: %v", err)
			}
		},
		"an expired page": func(ctx context.Context, _ *gauge, old *cache.ListWatch) {
			_, _ = old.ListWithContext(ctx, metav1.ListOptions{Continue: "more"})
			_, _ = old.ListWithContext(ctx, metav1.ListOptions{})
		},
		"a watch that is refused": func(ctx context.Context, _ *gauge, old *cache.ListWatch) {
			yes := true
			_, _ = old.WatchFuncWithContext(ctx, metav1.ListOptions{SendInitialEvents: &yes})
		},
	} {
		g := gaugeWith(Limits{})
		first, leave := context.WithCancel(t.Context())
		old := g.source(failing(), leave)
		g.begin(first)
		_ = g.receive(first, 7)
		leave()
		next, stop := context.WithCancel(t.Context())
		defer stop()
		g.source(failing(), stop)
		g.begin(next)
		_ = g.receive(next, 10)
		deadline := g.deadline
		late(first, g, old)
		if g.deadline != deadline || g.received != 10 || g.m.Pending() != 10 || next.Err() != nil || g.m.Excess() != nil {
			t.Errorf("%s: the deadline is the same: %t, %d bytes received, %d pending, %v, excess %v", name,
				g.deadline == deadline, g.received, g.m.Pending(), next.Err(), g.m.Excess())
		}
		if err := g.receive(next, DefaultMemoryLimit); !errors.Is(err, ErrLimit) || next.Err() == nil {
			t.Errorf("%s: the next attempt is not bounded: %v", name, err)
		}
	}
}

// A page ends at the limit, whatever became of the deadline of the attempt.
func TestPageEndsInTime(t *testing.T) {
	g := gaugeWith(Limits{Listing: time.Millisecond})
	_, err := g.list(t.Context(), metav1.ListOptions{},
		func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
	if !errors.Is(err, ErrLimit) || err.Error() != g.lateError().Error() {
		t.Errorf("it ends with %v", err)
	}
}

func TestUnreadableObjectsStayAsTheyWereKnown(t *testing.T) {
	testUnreadable(t, "slice", trimSlice, map[string]any{"endpoints": "x"},
		map[string]any{"endpoints": []any{map[string]any{"addresses": []any{"10.0.0.1"}}}})
	testUnreadable(t, "brake", trimBrake, map[string]any{"metadata": map[string]any{"annotations": "x"}},
		map[string]any{"metadata": map[string]any{"annotations": map[string]any{"argosy.io/hands-off": "true"}}})
	for _, ref := range []any{"x", map[string]any{"kind": "Deployment", "name": int64(5)}} {
		testUnreadable(t, "scaler", trimScaler(kind.Lookup(kind.Scalers()[0].GroupKind())),
			map[string]any{"spec": map[string]any{"scaleTargetRef": ref}},
			map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1",
				"kind": "Deployment", "name": "web"}}})
	}
}

// testUnreadable has an object that can be read and one that cannot in each order, as events and in lists.
func testUnreadable[K any](t *testing.T, kind string, trim func(*unstructured.Unstructured) (K, bool, error), bad,
	good map[string]any) {
	t.Helper()
	object := func(name string, content map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
		if u.Object["metadata"] == nil {
			u.Object["metadata"] = map[string]any{}
		}
		u.Object["metadata"].(map[string]any)["name"] = name
		return u
	}
	a, b, broken := object("a", good), object("b", good), object("a", bad)
	event := func(u *unstructured.Unstructured) func(*trimming[*unstructured.Unstructured, K]) error {
		return func(s *trimming[*unstructured.Unstructured, K]) error { return s.Update(u) }
	}
	list := func(all ...*unstructured.Unstructured) func(*trimming[*unstructured.Unstructured, K]) error {
		return func(s *trimming[*unstructured.Unstructured, K]) error {
			var objects []any
			for _, u := range all {
				o, err := s.Transformer()(u) // as in a list that is streamed
				if err != nil {
					return err
				}
				objects = append(objects, o)
			}
			return s.Replace(objects, "")
		}
	}
	type steps = []func(*trimming[*unstructured.Unstructured, K]) error
	for name, c := range map[string]struct {
		steps steps
		wantA bool
	}{
		"an event, known":             {steps{list(a, b), event(broken)}, true},
		"an event, unknown":           {steps{list(b), event(broken)}, false},
		"a list, known":               {steps{list(a, b), list(broken, b)}, true},
		"lists, known":                {steps{list(a, b), list(broken, b), list(broken, b)}, true},
		"a list, unknown":             {steps{list(b), list(broken, b)}, false},
		"the first list":              {steps{list(broken, b)}, false},
		"a list, deleted before":      {steps{list(a, b), list(b), list(broken, b)}, false},
		"a list without it":           {steps{list(a, b), event(broken), list(b)}, false},
		"an event that can be read":   {steps{list(broken, b), event(a)}, true},
		"a list after both":           {steps{list(broken, b), event(a), event(broken), list(broken, b)}, true},
		"a list with two that cannot": {steps{list(a, b), list(broken, object("b", bad))}, true},
	} {
		values := newValues(func([]change[K]) {})
		s := &trimming[*unstructured.Unstructured, K]{trim: trim, into: values, gauge: gaugeWith(Limits{})}
		for _, step := range c.steps {
			if err := step(s); err != nil {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
		}
		want, _, _ := trim(a)
		got, hasA := values.known(types.NamespacedName{Name: "a"})
		_, hasB := values.known(types.NamespacedName{Name: "b"})
		if hasA != c.wantA || hasA && !reflect.DeepEqual(got, want) || !hasB {
			t.Errorf("%s, %s: a is known: %t, as %v; b is known: %t", kind, name, hasA, got, hasB)
		}
		if n := int64(len(values.all)) * trimmedWeight; s.gauge.total != n || s.gauge.m.Kept() != n {
			t.Errorf("%s, %s: %d bytes count, want %d", kind, name, s.gauge.total, n)
		}
	}
}

func failing() cache.ListWatch {
	return cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, errors.New("expired")
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, errors.New("refused")
		},
	}
}
