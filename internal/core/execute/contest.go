package execute

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

const (
	// freeRepairs are immediate: a user may make a mistake or two.
	freeRepairs = 3
	// The pause before the next repair doubles from firstPause to longestPause.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// calm is the time without a repair after which the count starts again at 0.
	calm = 2 * longestPause
)

// Contest counts the recent repairs of an object that somebody in the member changes again and again. The zero value
// has none. A change of the template is no repair, and never waits.
type Contest struct {
	// Repairs is the number of repairs with less than calm between them, Last the time of the last one.
	Repairs int
	Last    time.Time
	// Path is the field that was repaired last; empty if the object was recreated.
	Path string
}

// Repaired returns the contest after one more repair.
func (c Contest) Repaired(path string, now time.Time) Contest {
	if c.Over(now) {
		c.Repairs = 0
	}
	return Contest{Repairs: c.Repairs + 1, Last: now, Path: path}
}

// Pause returns how long the next repair must wait.
func (c Contest) Pause(now time.Time) time.Duration {
	if c.Over(now) || c.Repairs < freeRepairs {
		return 0
	}
	pause := longestPause
	if doublings := c.Repairs - freeRepairs; doublings < 9 { // 2⁹ s are longer than longestPause
		pause = min(pause, firstPause<<doublings)
	}
	// Not longer if the clock was set back.
	return max(0, min(pause, c.Last.Add(pause).Sub(now)))
}

// Contested reports whether repairs are delayed, which users should know.
func (c Contest) Contested(now time.Time) bool { return c.Repairs >= freeRepairs && !c.Over(now) }

// Over reports whether the next repair is counted as the first.
func (c Contest) Over(now time.Time) bool { return c.Left(now) <= 0 }

// Left returns how long it takes until Over, without another repair.
func (c Contest) Left(now time.Time) time.Duration {
	if c.Repairs == 0 {
		return 0
	}
	return min(calm, c.Last.Add(calm).Sub(now))
}

// ContestedAdvice is the advice for users how to resolve the condition Contested.
const ContestedAdvice = "stop it from doing so, or leave this to the member with a Retain interpretation, " +
	"or by removing it from the template"

// Contested returns the message of the condition Contested. manager is the field manager that changes the object; empty
// if it is unknown.
func Contested(cluster string, manifest *unstructured.Unstructured, path, manager string) string {
	who := "a user or controller"
	if manager != "" {
		who = fmt.Sprintf("field manager %q", manager)
	}
	name := text.Path(manifest.GetNamespace(), manifest.GetName())
	what, does := path+" of ", "changes"
	if path == "" {
		what, does = "", "deletes"
	}
	return fmt.Sprintf("%s repeatedly %s %s%s %s in cluster %q; the hub reverts this at increasing intervals, up to %s",
		who, does, what, manifest.GetKind(), name, cluster, longestPause)
}

// ManagerOf returns the field manager other than self that set the field at path last; empty if it is unknown.
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

// owns returns how many steps of a dotted path are in a set of fields. Keys may contain dots.
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
