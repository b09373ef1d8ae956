package faults

import (
	"context"
	"testing"
	"time"

	"github.com/argosy-io/argosy/test/kit"
)

// startTimeout is how long a hub may take to be ready again on a slow machine.
const startTimeout = 3 * time.Minute

func TestRepeatedlyKilledHubLosesNothing(t *testing.T) {
	kit.Long(t)
	const kills, perKill = 6, 20
	w := newWorld(t)
	witnesses := []*witness{w.witness("f1"), w.witness("f2")}
	for kill := range kills {
		// 1. Users are at work when the hub dies.
		idle := make(chan struct{})
		go func() {
			defer close(idle)
			w.work(w.namespace(), perKill)
		}()
		after := w.roll(perKill)
		w.waitForDeeds(after, idle)
		fleet.Lab.Hub.Kill()

		// 2. It comes back; once in a while it dies a second time on the way.
		var again time.Duration
		if w.roll(3) == 0 {
			again = 200*time.Millisecond + time.Duration(w.roll(int(3*time.Second)))
			if start(again) == nil {
				fleet.Lab.Hub.Kill()
			}
		}
		if err := start(startTimeout); err != nil {
			t.Fatalf("start %d: %v", kill+1, err)
		}

		// 3. Users finish, and everything converges.
		<-idle
		kit.Eventually(t, "everything converges", w.wrong)
		for _, seen := range witnesses {
			if wrong := seen.testimony(w); wrong != "" {
				t.Fatal(wrong)
			}
		}
		t.Logf("kill %2d: after %d deeds, again while starting: %v", kill+1, after, again.Round(time.Millisecond))
	}
	t.Logf("%d templates created, %d changes, %d deletions, %d attempts repeated", w.created.Load(), w.updated.Load(),
		w.deleted.Load(), w.retried.Load())
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
	kit.Long(t)
	w := newWorld(t)
	ns := w.namespace()
	fleet.Hub.Apply(t, everything(w.name, ns))
	w.work(ns, 30)
	kit.Eventually(t, "everything converges", w.wrong)
	before := calm(t, w, ns)

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
		if err := start(startTimeout); err != nil {
			t.Fatal(err)
		}
		// The hub has looked at everything when it carries out something new; what it does late it does within seconds.
		w.work(ns, 1)
		kit.Eventually(t, "a new template arrives", w.wrong)
		kit.Stays(t, end.how+" and started again, the hub rewrote", 5*time.Second, func() string {
			return changed(before, versions(t, w))
		})
		before = calm(t, w, ns)
	}
}
