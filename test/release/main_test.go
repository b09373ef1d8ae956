// Package release runs releases on a hub and members that are real API servers, with simulated OpenKruise. Pods and
// writes are counted from watch streams, so that nothing between two looks is missed. It prints a table of figures.
//
// The fleet has six members where the scenarios of the design have up to ten: more are too many for two cores.
package release

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit"
)

// startTimeout is how long a process may take to start while others start, too.
const startTimeout = 4 * time.Minute

var (
	// fleet is a hub and members m1 to m6. m6 is lost in one scenario, and no other uses it.
	fleet *kit.Fleet
	// streams are the watch streams of the fleet.
	streams *observer
	// table has the figures of all scenarios.
	table figures
)

// environments are the labels of the clusters.
var environments = map[string]string{"m1": "test", "m2": "pre", "m3": "pre", "m4": "prod", "m5": "prod", "m6": "lost"}

// hubArgs shorten the times after which a cluster counts as lost, and permit checks to call the tests.
var hubArgs = []string{"--cluster-failure-threshold=8s", "--cluster-success-threshold=2s",
	"--cluster-status-update-frequency=1s", "--horizontal-pod-autoscaler-sync-period=1s",
	"--release-check-networks=127.0.0.0/8"}

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "20"); err != nil { // most of the time, releases wait
		panic(err)
	}
	stop := func() {}
	kit.MainLong("release", func(dir string) (_ *kit.Fleet, err error) {
		o := lab.Options{Dir: filepath.Join(dir, "fleet"), HubArgs: hubArgs}
		for i := range len(environments) {
			o.Members = append(o.Members, sim.Member{Name: fmt.Sprintf("m%d", i+1), Nodes: 2})
		}
		if fleet, err = kit.StartWith(o); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		stop = cancel
		if err = label(ctx); err == nil {
			streams, err = observe(ctx, fleet)
		}
		if err != nil {
			cancel()
			_ = fleet.Stop()
		}
		return fleet, err
	}, func() int { defer func() { stop() }(); return m.Run() })
}

// label sets the label env of the clusters.
func label(ctx context.Context) error {
	for name, env := range environments {
		c := &clusterv1alpha1.Cluster{}
		c.Name = name
		if err := fleet.Hub.Patch(ctx, c, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"env":%q}}}`, env))); err != nil {
			return fmt.Errorf("label cluster %s: %w", name, err)
		}
	}
	return nil
}

// scenarios that share the fleet and leave it whole. They run at the same time.
var scenarios = map[string]func(*testing.T){
	"1 and 18: weights 1:2:7 stop at their shares, as planned":        weightsStopAtTheirShares,
	"2 and 6: environments wait for two approvals":                    environmentsWaitForApprovals,
	"3 and 18: one pod in each cluster, in batches, as planned":       batchesOfClusters,
	"4: a failure in pre goes back, and prod is never written":        failureGoesBack,
	"5: a rollback in reverse order touches the new pods alone":       rollbackTouchesNewPods,
	"8: a Prometheus without data and without an answer":              checkedByPrometheus,
	"10: a freeze, and an emergency in it":                            frozen,
	"11: pause, abort, and rollback after it":                         pausedAndAborted,
	"12: releases of one workload queue, and one replaces the others": releasesQueue,
	"12: five releases take turns under the limits of a guard":        limitedByGuard,
	"a guard without enough error budget":                             waitsForErrorBudget,
	"a guard records direct changes, or refuses them":                 directChangesAreRecorded,
	"13: scaling, and clusters that leave and join":                   scaledMeanwhile,
	"14: an autoscaler in a member":                                   autoscaledMeanwhile,
	"15: a lost cluster is skipped, and catches up":                   lostCluster,
	"19: targets depend on each other":                                dependentTargets,
	"19: ConfigMaps go with their image, and back":                    versionedConfig,
	"a stored revision comes back with its overrides":                 storedRevision,
	"I11: a deleted release holds its plan":                           deletedRelease,
	"the hub starts releases, and undoes no rollback":                 startedByTheHub,
	"20: an autoscaler scales while its workload migrates":            autoscaledWhileMigrated,
	"16: undisturbed": undisturbed,
}

func TestReleasesKeepToTheirStrategy(t *testing.T) {
	kit.Long(t)
	t.Run("shared", func(t *testing.T) {
		for name, run := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t)
			})
		}
	})
	t.Run("9: the hub is killed five times while a webhook judges", killedWhileJudged)
	t.Run("16 and 17: the hub is killed ten times, and the history is deleted", hubKilled)
	t.Run("20: six workloads migrate in and out, with a release in between", migratedInAndOut)
	t.Logf("\n%s", table.String())
}
