package fleet

import (
	"fmt"
	"github.com/argosy-io/argosy/api/wellknown"
	"math/rand"
	"strings"
	"testing"
	"time"
)

// guarded is a fleet whose pods a budget protects. Each member evicts as long as the budget that it has seen lets it.
type guarded struct {
	*hub
	pods, down []int64
	// allows is what the budget in the member says now.
	allows []int64
}

func newGuarded(t testing.TB, maxUnavailable string, pods ...int64) *guarded {
	g := &guarded{hub: newHub(t, "{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, "+fleetWide+
		", spec: {maxUnavailable: "+maxUnavailable+"}}", pods...),
		pods: pods, down: make([]int64, len(pods)), allows: make([]int64, len(pods))}
	g.in.Divided = false
	g.in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	g.look()
	g.rest()
	return g
}

// sendReport sets the status of member i as its controllers would.
func (g *guarded) sendReport(i int) {
	g.t.Helper()
	all := make([]string, len(g.pods))
	for k := range all {
		all[k] = silent
	}
	all[i] = fmt.Sprintf("totalReplicas: %d, currentAvailable: %d", g.pods[i], g.pods[i]-g.down[i])
	g.report(all...)
	g.allows[i] = g.granted()[i]
}

func (g *guarded) granted() (all []int64) {
	for _, text := range strings.Fields(g.fieldValues("spec", "maxUnavailable")) {
		var n int64
		if _, err := fmt.Sscan(text, &n); err != nil {
			g.t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// rest tells and looks until nothing changes.
func (g *guarded) rest() {
	g.t.Helper()
	for range 20 {
		before := g.writes
		for i := range g.pods {
			g.sendReport(i)
		}
		if g.look(); g.writes == before {
			return
		}
	}
	g.t.Fatalf("it does not come to rest: %s", g.fieldValues("spec", "maxUnavailable"))
}

func (g *guarded) expectGrants(when, want string) {
	g.t.Helper()
	if got := g.fieldValues("spec", "maxUnavailable"); got != want {
		g.t.Errorf("%s, maxUnavailable is %s, want %s", when, got, want)
	}
}

// exposed is how many pods may be down: those that are, and those that may be evicted.
func (g *guarded) exposed() (n int64) {
	for i := range g.pods {
		n += max(g.allows[i], g.down[i])
	}
	return n
}

func TestClustersTakeTurnsWithASmallBudget(t *testing.T) {
	g := newGuarded(t, "1", 3, 3, 3)
	g.expectGrants("at first", "1 0 0")
	if g.recheck != time.Minute {
		t.Errorf("looked at again after %v, want after a turn", g.recheck)
	}
	turn := func() {
		g.in.Now = g.in.Now.Add(time.Minute)
		g.rest()
	}
	turn()
	g.expectGrants("after a turn", "0 1 0")
	turn()
	g.expectGrants("after another", "0 0 1")
	turn()
	g.expectGrants("after all had theirs", "1 0 0")

	g.down[0] = 1
	turn()
	turn()
	g.expectGrants("while pods go in its cluster", "1 0 0")
	g.down[0] = 0
	g.rest()
	g.expectGrants("when they are back", "0 1 0")
}

func TestReturnedBudgetIsGrantedOnceObserved(t *testing.T) {
	g := newGuarded(t, "1", 3, 3)
	g.in.Now = g.in.Now.Add(time.Minute)
	g.look()
	g.expectGrants("as long as the first has not seen it", "0 0")
	g.look()
	g.expectGrants("as long as the first has not seen it, looked at again", "0 0")
	g.sendReport(0)
	g.look()
	g.expectGrants("when it has", "0 1")
}

func TestUnavailablePodsStopEvictionsElsewhere(t *testing.T) {
	g := newGuarded(t, "2", 3, 3, 3)
	g.expectGrants("at first", "1 1 0")
	g.down[2] = 2
	g.rest()
	g.expectGrants("when the third has lost two pods, none of which it may evict", "0 0 1")
	g.down[2] = 0
	g.rest()
	if n := sum(g.granted()); n != 2 {
		t.Errorf("when they are back, maxUnavailable is %v", g.granted())
	}

	lost := newGuarded(t, "2", 3, 3, 3)
	lost.in.Members[2].Reachable = false
	lost.rest()
	lost.expectGrants("when the third does not answer", "0 0 0")
	lost.edit("Ignore", "metadata", "annotations", wellknown.UnreachableClustersAnnotation)
	lost.rest()
	lost.expectGrants("when that is to count as nothing", "1 1 0")
}

func TestABudgetOfOneForEachIsDividedByPods(t *testing.T) {
	g := newGuarded(t, `"20%"`, 10, 5, 5)
	g.expectGrants("a fifth of twenty", "2 1 1")
	g.pods[1] = 4
	g.rest()
	g.expectGrants("a pod less moves nothing", "2 1 1")
	g.edit(int64(8), "spec", "maxUnavailable")
	g.rest()
	g.expectGrants("another budget is divided anew", "4 2 2")
}

// Whatever happens and whenever it is seen, no more pods may go than the budget says beyond those that are down by
// themselves.
func TestABudgetIsKeptHoweverLateMembersSeeIt(t *testing.T) {
	rounds := int64(40)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		random := rand.New(rand.NewSource(seed))
		pods := make([]int64, 2+random.Intn(5))
		for i := range pods {
			pods[i] = random.Int63n(5)
		}
		budget := 1 + random.Int63n(5)
		g := newGuarded(t, fmt.Sprint(budget), pods...)
		had := make([]bool, len(pods))
		for step := range 200 {
			i := random.Intn(len(pods))
			switch random.Intn(6) {
			case 0, 1:
				g.in.Now = g.in.Now.Add(time.Duration(random.Intn(40)) * time.Second)
				g.look()
			case 2, 3:
				g.sendReport(i)
			case 4: // an eviction, which the member's budget lets pass
				if g.down[i] < min(g.allows[i], g.pods[i]) {
					g.down[i]++
				}
			default: // a pod is back
				g.down[i] = max(0, g.down[i]-1)
			}
			if n := g.exposed(); n > budget {
				t.Fatalf("seed %d, step %d: %d pods may be down where %d may; allowed %v, down %v, granted %v", seed, step, n,
					budget, g.allows, g.down, g.granted())
			}
		}
		// When all is quiet, everybody has a turn.
		clear(g.down)
		for range 3 * len(pods) {
			g.in.Now = g.in.Now.Add(time.Minute)
			g.rest()
			for i, n := range g.granted() {
				had[i] = had[i] || n > 0
			}
			if all := sum(g.granted()); all != min(budget, sum(pods)) {
				t.Fatalf("seed %d: %v of a budget of %d of %v", seed, g.granted(), budget, pods)
			}
		}
		for i, ok := range had {
			if !ok && pods[i] > 0 {
				t.Fatalf("seed %d: cluster %d of %v never had a turn with a budget of %d", seed, i+1, pods, budget)
			}
		}
	}
}
