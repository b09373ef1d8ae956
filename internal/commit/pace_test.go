package commit

import (
	"testing"
	"time"
)

func TestNewsWaitsLongerTheMoreThereIs(t *testing.T) {
	begin := time.Now()
	var p Pace[int]
	if wait := p.Wait(0, time.Second, begin); wait != time.Second {
		t.Errorf("alone it waits %v, want the least", wait)
	}
	for i := range 300 {
		p.Wait(i, time.Second, begin)
	}
	if wait := p.Wait(0, time.Second, begin.Add(2*time.Second)); wait != 3*time.Second {
		t.Errorf("of 300, after 2 s it waits for another %v, want 3 s", wait)
	}
	slow := Pace[int]{Rate: 20}
	for i := range 100 {
		slow.Wait(i, time.Second, begin)
	}
	if wait := slow.Wait(0, time.Second, begin); wait != 5*time.Second {
		t.Errorf("of 100 at 20 a second it waits %v, want 5 s", wait)
	}
	for i := range 100_000 {
		p.Wait(i, time.Second, begin)
	}
	if wait := p.Wait(0, time.Second, begin.Add(10*time.Second)); wait != 0 {
		t.Errorf("of very many, after 10 s it waits for another %v, want none", wait)
	}
	for i := range 100_000 {
		p.Told(i)
	}
	if wait := p.Wait(0, time.Second, begin.Add(time.Minute)); wait != time.Second {
		t.Errorf("after all was told, new news waits %v, want the least", wait)
	}
}
