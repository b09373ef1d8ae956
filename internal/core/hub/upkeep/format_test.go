package upkeep

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func writer(format int, kubernetes, date string) Writer {
	return Writer{Format: format, Kubernetes: kubernetes, Version: fmt.Sprintf("v%d.0.0", format), Date: date}
}

func TestStoreIsOpenedByCompatibleVersions(t *testing.T) {
	const day, next = "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"
	me := writer(2, "v1.36.3", day)
	for story, tc := range map[string]struct {
		stored   Writer
		too      string // new or old, empty if it opens
		succeeds bool
	}{
		"what it wrote itself":                              {me, "", false},
		"what an earlier build of the same release wrote":   {writer(2, "v1.36.3", "2026-01-30T00:00:00Z"), "", true},
		"what a later build of the same format wrote":       {writer(2, "v1.36.3", next), "", false},
		"an earlier format":                                 {writer(1, "v1.36.3", next), "old", true},
		"a newer format":                                    {writer(3, "v1.36.3", day), "new", false},
		"a newer format, though by an earlier build":        {writer(3, "v1.35.0", "2025-01-01T00:00:00Z"), "new", false},
		"another patch of Kubernetes":                       {writer(2, "v1.36.9", day), "", false},
		"Kubernetes one minor release on":                   {writer(2, "v1.37.0", day), "", false},
		"Kubernetes two minor releases on":                  {writer(2, "v1.38.0", day), "new", false},
		"Kubernetes one minor release before":               {writer(2, "v1.35.7", next), "", true},
		"Kubernetes two minor releases before":              {writer(2, "v1.34.7", day), "old", true},
		"a build that was not told its release":             {writer(2, "v0.0.0-master+$Format:%H$", day), "", true},
		"a build of another major release, told by nothing": {writer(2, "", next), "", true},
	} {
		t.Run(story, func(t *testing.T) {
			err := me.Opens(tc.stored)
			switch tc.too {
			case "":
				if err != nil {
					t.Errorf("it does not open: %v", err)
				}
			case "new":
				if e := new(TooNewError); !errors.As(err, &e) {
					t.Errorf("it says %v, want that the store is too new", err)
				}
			case "old":
				between := "with Kubernetes v1.35"
				if tc.stored.Format < oldestFormat {
					between = "an empty store"
				}
				if e := new(TooOldError); !errors.As(err, &e) || !strings.Contains(err.Error(), between) {
					t.Errorf("it says %v, want that argosy %s comes between", err, between)
				}
			}
			if err != nil && (!strings.Contains(err.Error(), tc.stored.String()) ||
				!strings.Contains(err.Error(), me.String())) {
				t.Errorf("%q does not name both", err)
			}
			if got := me.Succeeds(tc.stored); got != tc.succeeds {
				t.Errorf("it succeeds: %t, want %t", got, tc.succeeds)
			}
		})
	}
}

// Replicas of two versions, started in any order, come to one record and then write nothing.
func TestARecordComesToRest(t *testing.T) {
	var all []Writer
	for _, format := range []int{1, 2} {
		for _, kubernetes := range []string{"", "v1.35.1", "v1.36.3"} {
			for _, date := range []string{"", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"} {
				all = append(all, writer(format, kubernetes, date))
			}
		}
	}
	for _, a := range all {
		if a.Succeeds(a) {
			t.Errorf("%v succeeds itself", a)
		}
		for _, b := range all {
			if a.Succeeds(b) && b.Succeeds(a) {
				t.Errorf("%v and %v take turns", a, b)
			}
		}
	}
}
