// Package faults breaks a fleet while it works, and holds it to what must survive: everything converges, nothing is lost or
// made twice, and no object that should stay in a member leaves it, not even for a moment.
package faults

import (
	"fmt"
	"os"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// fleet is what all tests share, one after the other: a hub, and members f1 and f2.
var fleet *kit.Fleet

var members = []string{"f1", "f2"}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "argosy-faults-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if fleet, err = kit.Start(dir, members...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := fleet.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the fleet:", err)
			code = 1
		}
		if code != 0 {
			fmt.Fprintln(os.Stderr, "the logs are in", dir)
			return code
		}
		_ = os.RemoveAll(dir) // a temporary folder; what is left of it harms nobody
		return 0
	}())
}
