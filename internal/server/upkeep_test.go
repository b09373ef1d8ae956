package server

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
)

// `argosy status` and the console list the same problems of the hub.
func TestProblemsOfAHubIncludeWhatARestoreLeft(t *testing.T) {
	h := Health{Findings: []upkeep.Finding{{Name: "store", Message: "it is full"}}}
	if got := h.Problems(); len(got) != 1 {
		t.Errorf("without a restore, the problems are %+v", got)
	}
	h.Held, h.Orphans = 2, map[string]int{"us": 1, "eu": 3}
	got := h.Problems()
	if len(got) != 3 || got[1].Name != "restore" || got[2].Name != "orphans" ||
		got[2].Message != "clusters have objects that the hub does not know: 3 in eu, 1 in us" || len(h.Findings) != 1 {
		t.Errorf("the problems are %+v", got)
	}
}
