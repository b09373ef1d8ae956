package faults

import (
	"context"
	"testing"
	"time"

	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

func TestAMemberThatIsKilledCatchesUp(t *testing.T) {
	w := newWorld(t)
	healthy := w.witness("f1")
	ns := w.namespace()
	w.work(ns, 20, 0)
	kit.Eventually(t, "everything converges", w.wrong)
	before := w.look("f2")
	member := fleet.Fleet.Members()[1]

	for round := range 2 {
		idle := make(chan struct{})
		go func() { defer close(idle); w.work(ns, 20, 60*time.Millisecond) }()
		after := time.Duration(w.roll(int(600 * time.Millisecond)))
		time.Sleep(after)
		back := kill(t, member)
		<-idle
		begin := time.Now()
		kit.Eventually(t, "the other member has everything", func() string { return w.memberWrong("f1") })
		other := time.Since(begin)
		time.Sleep(time.Duration(w.roll(int(5 * time.Second)))) // long enough, at times, that the hub has given up on it for a while
		back()
		begin = time.Now()
		kit.Eventually(t, "everything converges", w.wrong)
		t.Logf("kill %d of f2 after %d ms: f1 had everything %v after the last deed; f2 caught up %v after it was back", round+1,
			after.Milliseconds(), other.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
		if wrong := healthy.testimony(w); wrong != "" {
			t.Fatal(wrong)
		}
		now := w.look("f2")
		for key, was := range before {
			if is, there := now[key]; there && is.uid != was.uid {
				t.Errorf("%s was made anew in f2", key)
			}
		}
		before = now
	}
}

// kill ends a member as a power cut would. back brings it back; at the end of a test that did not come so far, it is brought back for those
// after it.
func kill(t *testing.T, member *sim.Running) (back func()) {
	t.Helper()
	member.Kill()
	down := true
	restart := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		err := member.Restart(ctx)
		down = err != nil
		return err
	}
	t.Cleanup(func() {
		if !down {
			return
		}
		if err := restart(); err != nil {
			t.Error(err)
		}
	})
	return func() {
		t.Helper()
		if err := restart(); err != nil {
			t.Fatal(err)
		}
	}
}
