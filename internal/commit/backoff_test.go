package commit

import (
	"testing"
	"time"
)

func TestBackoffIsAtMostTwoMinutes(t *testing.T) {
	b, last := Backoff[string](5*time.Millisecond), time.Duration(0)
	for try := range 1000 {
		delay := b.When("a")
		if delay < last || delay > 2*time.Minute {
			t.Fatalf("attempt %d waits %v after one that waited %v, want no less, and at most two minutes", try, delay, last)
		}
		last = delay
	}
	if last != 2*time.Minute {
		t.Errorf("the last delay is %v, want two minutes", last)
	}
	if other := b.When("b"); other > time.Second {
		t.Errorf("another object waits %v, want its own backoff", other)
	}
}
