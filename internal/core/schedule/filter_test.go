package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
)

func TestFilter(t *testing.T) {
	const maintenance = "maintenance"
	tolerating := func(list ...corev1.Toleration) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{ClusterTolerations: list}
	}
	spreadBy := func(field policyv1alpha1.SpreadFieldValue) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: field}}}
	}
	partlyDiscovered := func(c *clusterv1alpha1.Cluster) {
		c.Status.APIEnablements = c.Status.APIEnablements[1:]
		c.Status.Conditions[0].Status = metav1.ConditionFalse
	}
	otherVersion := func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements[0].GroupVersion = "apps/v1beta1" }
	otherGroup := func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements[0].GroupVersion = "apps.kruise.io/v1" }

	for name, test := range map[string]struct {
		cluster   *clusterv1alpha1.Cluster
		placement policyv1alpha1.Placement
		target    bool
		anew      bool
		leaving   bool
		want      string
	}{
		"a plain cluster fits a plain placement": {cluster: cluster("m")},
		"a cluster that the policy does not name": {cluster: cluster("m"),
			placement: restrictedTo(policyv1alpha1.Placement{}, "n"), want: "cluster(s) " + string(ReasonAffinity)},
		"what a policy never meant is not blamed on taints": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoSchedule)), placement: restrictedTo(policyv1alpha1.Placement{}, "n"),
			want: "cluster(s) " + string(ReasonAffinity)},
		"a taint": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoSchedule)),
			want: "cluster(s) had untolerated taint {maintenance:NoSchedule}"},
		"a taint that is tolerated": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoSchedule)),
			placement: tolerating(corev1.Toleration{Key: maintenance, Operator: corev1.TolerationOpExists})},
		"a toleration of another effect": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoSchedule)),
			placement: tolerating(corev1.Toleration{Key: maintenance, Effect: corev1.TaintEffectNoExecute}),
			want:      "cluster(s) had untolerated taint {maintenance:NoSchedule}"},
		"a toleration of everything": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoExecute)),
			placement: tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})},
		"PreferNoSchedule keeps nothing away": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectPreferNoSchedule))},
		"a NoSchedule taint does not drive out what is there": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoSchedule)), target: true},
		"nor does a NoExecute taint": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoExecute)), target: true},
		"but for a new placement that was asked for": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoExecute)), target: true, anew: true,
			want: "cluster(s) had untolerated taint {maintenance:NoExecute}"},
		"... from which a NoSchedule taint keeps nothing": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoSchedule)), target: true, anew: true},
		"a NoExecute taint keeps new placements out": {cluster: cluster("m",
			tainted(maintenance, corev1.TaintEffectNoExecute)),
			want: "cluster(s) had untolerated taint {maintenance:NoExecute}"},
		"a kind that the cluster does not serve": {cluster: cluster("m", otherGroup), want: "cluster(s) " +
			string(ReasonAPI)},
		"a kind served in another version is served": {cluster: cluster("m", otherVersion)},
		"a kind that disappeared, by a complete discovery": {cluster: cluster("m", otherGroup), target: true,
			want: "cluster(s) " + string(ReasonAPI)},
		"a kind not discovered does not drive out what is there": {cluster: cluster("m", partlyDiscovered), target: true},
		"a kind not discovered yet": {cluster: cluster("m", undiscovered), want: "cluster(s) " +
			string(ReasonAPI)},
		"spread by region over a cluster without one": {cluster: cluster("m"),
			placement: spreadBy(policyv1alpha1.SpreadByFieldRegion), want: "cluster(s) " + string(ReasonRegion)},
		"spread by provider over a cluster without one": {cluster: cluster("m"),
			placement: spreadBy(policyv1alpha1.SpreadByFieldProvider), want: "cluster(s) " + string(ReasonProvider)},
		"spread by zone over a cluster without any": {cluster: cluster("m"),
			placement: spreadBy(policyv1alpha1.SpreadByFieldZone), want: "cluster(s) " + string(ReasonZones)},
		"a cluster that the template is being evicted from": {cluster: cluster("m"), leaving: true, want: "cluster(s) " +
			string(ReasonEviction)},
		"... also when the cluster is a target": {cluster: cluster("m"), leaving: true, target: true,
			want: "cluster(s) " + string(ReasonEviction)},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployment(1, test.placement)
			if test.target {
				b.Spec.Clusters = targets("m=1")
			}
			if test.anew {
				b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: b.CreationTimestamp.Add(time.Minute)}
			}
			if test.leaving {
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m"}}
			}
			candidates, rejections := Feasible(b, fleet(test.cluster))
			got := ""
			if len(candidates) == 0 {
				got = rejections[0].Text()
			}
			if got != test.want {
				t.Errorf("rejected because %q, want %q", got, test.want)
			}
		})
	}
}

func TestTheMessageOfNoFitCountsClustersByReason(t *testing.T) {
	s := fleet(
		cluster("a", tainted("down", corev1.TaintEffectNoSchedule)),
		cluster("b", tainted("down", corev1.TaintEffectNoSchedule)),
		cluster("c", undiscovered), cluster("d"), cluster("e", leaving),
	)
	_, err := Schedule(deployment(1, restrictedTo(policyv1alpha1.Placement{}, "a", "b", "c")), s, nil)
	const want = "0/4 clusters are available: 1 cluster(s) did not have the API resource, " +
		"1 cluster(s) did not match the placement cluster affinity constraint, 2 cluster(s) had untolerated taint {down:NoSchedule}."
	if err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if help := Help(err); !AwaitsCluster(err) || strings.Contains(help, "install the API") ||
		!strings.Contains(help, "for c: wait, the cluster has not reported its APIs yet") {
		t.Errorf("%v does not say that a cluster has yet to report its APIs: %s", err, help)
	}
	for name, c := range map[string]struct {
		change func(*clusterv1alpha1.Cluster)
		help   string
	}{
		"partly discovered": {func(c *clusterv1alpha1.Cluster) {
			undiscovered(c)
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
				Status: metav1.ConditionFalse}}
		}, "for m: check which of its APIs do not respond"},
		"not discovered, and not ready": {func(c *clusterv1alpha1.Cluster) {
			undiscovered(c)
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady,
				Status: metav1.ConditionFalse}}
		}, "for m: check which of its APIs do not respond"},
		"without the kind": {func(c *clusterv1alpha1.Cluster) { c.Status.APIEnablements = nil },
			"for m: install the API that has Deployment.apps"},
	} {
		_, err := Schedule(deployment(1, policyv1alpha1.Placement{}), fleet(cluster("m", c.change)), nil)
		if help := Help(err); AwaitsCluster(err) || help != c.help {
			t.Errorf("%s: %v, to fit: %q, want %q", name, err, help, c.help)
		}
	}
	_, err = Schedule(deployment(1, policyv1alpha1.Placement{}), fleet(), nil)
	if want := "0/0 clusters are available: no clusters available to schedule."; err == nil || err.Error() != want {
		t.Errorf("an empty fleet says %q, want %q", err, want)
	}
}

func TestLongListsOfNamesMeanTheSame(t *testing.T) {
	for seed := range uint64(300) {
		r := rng(seed)
		var names []string
		for i := range 60 {
			names = append(names, fmt.Sprintf("c%02d", i))
		}
		a := policyv1alpha1.ClusterAffinity{ClusterNames: shuffled(r, names)[:r.IntN(40)],
			ExcludeClusters: shuffled(r, names)[:r.IntN(40)]}
		b := deployment(1, policyv1alpha1.Placement{ClusterAffinity: &a})
		candidates, rejections := Feasible(b, fleet(named(names...)...))
		if len(candidates)+len(rejections) != len(names) {
			t.Fatalf("seed %d: %d candidates and %d rejections of %d", seed, len(candidates), len(rejections), len(names))
		}
		for _, c := range candidates {
			if !match.Affinity(&a, c.Cluster) {
				t.Fatalf("seed %d: %s is a candidate for %v", seed, c.Cluster.Name, a)
			}
		}
		for _, c := range rejections {
			if match.Affinity(&a, cluster(c.Cluster)) {
				t.Fatalf("seed %d: %s is rejected for %v", seed, c.Cluster, a)
			}
		}
	}
}

// TestClustersWithEqualAPIsShareTheirSet: also when one of them changes.
func TestClustersWithEqualAPIsShareTheirSet(t *testing.T) {
	with := func(name, version string, more ...string) *clusterv1alpha1.Cluster {
		c := cluster(name)
		c.ResourceVersion = version
		for _, kind := range more {
			c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{
				GroupVersion: "example.com/v1", Resources: []clusterv1alpha1.APIResource{{Name: "things", Kind: kind}}})
		}
		return c
	}
	s := fleet(with("a", "1"), with("b", "1"), with("c", "1", "Thing"))
	next := s.Next([]*clusterv1alpha1.Cluster{with("a", "1"), with("b", "2"), with("c", "1", "Thing"),
		with("d", "1", "Thing")})
	if next.member("a").apis != next.member("b").apis || next.member("c").apis != next.member("d").apis ||
		next.member("a").apis != s.member("a").apis {
		t.Error("what is the same is known twice")
	}
	next = next.Next([]*clusterv1alpha1.Cluster{with("a", "2", "Thing"), with("b", "2"), with("c", "2", "Other")})
	for cluster, want := range map[string]string{"a": "Thing", "b": "", "c": "Other"} {
		for _, kind := range []string{"Thing", "Other"} {
			if got := len(next.Versions(cluster, schema.GroupKind{Group: "example.com",
				Kind: kind})) > 0; got != (kind == want) {
				t.Errorf("%s serves %s: %v", cluster, kind, got)
			}
		}
	}
}

func TestSnapshot(t *testing.T) {
	a, b := cluster("a"), cluster("b")
	a.ResourceVersion, b.ResourceVersion = "1", "1"
	s := fleet(b, nil, a, cluster("c", leaving))

	t.Run("clusters that are leaving are not part of it", func(t *testing.T) {
		if s.Len() != 2 || s.Cluster("c") != nil || s.Cluster("a") != a {
			t.Errorf("%d clusters, c is %v", s.Len(), s.Cluster("c"))
		}
	})
	t.Run("the versions that serve a kind", func(t *testing.T) {
		got := s.Versions("a", schema.GroupKind{Group: "apps", Kind: "Deployment"})
		if len(got) != 1 || got[0] != "v1" {
			t.Errorf("got %v", got)
		}
		if got := s.Versions("a", schema.GroupKind{Group: "batch", Kind: "Job"}); len(got) != 0 {
			t.Errorf("got %v for a kind that is not served", got)
		}
	})
	t.Run("the next one sees what changed and leaves this one alone", func(t *testing.T) {
		changed := cluster("a", tainted("down", corev1.TaintEffectNoSchedule))
		changed.ResourceVersion = "2"
		next := s.Next([]*clusterv1alpha1.Cluster{changed, b.DeepCopy(), cluster("d")})
		if next.Len() != 3 || len(next.member("a").repels) != 1 || next.Cluster("b") != b || next.Cluster("d") == nil {
			t.Errorf("the next snapshot has %d clusters, a repels %v", next.Len(), next.member("a").repels)
		}
		if s.Len() != 2 || len(s.member("a").repels) != 0 {
			t.Error("the first snapshot changed")
		}
	})
}
