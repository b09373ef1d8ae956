package pods

import "time"

// Ledger stores the pods of one member with troubles, or with delays that may become troubles. It has no limit of its
// own, which pods of one namespace could use up: the limit of the watch that fills it bounds it. It is not safe for
// concurrent use.
type Ledger struct {
	troubles map[string]map[string]Trouble // by namespace and name; no namespace is empty
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{troubles: map[string]map[string]Trouble{}} }

// Set adds or updates the trouble of a pod.
func (l *Ledger) Set(t Trouble) {
	if l.troubles[t.Namespace] == nil {
		l.troubles[t.Namespace] = map[string]Trouble{}
	}
	l.troubles[t.Namespace][t.Name] = t
}

// Remove removes a pod that is well or was deleted.
func (l *Ledger) Remove(namespace, name string) {
	delete(l.troubles[namespace], name)
	if len(l.troubles[namespace]) == 0 {
		delete(l.troubles, namespace)
	}
}

// Current returns the troubles in a namespace (all if empty) at the given time, in any order.
func (l *Ledger) Current(namespace string, now time.Time) (found []Trouble) {
	in := l.troubles
	if namespace != "" {
		in = map[string]map[string]Trouble{namespace: in[namespace]}
	}
	for _, troubles := range in {
		for _, t := range troubles {
			if t = t.current(now); t.lasts(now) {
				found = append(found, t)
			}
		}
	}
	return found
}

func (t Trouble) lasts(now time.Time) bool { return !t.Slow || !now.Before(t.Since.Add(SlowAfter)) }
