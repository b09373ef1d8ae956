package filter

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1, Labels: map[string]string{"a": "b"}}}
	change(p)
	return p
}

func TestAfterStartDropsTheInitialList(t *testing.T) {
	p := pod(func(*corev1.Pod) {})
	if AfterStart.Create(event.CreateEvent{Object: p, IsInInitialList: true}) {
		t.Error("an object of the initial list passes")
	}
	if !AfterStart.Create(event.CreateEvent{Object: p}) ||
		!AfterStart.Update(event.UpdateEvent{ObjectOld: p, ObjectNew: p}) ||
		!AfterStart.Delete(event.DeleteEvent{Object: p}) {
		t.Error("a later event does not pass")
	}
}

func TestUpdatesPassesMatchingUpdatesOnly(t *testing.T) {
	renamed := Updates(func(before, now *corev1.Pod) bool { return before.Spec.NodeName != now.Spec.NodeName })
	p, moved := pod(func(*corev1.Pod) {}), pod(func(p *corev1.Pod) { p.Spec.NodeName = "n" })
	if renamed.Create(event.CreateEvent{Object: p}) || renamed.Delete(event.DeleteEvent{Object: p}) ||
		renamed.Update(event.UpdateEvent{ObjectOld: p, ObjectNew: p}) {
		t.Error("an event that is no matching update passes")
	}
	if !renamed.Update(event.UpdateEvent{ObjectOld: p, ObjectNew: moved}) {
		t.Error("a matching update does not pass")
	}
}

func TestFiltersPassTheirKindsOfEvents(t *testing.T) {
	changed := Changes(func(before, now *corev1.Pod) bool { return before.Spec.NodeName != now.Spec.NodeName })
	p, moved := pod(func(*corev1.Pod) {}), pod(func(p *corev1.Pod) { p.Spec.NodeName = "n" })
	for name, c := range map[string]struct {
		filter                          predicate.Funcs
		create, update, remove, matched bool
	}{
		"Creations":             {Creations, true, false, false, false},
		"Deletions":             {Deletions, false, false, true, false},
		"CreationsAndDeletions": {CreationsAndDeletions, true, false, true, false},
		"Changes":               {changed, true, false, true, true},
	} {
		for what, passes := range map[string][2]bool{
			"a creation":        {c.filter.Create(event.CreateEvent{Object: p}), c.create},
			"a deletion":        {c.filter.Delete(event.DeleteEvent{Object: p}), c.remove},
			"another update":    {c.filter.Update(event.UpdateEvent{ObjectOld: p, ObjectNew: p}), c.update},
			"a matching update": {c.filter.Update(event.UpdateEvent{ObjectOld: p, ObjectNew: moved}), c.matched},
		} {
			if passes[0] != passes[1] {
				t.Errorf("%s: %s passes: %t, want %t", name, what, passes[0], passes[1])
			}
		}
	}
}

func TestRespecifiedPassesAnotherObjectOfTheName(t *testing.T) {
	was := pod(func(p *corev1.Pod) { p.UID = "1" })
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"the status":            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false},
		"a label":               {func(p *corev1.Pod) { p.Labels["a"] = "c" }, false},
		"the spec":              {func(p *corev1.Pod) { p.Generation = 2 }, true},
		"the object":            {func(p *corev1.Pod) { p.UID = "2" }, true},
		"a deletion that waits": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, true},
	} {
		is := was.DeepCopy()
		c.change(is)
		if got := Respecified.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != c.want {
			t.Errorf("a change of %s passes: %t, want %t", name, got, c.want)
		}
	}
}

func TestTouchedIgnoresTheStatus(t *testing.T) {
	was := pod(func(*corev1.Pod) {})
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing":    {func(*corev1.Pod) {}, false},
		"status":     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, false},
		"spec":       {func(p *corev1.Pod) { p.Generation = 2 }, true},
		"label":      {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "c"} }, true},
		"annotation": {func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "c"} }, true},
		"finalizer":  {func(p *corev1.Pod) { p.Finalizers = []string{"f"} }, true},
	} {
		if got := Touched(event.UpdateEvent{ObjectOld: was, ObjectNew: pod(c.change)}); got != c.want {
			t.Errorf("a change of %s: touched is %v, want %v", name, got, c.want)
		}
	}
}
