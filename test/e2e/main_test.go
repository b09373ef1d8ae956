// Package e2e tells what users do with a fleet, and what they see: on a hub and members that are real API servers.
package e2e

import (
	"flag"
	"testing"

	"github.com/argosy-io/argosy/test/kit"
)

// fleet is what all tests share: a hub, and members m1, m2 and m3. A test keeps to a namespace of its own, and leaves
// members as they were.
var fleet *kit.Fleet

// parallel is how many tests run side by side: some wait, and some keep two cores busy.
const parallel = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	kit.Main("e2e", func(dir string) (_ *kit.Fleet, err error) {
		fleet, err = kit.Start(dir, "m1", "m2", "m3")
		return fleet, err
	}, m.Run)
}
