package kind

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of docs/kinds.md")

const (
	page  = "../../../docs/kinds.md"
	begin = "<!-- kinds: go test ./internal/core/kind -update -->\n"
	end   = "<!-- end of kinds -->\n"
)

// TestPageListsTheFactsOfEachKind runs every kind through every question. A hole in the table is a question without an
// answer for a kind, or a fact: a Job has no pause.
func TestPageListsTheFactsOfEachKind(t *testing.T) {
	var b strings.Builder
	b.WriteString("| kind | pods | counts updated pods | reports failures by | runs once | pause | scale | restart | " +
		"revisions |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	kinds := slices.Clone(List())
	slices.SortFunc(kinds, func(a, b *Kind) int {
		return strings.Compare(a.Group+"/"+a.GroupKind.Kind, b.Group+"/"+b.GroupKind.Kind)
	})
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return ""
	}
	for _, k := range kinds {
		where := ""
		switch n := len(k.Pods.Templates); {
		case n > 0:
			where = strings.TrimSuffix(fmt.Sprint(n)+" templates", "s"[:min(1, max(0, 2-n))])
		case len(k.Pods.Specs) > 0:
			where = "added to others"
		case len(k.Pods.Containers) > 0:
			where = "containers of steps"
		case len(k.Pods.Images) > 0:
			where = "images"
		}
		pause := ""
		if k.Pause != nil {
			pause = "`" + strings.Join(k.Pause("v1"), ".") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", k.GroupKind, where, yes(k.Counters != Counters{}),
			strings.Join(k.Failures, ", "), yes(k.Once != nil), pause, yes(k.Scale), yes(k.Restart), yes(k.Revisions))
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks %q and %q", page, begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(have, b.String()); diff != "" {
		t.Errorf("%s (-page +kinds; -update writes it):\n%s", page, diff)
	}
}

// The facts of a kind belong together: a forgotten one makes failover, adoption or a page wrong for that kind alone.
func TestFactsOfAKindAreConsistent(t *testing.T) {
	for _, k := range List() {
		pods := len(k.Pods.Templates) > 0 || len(k.Pods.Specs) > 0
		for what, wrong := range map[string]bool{
			"it restarts pods, and has no pod template":      k.Restart && len(k.Pods.Templates) == 0,
			"it keeps revisions of pods, and counts none":    k.Revisions && k.Counters == (Counters{}),
			"it counts updated pods, and has none":           k.Counters != (Counters{}) && !pods,
			"it reports failures of pods, and counts none":   len(k.Failures) > 0 && k.Counters == (Counters{}),
			"it runs once, and it keeps revisions or scales": k.Once != nil && (k.Revisions || k.Scale),
			"it has a TTL, and its end is not known": k.Once != nil && k.Once.TTL != nil && k.Once.Ended == "" &&
				!k.Once.Swept,
			"a TTL applies by itself, and none can be set": k.Once != nil && k.Once.Standard >= 0 && k.Once.TTL == nil,
		} {
			if wrong {
				t.Errorf("%s: %s", k.GroupKind, what)
			}
		}
	}
	k := Lookup(groupKind("example.com", "Train"))
	if k.Once != nil || k.Pause != nil || len(k.Pods.Templates) > 0 || k.Kind != "" {
		t.Errorf("an unknown kind has the facts %+v", k)
	}
}
