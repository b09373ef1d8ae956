package schedule

import (
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestSpreadByCluster(t *testing.T) {
	s := fleet(named("a", "b", "c", "d")...)
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		room    string
		want    string
	}{
		"the first by name, of equals":    {configMap(upTo(policyv1alpha1.Placement{}, 1, 2)), "", "a b"},
		"no maximum is no limit":          {configMap(upTo(policyv1alpha1.Placement{}, 1, 0)), "", "a b c d"},
		"a maximum larger than the fleet": {configMap(upTo(policyv1alpha1.Placement{}, 1, 9)), "", "a b c d"},
		"those that have the template stay": {placed(configMap(upTo(policyv1alpha1.Placement{}, 1, 2)), "c d"),
			"", "c d"},
		"those with the most room, if nothing else": {deployment(2, upTo(policyv1alpha1.Placement{}, 1, 2)),
			"a=1 b=2 c=3 d=4", "c=2 d=2"},
		"dynamic weights over the best": {deployment(6, upTo(byAvailability(), 1, 2)), "a=1 b=20 c=10 d=2",
			"b=4 c=2"},
		"the last make way for those with room": {placed(deployment(9, upTo(byAvailability(), 1, 2)), "a=2 b=1"),
			"a=1 b=1 c=8 d=3", "a=3 c=6"},
		"what is placed counts as room": {placed(deployment(4, upTo(byAvailability(), 1, 2)), "a=2 b=2"),
			"a=0 b=0 c=9 d=9", "a=2 b=2"},
		"static weights share among those that are used": {deployment(4, upTo(byWeight("a=1 b=3 c=1 d=1"), 1, 2)), "",
			"a=1 b=3"},
		"static weights, of which the heaviest are used": {deployment(6, upTo(byWeight("a=1 b=3 c=2 d=0"), 2, 2)), "",
			"b=4 c=2"},
		"packed, but in two at least": {deployment(6, upTo(together(), 2, 3)), "a=9 b=9 c=9 d=9",
			"a=5 b=1"},
		"one replica cannot be in two": {deployment(1, upTo(together(), 2, 3)), "a=9 b=9 c=9 d=9", "a=1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schedule(t, test.binding, s, room(test.room)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// spreadBy adds a spread constraint by a field, or by a label: one that is no field.
func spreadBy(p policyv1alpha1.Placement, what string, minimum, maximum int) policyv1alpha1.Placement {
	c := policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadFieldValue(what), MinGroups: minimum,
		MaxGroups: maximum}
	switch c.SpreadByField {
	case policyv1alpha1.SpreadByFieldCluster, policyv1alpha1.SpreadByFieldRegion, policyv1alpha1.SpreadByFieldZone,
		policyv1alpha1.SpreadByFieldProvider:
	default:
		c.SpreadByField, c.SpreadByLabel = "", what
	}
	p.SpreadConstraints = append(p.SpreadConstraints, c)
	return p
}

func TestSpreadByGroups(t *testing.T) {
	// Two clusters in eu, two in us, one in ap.
	s := fleet(
		cluster("e1", located("acme", "eu", "eu-1"), labelled("rack", "r1")),
		cluster("e2", located("zeta", "eu", "eu-2"), labelled("rack", "r2")),
		cluster("u1", located("acme", "us", "us-1"), labelled("rack", "r1")),
		cluster("u2", located("acme", "us", "us-1", "us-2"), labelled("rack", "r1")),
		cluster("a1", located("zeta", "ap", "ap-1")),
	)
	none := policyv1alpha1.Placement{}
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		room    string
		want    string
	}{
		"no maximum is no limit": {configMap(spreadBy(none, "region", 1, 0)), "",
			"a1 e1 e2 u1 u2"},
		"two regions, of equals the larger, with all theirs": {configMap(spreadBy(none, "region", 2, 2)), "", "e1 e2 u1 u2"},
		"as few regions as do":                               {configMap(spreadBy(none, "region", 2, 3)), "", "e1 e2 u1 u2"},
		"one cluster of each region first": {configMap(upTo(spreadBy(none, "region", 2, 2), 2, 3)), "",
			"e1 e2 u1"},
		"more regions where the clusters are too few": {configMap(upTo(spreadBy(none, "region", 1, 3), 5, 0)), "",
			"a1 e1 e2 u1 u2"},
		"more clusters are not wanted than regions": {configMap(upTo(spreadBy(none, "region", 3, 3), 3, 3)), "",
			"a1 e1 u1"},
		"regions in use stay": {placed(configMap(spreadBy(none, "region", 1, 1)), "a1"), "", "a1"},
		"regions in use stay, also more than do": {placed(configMap(spreadBy(none, "region", 1, 2)), "a1 e1 e2"), "",
			"a1 e1 e2"},
		"of a region in use the other clusters join": {placed(configMap(spreadBy(none, "region", 1, 1)), "e2"), "",
			"e1 e2"},
		"by provider": {configMap(upTo(spreadBy(none, "provider", 2, 2), 2, 2)), "",
			"a1 e1"},
		"by label: those without it are out":              {configMap(spreadBy(none, "rack", 2, 2)), "", "e1 e2 u1 u2"},
		"by label, one group":                             {configMap(spreadBy(none, "rack", 1, 1)), "", "e1 u1 u2"},
		"by zone: a cluster in two zones counts for both": {configMap(spreadBy(none, "zone", 1, 1)), "", "u1"},
		"by region and zone": {configMap(spreadBy(spreadBy(none, "region", 1, 1), "zone", 2, 2)), "",
			"e1 e2"},
		"duplicated where all replicas fit": {deployment(5, spreadBy(none, "region", 1, 1)),
			"e1=5 e2=1 u1=5 u2=5 a1=9", "u1=5 u2=5"},
		"divided by room, in the region with a fair share": {deployment(6, spreadBy(byAvailability(), "region", 1, 1)),
			"e1=2 e2=2 u1=9 u2=0 a1=1", "u1=6"},
		"divided by room, in another where one is too small": {deployment(6, spreadBy(byAvailability(), "region", 1, 2)),
			"e1=2 e2=2 u1=2 u2=0 a1=1", "e1=2 e2=2 u1=2"},
		"packed, but in two regions at least": {deployment(6, spreadBy(together(), "region", 2, 2)),
			"e1=9 e2=9 u1=9 u2=9 a1=1", "e1=5 u1=1"},
		"static weights, in as many regions as there may be": {deployment(6,
			spreadBy(byWeight("e1=3 u1=2 a1=1"), "region", 1, 2)),
			"", "e1=4 u1=2"},
		"... also where fewer were in use": {placed(deployment(6,
			spreadBy(byWeight("e1=3 u1=2 a1=1"), "region", 1, 2)), "u1=4"), "", "e1=4 u1=2"},
		"... of which those in use stay": {placed(deployment(6,
			spreadBy(byWeight("e1=3 u1=2 a1=1"), "region", 1, 1)), "u1=4"), "", "u1=6"},
		"static weights, in two regions": {deployment(10, spreadBy(byWeight("e1=3 u1=2 a1=1"), "region", 2, 2)),
			"", "e1=6 u1=4"},
		"the smaller of two keeps one": {placed(deployment(4, spreadBy(byAvailability(), "region", 2, 2)),
			"e1=40 u1=1"), "", "e1=3 u1=1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schedule(t, test.binding, s, room(test.room)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestImpossibleSpread(t *testing.T) {
	s := fleet(
		cluster("a", located("acme", "eu", "eu-1")), cluster("b", located("acme", "eu", "eu-2")),
	)
	none := policyv1alpha1.Placement{}
	for name, test := range map[string]struct {
		binding    workv1alpha2.Binding
		room       string
		want, help string
	}{
		"more clusters than there are": {configMap(upTo(none, 3, 4)), "",
			"the number of feasible clusters is less than spreadConstraint.MinGroups",
			"2 clusters fit, but at least 3 are required: let the policy match 1 more, or lower minGroups to 2"},
		"no room in as many as allowed": {deployment(9, upTo(together(), 1, 1)), "a=5 b=6",
			"no enough resource when selecting 1 clusters",
			"they have capacity for 6 of 9 replicas: free capacity for 3 more, or request fewer replicas, or raise maxGroups to use more clusters"},
		"more regions than there are": {configMap(spreadBy(none, "region", 2, 0)), "",
			"the number of feasible region is less than spreadConstraint.MinGroups",
			"2 by region are required, but clusters fit in only 1 (eu): add clusters in 1 more, or lower minGroups to 1"},
		"too few clusters in the zones allowed": {configMap(upTo(spreadBy(none, "zone", 1, 1), 2, 0)), "",
			"the number of clusters is less than the cluster spreadConstraint.MinGroups",
			"the groups that may be used have 1 cluster, but at least 2 are required: lower minGroups of the cluster spread constraint, or raise maxGroups by zone"},
		"no room in the zones allowed": {deployment(9, spreadBy(byAvailability(), "zone", 1, 1)), "a=5 b=6",
			"no enough resource when selecting 1 clusters",
			"they have capacity for 6 of 9 replicas: free capacity for 3 more, or request fewer replicas, or raise maxGroups to use more clusters"},
		"minimum above maximum": {configMap(spreadBy(none, "region", 3, 2)), "",
			"the number of feasible region is less than spreadConstraint.MinGroups",
			"minGroups 3 of the region spread constraint is greater than its maxGroups 2: lower minGroups or raise maxGroups"},
		"weights that match nothing": {deployment(6, byWeight("x=3")), "",
			"no clusters available to schedule",
			"no staticWeightList rule matches any cluster: correct its targetCluster, or remove the weights to divide equally"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Schedule(test.binding, s, room(test.room))
			if err == nil || err.Error() != test.want || Help(err) != test.help {
				t.Fatalf("got %v (%s), want %q (%s)", err, Help(err), test.want, test.help)
			}
			if c := Condition(err); c.Reason != workv1alpha2.ReasonSchedulerError || c.Message != test.want+". To fit: "+
				test.help+"." {
				t.Errorf("the condition says %s: %s", c.Reason, c.Message)
			}
		})
	}
}
