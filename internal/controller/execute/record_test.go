package execute

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

func TestChangingStatusIsWrittenOncePerWindow(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC))
	const window = time.Second
	r := &reporter{window: window, clock: clock, memory: newMemory()}
	work := func(name string, health workv1alpha1.ResourceHealth) *workv1alpha1.Work {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: name}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: health}}
		return w
	}
	// flips changes the health of a Work a hundred times a second, and returns the number of writes.
	flips := func(name string, n int) (written int) {
		was, other := work(name, workv1alpha1.ResourceHealthy), work(name, workv1alpha1.ResourceUnhealthy)
		for range n {
			clock.SetTime(clock.Now().Add(10 * time.Millisecond))
			if r.delay(was, other, nil) <= 0 {
				written++
				r.memory.progress.Done(types.NamespacedName{Namespace: was.Namespace, Name: name})
				was, other = other, was
			}
		}
		return written
	}
	if n := flips("few", 20); n != 20 {
		t.Errorf("of 20 turns %d were written at once, want all", n)
	}
	if n := flips("hostile", 6000); n < 50 || n > turnsAtOnce+2*61 {
		t.Errorf("of a minute of turns %d were written, want about two a second", n)
	}
	if n := flips("other", 20); n != 20 {
		t.Errorf("of another object's 20 turns %d were written at once, want all", n)
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	if n := flips("hostile", 20); n != 20 {
		t.Errorf("after a quiet minute %d of 20 turns were written at once, want all", n)
	}
	for i := range 5000 {
		clock.SetTime(clock.Now().Add(time.Second))
		r.memory.turn(types.NamespacedName{Name: string(rune('a' + i%26)), Namespace: time.Duration(i).String()},
			clock.Now())
	}
	if n := len(r.memory.records); n > 1100 {
		t.Errorf("%d Works are remembered, of which few turned of late", n)
	}
}
