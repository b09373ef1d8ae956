package schedule

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// TestClustersWithoutRoomForACopyComeLast places three replicas in each chosen cluster.
func TestClustersWithoutRoomForACopyComeLast(t *testing.T) {
	none := policyv1alpha1.Placement{}
	s := fleet(cluster("a", located("p1", "r1", "")), cluster("b", located("p1", "r1", "")),
		cluster("c", located("p1", "r2", "")), cluster("d", located("p2", "r2", "")), cluster("e", located("p2", "r3", "")))
	for name, c := range map[string]struct {
		spread     policyv1alpha1.Placement
		room, want string
	}{
		"one of five":             {upTo(none, 1, 1), "a=0 b=2 c=0 d=3 e=1", "d=3"},
		"two of five":             {upTo(none, 1, 2), "a=0 b=2 c=4 d=3 e=1", "c=3 d=3"},
		"unknown room":            {upTo(none, 1, 2), "a=0 b=2 c=0 e=3", "d=3 e=3"},
		"too few have room":       {upTo(none, 2, 2), "a=0 b=0 c=0 d=3 e=0", "a=3 d=3"},
		"none has room":           {upTo(none, 1, 1), "a=0 b=0 c=0 d=0 e=0", "a=3"},
		"none has room for all":   {upTo(none, 1, 1), "a=0 b=1 c=2 d=1 e=0", "c=3"},
		"no constraint":           {none, "a=0 b=0 c=0 d=3 e=0", "a=3 b=3 c=3 d=3 e=3"},
		"one region":              {spreadBy(none, "region", 1, 1), "a=0 b=0 c=3 d=3 e=1", "c=3 d=3"},
		"one cluster of a region": {spreadBy(upTo(none, 1, 2), "region", 2, 2), "a=0 b=3 c=0 d=3 e=0", "b=3 d=3"},
		"a second region has room": {spreadBy(upTo(none, 1, 2), "region", 1, 2),
			"a=0 b=3 c=0 d=3 e=0", "b=3 d=3"},
		"one region is enough": {spreadBy(upTo(none, 1, 2), "region", 1, 2), "a=3 b=3 c=0 d=3 e=0", "a=3 b=3"},
		"regions and providers": {spreadBy(spreadBy(upTo(none, 1, 2), "region", 1, 3), "provider", 1, 2),
			"a=3 b=0 c=0 d=0 e=3", "a=3 e=3"},
	} {
		if got := schedule(t, deployment(3, c.spread), s, room(c.room)); got != c.want {
			t.Errorf("%s: with room for %s, it goes to %s, want %s", name, c.room, got, c.want)
		}
		if again := schedule(t, placed(deployment(3, c.spread), c.want), s, room("a=9 b=9 c=9 d=9 e=9")); again != c.want {
			t.Errorf("%s: when others have room, it goes from %s to %s", name, c.want, again)
		}
	}
}

// TestNoClusterWithRoomIsLeftOutForOneWithout tries random fleets: no exchange of two clusters may satisfy the same
// constraints with more room.
func TestNoClusterWithRoomIsLeftOutForOneWithout(t *testing.T) {
	exchanges := 0
	for seed := range uint64(3000) {
		r := rng(seed)
		n := 2 + r.IntN(6)
		var clusters []*clusterv1alpha1.Cluster
		answers, regions := map[string]int32{}, map[string]string{}
		for i := range n {
			name := string(rune('a' + i))
			regions[name], answers[name] = fmt.Sprintf("r%d", r.IntN(3)), []int32{0, 1, 3, 9}[r.IntN(4)]
			clusters = append(clusters, cluster(name, located("", regions[name], "")))
		}
		most, groups := 1+r.IntN(n), 1+r.IntN(3)
		least := 1 + r.IntN(groups)
		p := spreadBy(upTo(policyv1alpha1.Placement{}, 1+r.IntN(most), most), "region", least, groups)
		result, err := Schedule(deployment(3, p), fleet(clusters...), Answers(answers))
		if err != nil {
			continue
		}
		in := func(names []string) int { // the regions of clusters
			of := map[string]bool{}
			for _, name := range names {
				of[regions[name]] = true
			}
			return len(of)
		}
		for _, out := range result.Clusters {
			for _, other := range slices.Sorted(maps.Keys(answers)) {
				if answers[out.Name] >= 3 || answers[other] < 3 || workv1alpha2.HasTarget(result.Clusters, other) {
					continue
				}
				exchanged := []string{other}
				for _, c := range result.Clusters {
					if c.Name != out.Name {
						exchanged = append(exchanged, c.Name)
					}
				}
				exchanges++
				if n := in(exchanged); n >= least && n <= groups {
					t.Errorf("seed %d: it goes to %s, and %s instead of %s has room: %v in %v", seed, targetList(result.Clusters),
						other, out.Name, answers, regions)
				}
			}
		}
	}
	if exchanges < 300 {
		t.Errorf("%d exchanges were tried, want more", exchanges)
	}
}
