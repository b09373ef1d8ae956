package server

import (
	"fmt"
	"slices"
	"testing"
)

func TestEndedRunsAreKeptUpToALimit(t *testing.T) {
	record := ""
	var all []string
	for n := range keptRuns + 3 {
		run := fmt.Sprintf("run-%d", n)
		var ended []string
		ended, record = addRun(record, "", run)
		if want := all[max(0, len(all)-keptRuns+1):]; !slices.Equal(ended, want) {
			t.Fatalf("before %s, the record has %v, want %v", run, ended, want)
		}
		all = append(all, run)
	}
}

func TestRecordOfAnEarlierVersionHasOneRun(t *testing.T) {
	ended, added := addRun("", "former\n", "next")
	if !slices.Equal(ended, []string{"former"}) || added != "former\nnext\n" {
		t.Errorf("it has %v, and then %q", ended, added)
	}
	// The earlier version ran in between.
	if ended, _ := addRun(added, "between\n", "last"); !slices.Equal(ended, []string{"former", "next", "between"}) {
		t.Errorf("it has %v", ended)
	}
}
