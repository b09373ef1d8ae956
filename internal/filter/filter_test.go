package filter

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
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
