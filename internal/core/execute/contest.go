package execute

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// freeRepairs are put right at once: somebody's mistake, or two.
	freeRepairs = 3
	// The pause before the next repair doubles from firstPause to longestPause.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// calm is how long nobody must have changed the object until the next change is a first one again.
	calm = 2 * longestPause
)

// Contest is how often an object was put right lately that somebody in the member changes again and again. The zero
// value is of one that nobody does. A change of the template is no repair, and never waits.
type Contest struct {
	// Repairs within calm of each other, Last the time of the last.
	Repairs int
	Last    time.Time
	// Path is what was put right last.
	Path string
}

// Repaired is the contest after one more repair.
func (c Contest) Repaired(path string, now time.Time) Contest {
	if c.Over(now) {
		c.Repairs = 0
	}
	return Contest{Repairs: c.Repairs + 1, Last: now, Path: path}
}

// Pause is how long the next repair has to wait; 0 for not at all.
func (c Contest) Pause(now time.Time) time.Duration {
	if c.Over(now) || c.Repairs < freeRepairs {
		return 0
	}
	pause := longestPause
	if doublings := c.Repairs - freeRepairs; doublings < 9 { // 2⁹ s are longer than longestPause
		pause = min(pause, firstPause<<doublings)
	}
	// A clock that went back must not make it longer.
	return max(0, min(pause, c.Last.Add(pause).Sub(now)))
}

// Contested says whether users should know: the next repair has to wait.
func (c Contest) Contested(now time.Time) bool { return c.Repairs >= freeRepairs && !c.Over(now) }

// Over says that nobody has changed the object for long; it is then as if nobody ever had. left is how long that takes
// otherwise.
func (c Contest) Over(now time.Time) bool { return c.Left(now) <= 0 }

// Left is how long until the contest is over if nothing happens.
func (c Contest) Left(now time.Time) time.Duration {
	if c.Repairs == 0 {
		return 0
	}
	return min(calm, c.Last.Add(calm).Sub(now))
}

// ContestedAdvice is what users can do about an object that is contested.
const ContestedAdvice = "stop it from doing so, or leave this to the member with a Retain interpretation, " +
	"or by removing it from the template"

// Contested is the message of the condition Contested. manager is the field manager that changes the object; empty if
// it is not known.
func Contested(cluster string, manifest *unstructured.Unstructured, path, manager string) string {
	who := "a user or controller"
	if manager != "" {
		who = fmt.Sprintf("field manager %q", manager)
	}
	name := manifest.GetName()
	if ns := manifest.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	what, does := path+" of ", "changes"
	if path == "" {
		what, does = "", "deletes"
	}
	return fmt.Sprintf("%s repeatedly %s %s%s %s in cluster %q; the hub reverts this at increasing intervals, up to %s",
		who, does, what, manifest.GetKind(), name, cluster, longestPause)
}

// ManagerOf is who set the field of that path last, other than self, by the managed fields of an object; empty if they
// do not tell.
func ManagerOf(entries []metav1.ManagedFieldsEntry, path, self string) string {
	best, depth := -1, 0
	for i, entry := range entries {
		if entry.Manager == self || entry.FieldsV1 == nil || entry.Subresource == "status" {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		d := owns(fields, path)
		if d == 0 || d < depth {
			continue
		}
		if best >= 0 && d == depth && entry.Time != nil && entries[best].Time != nil &&
			entry.Time.Before(entries[best].Time) {
			continue
		}
		best, depth = i, d
	}
	if best < 0 {
		return ""
	}
	return entries[best].Manager
}

// owns is how many steps of a dotted path a set of fields goes along; keys may have dots of their own.
func owns(fields map[string]any, path string) int {
	for key, below := range fields {
		name, isField := strings.CutPrefix(key, "f:")
		if !isField {
			continue
		}
		if path == name {
			return 1
		}
		if rest, within := strings.CutPrefix(path, name+"."); within {
			inner, _ := below.(map[string]any)
			return 1 + owns(inner, rest)
		}
	}
	return 0
}
