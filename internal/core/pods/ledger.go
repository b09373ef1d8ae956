package pods

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Most is how many pods in trouble are kept of one member. Those beyond are not told of until others are well.
const Most = 1000

type key struct{ namespace, name string }

// Ledger are the pods of one member that are in trouble, or may be soon. It is not safe for concurrent use.
type Ledger struct {
	troubles map[key]Trouble
	// dropped says that some were not kept, which are not heard of again until all pods are listed anew.
	dropped bool
}

// NewLedger knows of none.
func NewLedger() *Ledger { return &Ledger{troubles: map[key]Trouble{}} }

// Set takes in what ails a pod. A full ledger has what is slow make way for what is trouble at once.
func (l *Ledger) Set(t Trouble) {
	k := key{t.Namespace, t.Name}
	if _, known := l.troubles[k]; !known && len(l.troubles) >= Most {
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

// Remove takes in that a pod is well, or gone.
func (l *Ledger) Remove(namespace, name string) { delete(l.troubles, key{namespace, name}) }

// Full says that there may be more.
func (l *Ledger) Full() bool { return l.dropped || len(l.troubles) >= Most }

// Now are those in trouble at a time, by namespace and name.
func (l *Ledger) Now(now time.Time) []Trouble {
	var all []Trouble
	for _, t := range l.troubles {
		if t = t.at(now); t.lasts(now) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Trouble) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}

func (t Trouble) lasts(now time.Time) bool { return !t.Slow || !now.Before(t.Since.Add(Patience)) }
