package pods

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// MaxTroubles limits the pods with troubles that are stored per member: with a broken image, all pods have some.
// More pods are reported only after some of these recover.
const MaxTroubles = 1000

type key struct{ namespace, name string }

// Ledger stores the pods of one member with troubles, or with delays that may become troubles. It is not safe for
// concurrent use.
type Ledger struct {
	troubles map[key]Trouble
	// dropped is true if some pods were not stored. They are reported again only after a new list of all pods.
	dropped bool
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{troubles: map[key]Trouble{}} }

// Set adds or updates the trouble of a pod. In a full ledger an immediate trouble replaces a slow one.
func (l *Ledger) Set(t Trouble) {
	k := key{t.Namespace, t.Name}
	if _, known := l.troubles[k]; !known && len(l.troubles) >= MaxTroubles {
		l.dropped = true
		if t.Slow || !l.dropSlow() {
			return
		}
	}
	l.troubles[k] = t
}

func (l *Ledger) dropSlow() bool {
	for k, t := range l.troubles {
		if t.Slow {
			delete(l.troubles, k)
			return true
		}
	}
	return false
}

// Remove removes a pod that is well or was deleted.
func (l *Ledger) Remove(namespace, name string) { delete(l.troubles, key{namespace, name}) }

// Full reports whether there may be more troubles than are stored.
func (l *Ledger) Full() bool { return l.dropped || len(l.troubles) >= MaxTroubles }

// Current returns the troubles at the given time, sorted by namespace and name.
func (l *Ledger) Current(now time.Time) []Trouble {
	var all []Trouble
	for _, t := range l.troubles {
		if t = t.current(now); t.lasts(now) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Trouble) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}

func (t Trouble) lasts(now time.Time) bool { return !t.Slow || !now.Before(t.Since.Add(SlowAfter)) }
