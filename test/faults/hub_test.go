package faults

import (
	"context"
	"testing"
	"time"

	"github.com/argosy-io/argosy/test/kit"
)

// startTimeout is how long a hub may take to be ready again on a slow machine.
const startTimeout = 3 * time.Minute

func TestAHubThatIsKilledAgainAndAgainLosesNothing(t *testing.T) {
	const kills, perKill = 10, 20
	w := newWorld(t)
	witnesses := []*witness{w.witness("f1"), w.witness("f2")}
	begin := time.Now()
	for kill := range kills {
		// 1. Users are at work when the hub dies.
		idle := make(chan struct{})
		go func() {
			defer close(idle)
			w.work(w.namespace(), perKill, 60*time.Millisecond)
		}()
		after := time.Duration(w.roll(int(1200 * time.Millisecond)))
		time.Sleep(after)
		done := w.created.Load() + w.updated.Load() + w.deleted.Load()
		fleet.Lab.Hub.Kill()

		// 2. It comes back; once in a while it dies a second time on the way.
		var again time.Duration
		if w.roll(3) == 0 {
			again = 200*time.Millisecond + time.Duration(w.roll(int(3*time.Second)))
			if start(again) == nil {
				time.Sleep(again / 4)
				fleet.Lab.Hub.Kill()
			}
		}
		restarted := time.Now()
		if err := start(startTimeout); err != nil {
			t.Fatalf("start %d: %v", kill+1, err)
		}
		ready := time.Since(restarted)

		// 3. Users finish, and everything converges.
		<-idle
		settled := time.Now()
		kit.Eventually(t, "everything converges", w.wrong)
		for _, seen := range witnesses {
			if wrong := seen.testimony(w); wrong != "" {
				t.Fatal(wrong)
			}
		}
		t.Logf("kill %2d: %4d ms after %d deeds, again while starting: %v, ready after %v, converged %v after the last deed", kill+1,
			after.Milliseconds(), done, again.Round(time.Millisecond), ready.Round(time.Millisecond), time.Since(settled).Round(time.Millisecond))
	}
	t.Logf("%d templates created, %d changes, %d deletions, %d attempts repeated, in %v", w.created.Load(), w.updated.Load(), w.deleted.Load(),
		w.retried.Load(), time.Since(begin).Round(time.Second))
	if w.created.Load() != kills*perKill {
		t.Errorf("%d templates were created, want %d", w.created.Load(), kills*perKill)
	}
}

// start runs the hub, which is dead again if it is not ready by then.
func start(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return fleet.Lab.Hub.Start(ctx)
}

func TestASecondStartRewritesNothing(t *testing.T) {
	w := newWorld(t)
	ns := w.namespace()
	fleet.Hub.Apply(t, everything(w.name, ns))
	w.work(ns, 30, 0)
	kit.Eventually(t, "everything converges", w.wrong)
	before := calm(t, w)

	for _, end := range []struct {
		how string
		end func() error
	}{
		{"stopped", fleet.Lab.Hub.Stop},
		{"killed", func() error { fleet.Lab.Hub.Kill(); return nil }},
	} {
		if err := end.end(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := start(startTimeout); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s and ready again after %v", end.how, time.Since(begin).Round(time.Millisecond))
		// The hub has looked at everything when it carries out something new; what it does late it does within seconds.
		w.work(ns, 1, 0)
		kit.Eventually(t, "a new template arrives", w.wrong)
		kit.Stays(t, end.how+" and started again, the hub rewrote", 5*time.Second, func() string { return changed(before, versions(t, w)) })
		before = calm(t, w)
	}
}
