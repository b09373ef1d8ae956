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
		ended, record = addRun(record, run)
		if want := all[max(0, len(all)-keptRuns+1):]; !slices.Equal(ended, want) {
			t.Fatalf("before %s, the record has %v, want %v", run, ended, want)
		}
		all = append(all, run)
	}
}

func TestRecordOfAnEarlierVersionHasOneRun(t *testing.T) {
	if ended, _ := addRun("former\n", "next"); !slices.Equal(ended, []string{"former"}) {
		t.Errorf("it has %v", ended)
	}
}
