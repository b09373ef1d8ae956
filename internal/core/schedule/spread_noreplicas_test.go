package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// A policy that divides replicas may select a Service and a ConfigMap beside the workload.
func TestNoReplicasGoWhereReplicasMayBe(t *testing.T) {
	s := fleet(
		cluster("e1", located("acme", "eu", "eu-1"), labelled("rack", "r1")),
		cluster("e2", located("zeta", "eu", "eu-2"), labelled("rack", "r2")),
		cluster("u1", located("acme", "us", "us-1"), labelled("rack", "r1")),
	)
	both := cluster("m1", located("acme", "north"))
	for name, test := range map[string]struct {
		fleet     Snapshot
		placement policyv1alpha1.Placement
		want      string
	}{
		"guide 002: up to two regions, by weight": {
			fleet(both, cluster("m2", located("acme", "south"))),
			upTo(spreadBy(byWeight("m1=2 m2=1"), "region", 1, 2), 1, 0), "m1 m2"},
		"by room, all regions that are allowed":   {s, spreadBy(byAvailability(), "region", 1, 2), "e1 e2 u1"},
		"packed, all regions that are allowed":    {s, spreadBy(together(), "region", 1, 2), "e1 e2 u1"},
		"equal shares":                            {s, spreadBy(equally(), "region", 1, 2), "e1 e2 u1"},
		"by provider":                             {s, spreadBy(byWeight("e1=1 e2=1 u1=1"), "provider", 1, 2), "e1 e2 u1"},
		"by zone":                                 {s, spreadBy(together(), "zone", 1, 3), "e1 e2 u1"},
		"by label":                                {s, spreadBy(byAvailability(), "rack", 1, 2), "e1 e2 u1"},
		"the heaviest region, if one is allowed":  {s, spreadBy(byWeight("e1=1 u1=9"), "region", 1, 1), "u1"},
		"the heaviest cluster, if one is allowed": {s, upTo(byWeight("e1=1 u1=9"), 1, 1), "u1"},
		"clusters with a weight first":            {s, upTo(byWeight("e2=1 u1=9"), 1, 2), "e2 u1"},
		"others as far as allowed":                {s, upTo(byWeight("u1=9"), 1, 2), "e1 u1"},
		"other regions as far as allowed":         {s, spreadBy(byWeight("u1=9"), "region", 1, 2), "e1 e2 u1"},
		"other regions if they are required":      {s, spreadBy(byWeight("u1=9"), "region", 2, 2), "e1 e2 u1"},
		"packing ignores weights": {s, func() policyv1alpha1.Placement {
			p := upTo(together(), 1, 3)
			p.ReplicaScheduling.WeightPreference = byWeight("u1=1").ReplicaScheduling.WeightPreference
			return p
		}(), "e1 e2 u1"},
		"duplicated: as few regions as needed": {s, spreadBy(policyv1alpha1.Placement{}, "region", 1, 2), "e1 e2"},
		"no constraints, no limit":             {s, byWeight("u1=9"), "e1 e2 u1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := configMap(test.placement)
			if got := schedule(t, b, test.fleet, nil); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			if reason, due := Due(placed(b, test.want), test.fleet); due {
				t.Errorf("due again, because %s", reason)
			}
		})
	}
}

func TestNoReplicasJoinReplicasLater(t *testing.T) {
	s := fleet(cluster("m1", located("acme", "north")), cluster("m2", located("acme", "south")))
	p := spreadBy(byWeight("m1=2 m2=1"), "region", 1, 2)
	b := placed(configMap(p), "m1")
	if reason, due := Due(b, s); !due || reason != CandidatesChanged {
		t.Errorf("due: %t (%s), want that different clusters fit", due, reason)
	}
	if got := schedule(t, b, s, nil); got != "m1 m2" {
		t.Errorf("got %q", got)
	}
	if reason, due := Due(placed(components(deployment(0, p)), "m1"), s); due && reason != ReplicasChanged {
		t.Errorf("a workload with components is due, because %s", reason)
	}
}

// TestNoReplicasCoverEveryWorkload: a workload is only in clusters of what has no replicas, unless a maximum keeps that
// out of clusters that have room. What has no replicas leaves no cluster with a weight when another one joins.
func TestNoReplicasCoverEveryWorkload(t *testing.T) {
	var compared, bounded int
	rounds := uint64(12000)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		r := rng(seed)
		clusters, answers, workload := spreadWorld(r)
		s, p := fleet(clusters...), *workload.Spec.Placement
		if !p.DividesReplicas() {
			continue
		}
		at := fmt.Sprintf("seed %d: %s", seed, AppliedPlacement(&p))
		for _, c := range clusters {
			at += fmt.Sprintf("\n  %s: %s %s %v %v", c.Name, c.Spec.Provider, c.Spec.Region, c.Spec.Zones, c.Labels)
		}
		runs, err := Schedule(workload, s, Answers(answers))
		b := configMap(p)
		result, failure := Schedule(b, s, nil)
		if failure != nil {
			if err == nil {
				t.Fatalf("%s\nthe workload is in %q, the ConfigMap fails: %v", at, targetList(runs.Clusters), failure)
			}
			continue
		}
		at += fmt.Sprintf("\nthe ConfigMap is in %q", targetList(result.Clusters))
		full := atMaximum(&p, s, result.Clusters)
		for _, c := range runs.Clusters {
			compared++
			if workv1alpha2.HasTarget(result.Clusters, c.Name) {
				continue
			}
			if bounded++; strategyOf(&workload.Spec) == static || !full {
				t.Fatalf("%s\nthe workload is in %q", at, targetList(runs.Clusters))
			}
		}
		stays := func(s Snapshot) {
			t.Helper()
			if why := violated(&p, usedBy(s, result.Clusters), 1<<30); why != "" {
				t.Fatalf("%s\nviolates a constraint: %s", at, why)
			}
			record(b, result, nil, time.Unix(100, 0))
			if reason, due := Due(b, s); due {
				t.Fatalf("%s\ndue again, because %s", at, reason)
			}
			if again := schedule(t, b, s, nil); again != targetList(result.Clusters) {
				t.Fatalf("%s\na second run gives %q", at, again)
			}
		}
		stays(s)
		more := fleet(append(slices.Clone(clusters), cluster("new", located("p0", "r0", "z0"), labelled("rack", "0")))...)
		next, err := Schedule(b, more, nil)
		if err != nil {
			t.Fatalf("%s\nfails when a cluster joins: %v", at, err)
		}
		at += fmt.Sprintf(", and with one more cluster in %q", targetList(next.Clusters))
		for _, was := range result.Clusters {
			light := p.ReplicaScheduling.WeightPreference != nil && strategyFor(&p) == static &&
				staticWeight(&b.Spec, s.member(was.Name)) <= 0
			if !light && !workv1alpha2.HasTarget(next.Clusters, was.Name) {
				t.Fatalf("%s\nit leaves %s", at, was.Name)
			}
		}
		result = next
		stays(more)
	}
	if compared < int(rounds/3) || bounded == 0 || bounded > compared/3 {
		t.Errorf("%d clusters were compared, of which maxima excluded %d", compared, bounded)
	}
}

// usedBy returns the targets as candidates.
func usedBy(s Snapshot, targets []workv1alpha2.TargetCluster) (used []Candidate) {
	for _, c := range targets {
		used = append(used, Candidate{Cluster: s.Cluster(c.Name)})
	}
	return used
}

// atMaximum reports whether one more cluster of the fleet would violate a maximum.
func atMaximum(p *policyv1alpha1.Placement, s Snapshot, targets []workv1alpha2.TargetCluster) bool {
	for _, name := range s.Names() {
		if !workv1alpha2.HasTarget(targets, name) &&
			violated(p, append(usedBy(s, targets), Candidate{Cluster: s.Cluster(name)}), 1<<30) != "" {
			return true
		}
	}
	return false
}
