// Package faults breaks a fleet while it works, and holds it to what must survive: everything converges, nothing is
// lost or made twice, and no object that should stay in a member leaves it, not even for a moment.
package faults

import (
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// fleet is what all tests share, one after the other: a hub, and members f1 and f2.
var fleet *kit.Fleet

var members = []string{"f1", "f2"}

func TestMain(m *testing.M) {
	kit.MainLong("faults", func(dir string) (_ *kit.Fleet, err error) {
		fleet, err = kit.Start(dir, members...)
		return fleet, err
	}, m.Run)
}
