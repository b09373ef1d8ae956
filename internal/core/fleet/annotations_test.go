package fleet_test

import (
	"os"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/core/fleet"
)

func TestWhatUsersMaySayIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/openkruise.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range fleet.HubAnnotations() {
		if !strings.Contains(string(text), "| `"+key+"` |") {
			t.Errorf("docs/openkruise.md has no row for %s", key)
		}
	}
}
