package schedule

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestPluginsAreReadAsKarmadasFlag(t *testing.T) {
	for list, want := range map[string]string{
		"":                                "*",
		"*":                               "*",
		"*,-TaintToleration":              "*,-TaintToleration",
		"-TaintToleration,*":              "*,-TaintToleration",
		"-TaintToleration,-APIEnablement": "*,-APIEnablement,-TaintToleration",
		"ClusterAffinity,APIEnablement,ClusterLocality,SpreadConstraint,ClusterEviction,WorkloadAffinity": "*,-TaintToleration,-WorkloadAntiAffinity",
		"-*,TaintToleration,-TaintToleration": "*,-APIEnablement,-ClusterAffinity,-ClusterEviction,-ClusterLocality,-SpreadConstraint,-TaintToleration,-WorkloadAffinity,-WorkloadAntiAffinity",
	} {
		var items []string
		if list != "" {
			items = strings.Split(list, ",")
		}
		p, err := ParsePlugins(items)
		if err != nil || p.String() != want {
			t.Errorf("%q is %s (%v), want %s", list, p, err, want)
		}
		if again, err := ParsePlugins(strings.Split(p.String(), ",")); err != nil || again != p {
			t.Errorf("%s is read back as %s (%v)", p, again, err)
		}
	}
	_, err := ParsePlugins([]string{"*", "-TaintTolerations"})
	if want := `there is no scheduler plugin "TaintTolerations": name one of APIEnablement, ClusterAffinity, ClusterEviction, ClusterLocality, SpreadConstraint, TaintToleration, WorkloadAffinity, WorkloadAntiAffinity; * enables all, and -NAME disables one`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// Each plugin refuses, or prefers, one thing; without it that is let in, and all else is as before.
func TestDisabledPluginRefusesNothing(t *testing.T) {
	plain := deployment(1, policyv1alpha1.Placement{})
	grouped := func(groups workv1alpha2.WorkloadAffinityGroups) *workv1alpha2.ResourceBinding {
		b := deployment(1, policyv1alpha1.Placement{})
		b.Spec.WorkloadAffinityGroups = &groups
		return b
	}
	evicted := deployment(1, policyv1alpha1.Placement{})
	evicted.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m"}}
	for plugin, test := range map[Plugin]struct {
		binding *workv1alpha2.ResourceBinding
		cluster *clusterv1alpha1.Cluster
		peers   Peers
	}{
		ClusterAffinity: {binding: deployment(1, restrictedTo(policyv1alpha1.Placement{}, "n")), cluster: cluster("m")},
		ClusterEviction: {binding: evicted, cluster: cluster("m")},
		TaintToleration: {binding: plain, cluster: cluster("m", tainted("maintenance", corev1.TaintEffectNoExecute))},
		APIEnablement:   {binding: plain, cluster: cluster("m", undiscovered)},
		SpreadConstraint: {binding: deployment(1,
			policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{
				SpreadByField: policyv1alpha1.SpreadByFieldZone}}}), cluster: cluster("m")},
		WorkloadAffinity: {binding: grouped(workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "g"}),
			cluster: cluster("m"), peers: Peers{together: map[string]bool{"n": true}}},
		WorkloadAntiAffinity: {binding: grouped(workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "g"}),
			cluster: cluster("m"), peers: Peers{apart: map[string]bool{"m": true}}},
	} {
		for _, off := range allPlugins {
			p, err := ParsePlugins([]string{"*", "-" + string(off)})
			if err != nil {
				t.Fatal(err)
			}
			s := Settings{Plugins: p}.Snapshot([]*clusterv1alpha1.Cluster{test.cluster})
			candidates, _ := Feasible(test.binding, s.Among(test.peers))
			if took := len(candidates) == 1; took != (off == plugin) {
				t.Errorf("what %s refuses is taken without %s: %t", plugin, off, took)
			}
		}
	}
}

func TestPlacementMayMoveWithoutClusterLocality(t *testing.T) {
	p, err := ParsePlugins([]string{"-ClusterLocality"})
	if err != nil {
		t.Fatal(err)
	}
	one := upTo(policyv1alpha1.Placement{}, 1, 1)
	for plugins, want := range map[Plugins]string{{}: "b", p: "a"} {
		b := placed(configMap(one), "b")
		s := Settings{Plugins: plugins}.Snapshot(named("a", "b")).Next(named("a", "b"))
		if reason, due := Due(b, s); due {
			t.Errorf("plugins %s: due, because %s", plugins, reason)
		}
		if r, err := Schedule(b, s, nil); err != nil || len(r.Clusters) != 1 || r.Clusters[0].Name != want {
			t.Errorf("plugins %s: placed in %v (%v), want %s", plugins, r.Clusters, err, want)
		}
	}
}

func TestOverflowWithoutClusterAffinityIsFilledFirst(t *testing.T) {
	placement := byAvailability()
	placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "first",
		ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"c"}},
		OverflowAffinities: []policyv1alpha1.OverflowAffinity{{ClusterAffinity: policyv1alpha1.ClusterAffinity{
			ClusterNames: []string{"b"}}}}}}
	p, err := ParsePlugins([]string{"-ClusterAffinity"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Schedule(deployment(3, placement), Settings{Plugins: p}.Snapshot(named("a", "b", "c")),
		Answers(map[string]int32{"a": 9, "b": 1, "c": 1}))
	if err != nil || targetList(r.Clusters) != "a=1 b=1 c=1" {
		t.Errorf("placed %q (%v)", targetList(r.Clusters), err)
	}
}
