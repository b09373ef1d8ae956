package commit

import "testing"

func TestAMessageIsNewsOnceUntilItIsForgotten(t *testing.T) {
	var told Told[string]
	for i, step := range []struct {
		about, message string
		want           bool
	}{
		{"a", "broken", true},
		{"a", "broken", false},
		{"b", "broken", true},
		{"a", "broken otherwise", true},
		{"a", "broken", true},
	} {
		if got := told.News(step.about, step.message); got != step.want {
			t.Errorf("step %d: news is %t, want %t", i, got, step.want)
		}
	}
	if !told.Forget("a") || told.Forget("a") {
		t.Error("what was said is forgotten once")
	}
	told.ForgetAll(func(about string) bool { return about == "b" })
	if !told.News("b", "broken") {
		t.Error("what was forgotten is news again")
	}
}
