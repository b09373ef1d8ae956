package coretest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// PagePart compares the part of a page of docs between the lines begin and end with want, or writes it if update is
// true.
func PagePart(t *testing.T, page, begin, end, want string, update bool) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks %q and %q", page, begin, end)
	}
	if update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(have, want); diff != "" {
		t.Errorf("%s (-page +code; -update writes it):\n%s", page, diff)
	}
}
