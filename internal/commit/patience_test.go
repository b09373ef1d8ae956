package commit

import (
	"testing"
	"time"
)

func TestWhatIsMendedIsTriedWithinTwoMinutesHoweverOftenItFailed(t *testing.T) {
	p, last := Patience[string](5*time.Millisecond), time.Duration(0)
	for try := range 1000 {
		wait := p.When("a")
		if wait < last || wait > 2*time.Minute {
			t.Fatalf("try %d waits %v after one that waited %v, want no less, and two minutes at most", try, wait, last)
		}
		last = wait
	}
	if last != 2*time.Minute {
		t.Errorf("the last wait is %v: a failure that stays is asked for too often", last)
	}
	if other := p.When("b"); other > time.Second {
		t.Errorf("another object waits %v for the first", other)
	}
}
