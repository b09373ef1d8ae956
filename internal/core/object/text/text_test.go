package text_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

func TestATextIsCutBetweenItsCharacters(t *testing.T) {
	for _, tt := range []struct {
		s    string
		most int
		want string
	}{
		{"", 3, ""},
		{"short", 5, "short"},
		{"longer", 5, "lo…"},
		{"longer", 3, "…"},
		{"äöü", 6, "äöü"},
		{"äöü", 5, "ä…"},
		{"aäöü", 6, "aä…"},
		{"aaäöü", 6, "aa…"},
	} {
		got := text.Cut(tt.s, tt.most)
		if got != tt.want || len(got) > tt.most || !utf8.ValidString(got) {
			t.Errorf("%q in %d bytes: %q, want %q", tt.s, tt.most, got, tt.want)
		}
	}
	if got := text.Count(1, "object") + ", " + text.Count(0, "object") + ", " +
		text.Count(int32(12), "object"); got != "1 object, 0 objects, 12 objects" {
		t.Errorf("counted %q", got)
	}
	if got := text.Cut(strings.Repeat("☸", 1000), 100); len(got) > 100 || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}

func TestManyNamesAndLinesAreSummedUp(t *testing.T) {
	for _, tt := range []struct {
		items        []string
		names, lines string
	}{
		{nil, "", ""},
		{[]string{"a"}, "a", "a"},
		{[]string{"a", "b", "c"}, "a, b, c", "a; b; c"},
		{[]string{"a", "b", "c", "d"}, "a, b and 2 more", "a; b; and 2 more"},
	} {
		if got := text.Names(tt.items, 2); got != tt.names {
			t.Errorf("names of %q: %q, want %q", tt.items, got, tt.names)
		}
		if got := text.Lines(tt.items, 2); got != tt.lines {
			t.Errorf("lines of %q: %q, want %q", tt.items, got, tt.lines)
		}
	}
}

func TestPlainTextIsOnePrintableLine(t *testing.T) {
	for in, want := range map[string]string{"": "", "a\n b\tc": "a b c", "\x1b[31mred\x1b[0m": "[31mred [0m",
		"a\u009b2Jb\u202ec": "a 2Jb c", "äöü": "äöü", "a\rfake": "a fake", "a\x7f\x00b": "a b",
		"0123456789ab": "0123456789ab", "0123456789abc": "012345678…"} {
		if got := text.Plain(in, 12); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := text.Plain(strings.Repeat("é\x1b", 1<<20), 100); len(got) > 100 || strings.Contains(got, "\x1b") {
		t.Errorf("got %q", got)
	}
}

func TestAgesAreAlsoInDays(t *testing.T) {
	for value, want := range map[string]time.Duration{"7d": 168 * time.Hour, "0": 0, "90m": 90 * time.Minute,
		"-1h": -1, "-1d": -1, "1.5d": -1, "d": -1, "": -1, "99999d": -1, "tomorrow": -1} {
		got, err := text.Age(value)
		if wrong := want < 0; (err != nil) != wrong || !wrong && got != want {
			t.Errorf("%q is %v, want %v: %v", value, got, want, err)
		}
	}
}
