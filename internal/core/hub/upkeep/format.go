package upkeep

import (
	"fmt"
	"strconv"
	"strings"
)

// Format is the version of the store's content. It increases only if a binary of the previous format would misread
// what this one writes, because a downgrade then needs a backup.
//
//	1  the first
//	2  Works have Karmada's names: a binary of format 1 would create each of them again
const Format = 2

// oldestFormat is the oldest format that this binary reads. No release wrote an older one.
const oldestFormat = 2

// minorSteps is how many minor releases of Kubernetes one may go back or forth on a store: Kubernetes keeps objects
// readable for one.
const minorSteps = 1

// Unrecorded is the binary that wrote a store that has Works but no record.
var Unrecorded = Writer{Format: 1, Version: "before store format 2"}

// Writer is a binary that wrote a store, as it is recorded there.
type Writer struct {
	Format int `json:"format"`
	// Kubernetes is the release of the API server in it, such as v1.36.3; not compared where it is not known.
	Kubernetes string `json:"kubernetes,omitempty"`
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	// Date of the commit, in RFC 3339.
	Date string `json:"date,omitempty"`
}

// TooNewError reports a store of a newer binary that this one cannot read, TooOldError one that needs an intermediate
// version first.
type (
	TooNewError struct{ Stored, Binary Writer }
	TooOldError struct{ Stored, Binary Writer }
)

func (e *TooNewError) Error() string {
	return fmt.Sprintf("it was written by argosy %s, and argosy %s is too old to read it: use argosy %s or later, or restore a backup from before the upgrade",
		e.Stored, e.Binary, e.Stored.Version)
}

func (e *TooOldError) Error() string {
	if e.Stored.Format < oldestFormat {
		return fmt.Sprintf("it was written by argosy %s, and argosy %s reads store format %d and later: start it on an empty store (docs/upgrade.md); if the store was copied, copy the key /argosy/version, too",
			e.Stored, e.Binary, oldestFormat)
	}
	_, was := minor(e.Stored.Kubernetes)
	return fmt.Sprintf("it was written by argosy %s, and this is argosy %s: Kubernetes can be upgraded only by one minor release at a time, "+
		"so first start a version of Argosy with Kubernetes v1.%d",
		e.Stored, e.Binary, was+minorSteps)
}

// Opens returns why a store must not be opened by this binary.
func (w Writer) Opens(stored Writer) error {
	if stored.Format > w.Format {
		return &TooNewError{stored, w}
	}
	if stored.Format < oldestFormat {
		return &TooOldError{stored, w}
	}
	mineKnown, mine := minor(w.Kubernetes)
	itsKnown, its := minor(stored.Kubernetes)
	switch {
	case !mineKnown || !itsKnown:
		return nil
	case its > mine+minorSteps:
		return &TooNewError{stored, w}
	case mine > its+minorSteps:
		return &TooOldError{stored, w}
	}
	return nil
}

// Succeeds reports whether this binary replaces the recorded one. The store format never decreases, and of binaries
// with the same format the later one is recorded, so that replicas of two versions do not alternate.
func (w Writer) Succeeds(stored Writer) bool {
	if stored.Format != w.Format {
		return w.Format > stored.Format
	}
	mineKnown, mine := minor(w.Kubernetes)
	itsKnown, its := minor(stored.Kubernetes)
	if mineKnown && (!itsKnown || its != mine) {
		return !itsKnown || mine > its
	}
	return itsKnown == mineKnown && w.Date > stored.Date
}

// String is for people: "v1.2.0 (store format 1, Kubernetes v1.36.3)".
func (w Writer) String() string {
	if w.Kubernetes == "" {
		return fmt.Sprintf("%s (store format %d)", w.Version, w.Format)
	}
	return fmt.Sprintf("%s (store format %d, Kubernetes %s)", w.Version, w.Format, w.Kubernetes)
}

// minor reports whether of a release of Kubernetes 1.
func minor(release string) (known bool, n int) {
	rest, ok := strings.CutPrefix(release, "v1.")
	if !ok {
		return false, 0
	}
	digits, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(digits)
	return err == nil && n >= 0, n
}
