package commit

import (
	"testing"
	"time"
)

func TestPaceWaitsLongerForMoreObjects(t *testing.T) {
	begin := time.Now()
	var p Pace[int]
	if wait := p.Wait(0, time.Second, begin); wait != time.Second {
		t.Errorf("one object waits %v, want the least", wait)
	}
	for i := range 300 {
		p.Wait(i, time.Second, begin)
	}
	if wait := p.Wait(0, time.Second, begin.Add(2*time.Second)); wait != 3*time.Second {
		t.Errorf("with 300 objects, after 2 s one waits another %v, want 3 s", wait)
	}
	slow := Pace[int]{Rate: 20}
	for i := range 100 {
		slow.Wait(i, time.Second, begin)
	}
	if wait := slow.Wait(0, time.Second, begin); wait != 5*time.Second {
		t.Errorf("with 100 objects at 20 per second one waits %v, want 5 s", wait)
	}
	for i := range 100_000 {
		p.Wait(i, time.Second, begin)
	}
	if wait := p.Wait(0, time.Second, begin.Add(10*time.Second)); wait != 0 {
		t.Errorf("with very many objects, after 10 s one waits another %v, want 0", wait)
	}
	for i := range 100_000 {
		p.Done(i)
	}
	if wait := p.Wait(0, time.Second, begin.Add(time.Minute)); wait != time.Second {
		t.Errorf("after all are done, one object waits %v, want the least", wait)
	}
}
