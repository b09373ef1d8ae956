package schedule

import (
	"fmt"
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
			in("acme", fmt.Sprintf("region-%d", i%5), "z1", "z2"),
			free(fmt.Sprintf("cpu=%d memory=%dGi pods=%d", 200+i%37, 900+i%53, 3000+i%71)))
		for g := range 20 {
			e := clusterv1alpha1.APIEnablement{GroupVersion: fmt.Sprintf("group-%d.example.com/v1", g)}
			for k := range 6 {
				e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Name: fmt.Sprintf("kinds%d", k), Kind: fmt.Sprintf("Kind%d", k)})
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

// BenchmarkSchedule is a whole run, with the room estimated from the summaries.
func BenchmarkSchedule(b *testing.B) {
	byLabel := func(p policyv1alpha1.Placement) policyv1alpha1.Placement {
		p.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
		return p
	}
	weights := equally()
	weights.ReplicaScheduling.WeightPreference = &policyv1alpha1.ClusterPreferences{}
	for i := range 100 {
		weights.ReplicaScheduling.WeightPreference.StaticWeightList = append(weights.ReplicaScheduling.WeightPreference.StaticWeightList,
			policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{fmt.Sprintf("member-%04d", i)}}, Weight: int64(1 + i%7)})
	}
	for _, n := range []int{10, 100, 1000} {
		s := NewSnapshot(benchFleet(n))
		for name, p := range map[string]policyv1alpha1.Placement{
			"dynamic":        byAvailability(),
			"dynamic-labels": byLabel(byAvailability()),
			"dynamic-max10":  upTo(byAvailability(), 1, 10),
			"regions":        upTo(by(byAvailability(), "region", 2, 3), 2, 10),
			"regions-copied": by(policyv1alpha1.Placement{}, "region", 2, 3),
			"region-zone":    upTo(by(by(together(), "region", 2, 0), "zone", 1, 2), 2, 0),
			"label":          by(byAvailability(), "env", 1, 2),
			"static-regions": by(weights, "region", 2, 2),
			"aggregated":     together(),
			"static-each":    weights,
			"duplicated":     {},
			"three-by-name":  only(byAvailability(), "member-0001", "member-0004", "member-0007"),
		} {
			binding := benchBinding(p)
			b.Run(fmt.Sprintf("%s/clusters=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Schedule(binding, s, s.Room(binding)); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
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
		if Affects(binding, clusters[0], clusters[0]) {
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
