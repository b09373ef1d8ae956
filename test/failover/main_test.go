// Package failover breaks member clusters, their network and the hub, and checks that no workload is lost:
// replacements start elsewhere, no copy is deleted before its replacement is ready, and nothing runs twice in the
// end. It prints a table of what was measured.
package failover

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

const (
	// home is the member that takes over from all others. Its nodes are too small for the workload that fits nowhere
	// else.
	home = "home"
	// tolerated is how long workloads tolerate that their cluster is lost. It is the least that the hub allows.
	tolerated = 30 * time.Second
	// startTimeout is how long a process may take to start while others start, too.
	startTimeout = 4 * time.Minute
)

var (
	// fleet is a hub and the member home. Each fault has a member of its own beside it.
	fleet *kit.Fleet
	// folder has all that the fleets write. It stays if a test fails.
	folder string
	// table has a row for each fault.
	table figures
)

// hubArgs shorten the times of the hub. Only the share of lost clusters that pauses failover differs between the
// fleets.
func hubArgs(brakeShare string) []string {
	return []string{
		"--cluster-failure-threshold=4s", "--cluster-success-threshold=4s", "--cluster-status-update-frequency=1s",
		"--default-not-ready-toleration-seconds=30", "--default-unreachable-toleration-seconds=30",
		"--failover-brake-share=" + brakeShare,
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "20"); err != nil { // all faults at once: most of the time they wait
		panic(err)
	}
	kit.MainLong("failover", func(dir string) (_ *kit.Fleet, err error) {
		folder = dir
		// Most members of this fleet are lost at some time, each for a reason of its own: nothing may pause failover.
		fleet, err = kit.StartWith(lab.Options{Dir: filepath.Join(dir, "fleet"), HubArgs: hubArgs("1"),
			Members: []sim.Member{{Name: home, Nodes: 3}}})
		if err == nil {
			err = os.Setenv("ARGOSY_BINARY", fleet.Lab.Hub.Binary) // the second fleet needs no build
		}
		return fleet, err
	}, m.Run)
}

// within is a context for something that starts.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func TestNoFaultLosesAWorkload(t *testing.T) {
	kit.Long(t)
	t.Run("faults", func(t *testing.T) {
		for name, run := range faults {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t)
			})
		}
	})
	// It starts six servers at once, which starve beside those of the others.
	t.Run("four members", fourMembers)
	t.Logf("\n%s", table.String())
}
