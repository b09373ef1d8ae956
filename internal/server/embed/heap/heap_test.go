package heap

import (
	"testing"
	"time"
)

func TestIdleProcessReturnsMemory(t *testing.T) {
	const much, little = worth, worth - 1
	var p pacer
	var used time.Duration
	for i, look := range []struct {
		busy  time.Duration
		spare uint64
		trims bool
	}{
		{time.Second, much, false},
		{10 * time.Millisecond, much, false}, // it may have been a pause
		{10 * time.Millisecond, much, true},
		{10 * time.Millisecond, little, false},
		{10 * time.Millisecond, much, true},
		{2 * time.Second, much, false},
		{10 * time.Millisecond, much, false},
	} {
		used += look.busy
		if got := p.trims(used, 2*time.Second, look.spare); got != look.trims {
			t.Errorf("look %d: memory is given back: %v, want %v", i, got, look.trims)
		}
	}
}

func TestHeapRoomIsAShareOfLiveMemory(t *testing.T) {
	for _, c := range []struct{ live, want int }{{0, 400}, {100, 400}, {256, 300}, {384, 200}, {768, 100}, {4096, 100}} {
		if got := percent(uint64(c.live)<<20, Roomy); got != c.want {
			t.Errorf("with %d MiB alive the heap grows by %d %%, want %d", c.live, got, c.want)
		}
	}
	if got := percent(1<<20, Thrifty); got != 100 {
		t.Errorf("a thrifty process grows by %d %%, want Go's own 100", got)
	}
}

func TestStartPhaseEndsWithIdlenessOrTime(t *testing.T) {
	for _, c := range []struct {
		name         string
		busy         time.Duration
		checks, want int
	}{
		{"idle process", 10 * time.Millisecond, settled + 10, settled},
		{"busy process", time.Second, int(busiest/time.Second) + 10, int(busiest / time.Second)},
		{"process that is busy for a short time", time.Second, settled + 1, 0},
	} {
		var p pacer
		got := 0
		for i := range c.checks {
			if p.trims(time.Duration(i+1)*c.busy, period, 0); p.started {
				got = i + 1
				break
			}
		}
		if got != c.want {
			t.Errorf("%s: the start ends at check %d, want %d (0 is never)", c.name, got, c.want)
		}
	}
}
