package main

import (
	"context"
	"testing"
)

func TestScriptsAreMeasured(t *testing.T) {
	rows, err := scripts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Logf("%s: %.1f %s", r.Work, r.Value, r.Unit)
	}
	if len(rows) != 2 || rows[0].Must != 10 || rows[1].Value == 0 {
		t.Errorf("got %+v, want a row that must be reached and one to compare it with", rows)
	}
}
