package faults

import (
	"context"
	"testing"
	"time"

	"github.com/argosy-io/argosy/test/kit"
)

func TestAMemberThatIsKilledCatchesUp(t *testing.T) {
	w := newWorld(t)
	healthy := w.witness("f1")
	ns := w.namespace()
	w.work(ns, 20, 0)
	kit.Eventually(t, "everything converges", w.wrong)
	uids := w.uids("f2")
	member := fleet.Fleet.Members()[1]

	for kill := range 2 {
		idle := make(chan struct{})
		go func() { defer close(idle); w.work(ns, 20, 60*time.Millisecond) }()
		after := time.Duration(w.roll(int(600 * time.Millisecond)))
		time.Sleep(after)
		member.Kill()
		<-idle
		begin := time.Now()
		kit.Eventually(t, "the other member has everything", func() string { return w.memberWrong("f1") })
		other := time.Since(begin)
		if limit := 10 * time.Second; other > limit {
			t.Errorf("the other member waited %v, want less than %v", other, limit)
		}
		time.Sleep(time.Duration(w.roll(int(5 * time.Second)))) // long enough, at times, that the hub has given up on it for a while
		ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
		err := member.Restart(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		kit.Eventually(t, "everything converges", w.wrong)
		t.Logf("kill %d of f2 after %d ms: f1 had everything %v after the last deed; f2 caught up %v after it was back", kill+1,
			after.Milliseconds(), other.Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
		if wrong := healthy.testimony(w); wrong != "" {
			t.Fatal(wrong)
		}
		now := w.uids("f2")
		for key, uid := range uids {
			if now[key] != "" && now[key] != uid {
				t.Errorf("%s was made anew in f2", key)
			}
		}
		uids = now
	}
}
