package commit

import "testing"

func TestDedupSuppressesRepeatedMessages(t *testing.T) {
	var d Dedup[string]
	for i, step := range []struct {
		subject, message string
		want             bool
	}{
		{"a", "broken", true},
		{"a", "broken", false},
		{"b", "broken", true},
		{"a", "broken otherwise", true},
		{"a", "broken", true},
	} {
		if got := d.IsNew(step.subject, step.message); got != step.want {
			t.Errorf("step %d: IsNew is %t, want %t", i, got, step.want)
		}
	}
	if !d.Forget("a") || d.Forget("a") {
		t.Error("Forget must report a known subject once")
	}
	d.ForgetIf(func(subject string) bool { return subject == "b" })
	if !d.IsNew("b", "broken") {
		t.Error("a forgotten message is not new")
	}
}
