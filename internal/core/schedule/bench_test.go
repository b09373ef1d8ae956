package schedule

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// benchFleet has n clusters as they are in practice: 120 kinds each, labels, a region, a summary of resources.
func benchFleet(n int) []*clusterv1alpha1.Cluster {
	clusters := make([]*clusterv1alpha1.Cluster, n)
	for i := range clusters {
		c := cluster(fmt.Sprintf("member-%04d", i), labelled("env", []string{"prod", "test"}[i%2]),
			located("acme", fmt.Sprintf("region-%d", i%5), "z1", "z2"),
			free(fmt.Sprintf("cpu=%d memory=%dGi pods=%d", 200+i%37, 900+i%53, 3000+i%71)))
		for g := range 20 {
			e := clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprintf("group-%d.example.com/v1", g)}
			for k := range 6 {
				e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Name: fmt.Sprintf("kinds%d", k),
					Kind: fmt.Sprintf("Kind%d", k)})
			}
			c.Status.APIEnablements = append(c.Status.APIEnablements, e)
		}
		c.ResourceVersion = fmt.Sprint(i)
		clusters[i] = c
	}
	return clusters
}

func benchBinding(p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	b := deployment(500, p)
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: quantities("cpu=100m memory=128Mi")}
	return b
}

// decisionsPerSecond reports how many runs a second of wall time and of this process' CPU time make: what else the
// machine does takes from the one, hardly from the other.
func decisionsPerSecond(b *testing.B, run func()) {
	b.ReportAllocs()
	before := cpu()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(b.N)/(cpu()-before).Seconds(), "decisions/cpu-s")
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it is always there
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSchedule is a whole run, with the room estimated from the summaries.
func BenchmarkSchedule(b *testing.B) {
	byLabel := func(p policyv1alpha1.Placement) policyv1alpha1.Placement {
		p.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"env": "prod"}}}
		return p
	}
	weights := equally()
	weights.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{}
	for i := range 100 {
		weights.ReplicaScheduling.WeightPreference.StaticWeightList = append(
			weights.ReplicaScheduling.WeightPreference.StaticWeightList,
			policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{fmt.Sprintf(
				"member-%04d", i)}}, Weight: int64(1 + i%7)})
	}
	for _, n := range []int{10, 100, 1000} {
		s := NewSnapshot(benchFleet(n))
		for name, p := range map[string]policyv1alpha1.Placement{
			"dynamic":        byAvailability(),
			"dynamic-labels": byLabel(byAvailability()),
			"dynamic-max10":  upTo(byAvailability(), 1, 10),
			"regions":        upTo(spreadBy(byAvailability(), "region", 2, 3), 2, 10),
			"regions-copied": spreadBy(policyv1alpha1.Placement{}, "region", 2, 3),
			"region-zone":    upTo(spreadBy(spreadBy(together(), "region", 2, 0), "zone", 1, 2), 2, 0),
			"label":          spreadBy(byAvailability(), "env", 1, 2),
			"static-regions": spreadBy(weights, "region", 2, 2),
			"aggregated":     together(),
			"static-each":    weights,
			"duplicated":     {},
			"three-by-name":  restrictedTo(byAvailability(), "member-0001", "member-0004", "member-0007"),
		} {
			binding := benchBinding(p)
			b.Run(fmt.Sprintf("%s/clusters=%d", name, n), func(b *testing.B) {
				decisionsPerSecond(b, func() {
					if _, err := Schedule(binding, s, s.Room(binding)); err != nil {
						b.Fatal(err)
					}
				})
			})
		}
	}
}

// BenchmarkSpreadHard is runs that a search must look far for: many groups, and little room in them, or none.
func BenchmarkSpreadHard(b *testing.B) {
	for _, n := range []int{100, 1000} {
		clusters := benchFleet(n)
		answers := map[string]int32{}
		for i, c := range clusters {
			c.Spec.Region, c.Spec.Zones = fmt.Sprintf("region-%d", i%(n/10)), []string{fmt.Sprintf("zone-%d", i%(n/4))}
			labelled("rack", fmt.Sprint(i%50))(c)
			answers[c.Name] = int32(1 + i*7%10)
		}
		s := NewSnapshot(clusters)
		most := int32(0)
		for _, c := range clusters {
			most += answers[c.Name]
		}
		for name, test := range map[string]struct {
			p        policyv1alpha1.Placement
			replicas int32
		}{
			"many-groups":          {spreadBy(byAvailability(), "region", 3, 5), 60},
			"many-groups-clusters": {upTo(spreadBy(byAvailability(), "region", 3, 5), 3, 10), 60},
			"no-room-in-clusters":  {upTo(byAvailability(), 3, 10), 500},
			"no-room-in-groups":    {spreadBy(byAvailability(), "region", 3, 5), most / 2},
			"no-room-anywhere":     {upTo(spreadBy(byAvailability(), "region", 3, 5), 3, 10), 500},
			"hardly-room":          {upTo(spreadBy(byAvailability(), "region", 3, 5), 3, 10), 98},
			"two-groupings":        {upTo(spreadBy(spreadBy(byAvailability(), "region", 2, 4), "rack", 2, 4), 2, 8), 40},
			"two-groupings-full":   {upTo(spreadBy(spreadBy(byAvailability(), "region", 2, 4), "rack", 2, 4), 2, 8), 81},
			"zones-and-racks":      {spreadBy(spreadBy(together(), "zone", 2, 3), "rack", 4, 6), 30},
			"min-groups":           {spreadBy(byAvailability(), "rack", 30, 0), 100},
		} {
			binding := deployment(test.replicas, test.p)
			b.Run(fmt.Sprintf("%s/clusters=%d", name, n), func(b *testing.B) {
				decisionsPerSecond(b, func() {
					_, err := Schedule(binding, s, Answers(answers))
					_ = err // some of these cannot be
				})
			})
		}
	}
}

// BenchmarkScale adds replicas to a workload that is placed everywhere already.
func BenchmarkScale(b *testing.B) {
	s := NewSnapshot(benchFleet(100))
	binding := benchBinding(byAvailability())
	r, err := Schedule(binding, s, s.Room(binding))
	if err != nil {
		b.Fatal(err)
	}
	binding.Spec.Clusters, binding.Spec.Replicas = r.Clusters, 700
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Schedule(binding, s, s.Room(binding)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDue asks about bindings for which there is nothing to do.
func BenchmarkDue(b *testing.B) {
	s := NewSnapshot(benchFleet(100))
	for name, p := range map[string]policyv1alpha1.Placement{"divided": byAvailability(), "duplicated": {}} {
		binding := benchBinding(p)
		r, err := Schedule(binding, s, s.Room(binding))
		record(binding, r, err, time.Unix(100, 0))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if reason, due := Due(binding, s); due {
					b.Fatal(reason)
				}
			}
		})
	}
}

// BenchmarkAffects asks about a cluster's change that does not matter.
func BenchmarkAffects(b *testing.B) {
	clusters := benchFleet(1)
	binding := placed(benchBinding(byAvailability()), "member-0000=500")
	b.ReportAllocs()
	for b.Loop() {
		if Affects(binding, clusters[0], clusters[0], Plugins{}) {
			b.Fatal("affected")
		}
	}
}

// BenchmarkSnapshot is one cluster's change in a fleet of a hundred.
func BenchmarkSnapshot(b *testing.B) {
	clusters := benchFleet(100)
	s := NewSnapshot(clusters)
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NewSnapshot(clusters)
		}
	})
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			clusters[7] = clusters[7].DeepCopy()
			clusters[7].ResourceVersion = fmt.Sprint(1000 + i)
			s = s.Next(clusters)
		}
	})
}

func BenchmarkApportion(b *testing.B) {
	for _, total := range []int32{10, 1_000_000} {
		shares := make([]Share, 100)
		for i := range shares {
			shares[i] = Share{Name: fmt.Sprintf("member-%04d", i), Weight: int64(100 + i*37%91)}
		}
		b.Run(fmt.Sprintf("seats=%d", total), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Apportion(total, shares, evenUID)
			}
		})
	}
}
