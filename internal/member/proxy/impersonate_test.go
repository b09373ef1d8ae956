package proxy

import (
	"fmt"
	"testing"
	"time"

	"github.com/argosy-io/argosy/internal/core/cluster/access"
)

func TestCacheOfMemberRolesExpires(t *testing.T) {
	now := time.Unix(1000, 0)
	ann, bob := access.Identity{User: "ann", Groups: []string{"devs"}}, access.Identity{User: "bob"}
	var w knownRole
	if !w.lacks("x", ann, now) {
		t.Error("an unknown role lacks nobody")
	}
	w.note("x", ann, now)
	for story, c := range map[string]struct {
		allowed string
		id      access.Identity
		after   time.Duration
		lacks   bool
	}{
		"the same":                  {"x", ann, 0, false},
		"another":                   {"x", bob, 0, true},
		"the same in another group": {"x", access.Identity{User: "ann", Groups: []string{"devs", "ops"}}, 0, true},
		"others are let in":         {"y", ann, 0, true},
		"a while later":             {"x", ann, knownFor, true},
	} {
		if got := w.lacks(c.allowed, c.id, now.Add(c.after)); got != c.lacks {
			t.Errorf("%s: lacks is %t", story, got)
		}
	}
	w.pause = now.Add(pauseAfterFailure)
	if w.lacks("x", bob, now) || !w.lacks("x", bob, w.pause) {
		t.Error("after a failure the role is written again at once, or never")
	}
	for i := range 10 * maxKnown {
		w.note("x", access.Identity{User: fmt.Sprint("u", i)}, now)
		if len(w.since) > maxKnown {
			t.Fatalf("%d are remembered", len(w.since))
		}
	}
	w.note("x", ann, now.Add(2*knownFor))
	if len(w.since) != 2 {
		t.Errorf("%d users are remembered although most were written long ago", len(w.since))
	}
}
