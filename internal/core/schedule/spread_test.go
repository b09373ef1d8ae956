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
		"the first by name, of equals":                           {configMap(upTo(policyv1alpha1.Placement{}, 1, 2)), "", "a b"},
		"no maximum is no limit":                                 {configMap(upTo(policyv1alpha1.Placement{}, 1, 0)), "", "a b c d"},
		"a maximum larger than the fleet":                        {configMap(upTo(policyv1alpha1.Placement{}, 1, 9)), "", "a b c d"},
		"those that have the template stay":                      {placed(configMap(upTo(policyv1alpha1.Placement{}, 1, 2)), "c d"), "", "c d"},
		"those with the most room, if nothing else":              {deployment(2, upTo(policyv1alpha1.Placement{}, 1, 2)), "a=1 b=2 c=3 d=4", "c=2 d=2"},
		"dynamic weights over the best":                          {deployment(6, upTo(byAvailability(), 1, 2)), "a=1 b=20 c=10 d=2", "b=4 c=2"},
		"the last make way for those with room":                  {placed(deployment(9, upTo(byAvailability(), 1, 2)), "a=2 b=1"), "a=1 b=1 c=8 d=3", "a=3 c=6"},
		"what is placed counts as room":                          {placed(deployment(4, upTo(byAvailability(), 1, 2)), "a=2 b=2"), "a=0 b=0 c=9 d=9", "a=2 b=2"},
		"static weights say themselves which clusters take part": {deployment(4, upTo(byWeight("a=1 b=1 c=1 d=1"), 1, 2)), "", "a=1 b=1 c=1 d=1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schedule(t, test.binding, s, room(test.room)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSpreadThatCannotBe(t *testing.T) {
	s := fleet(
		cluster("a", in("acme", "eu", "eu-1")), cluster("b", in("acme", "eu", "eu-2")),
	)
	by := func(c policyv1alpha1.SpreadConstraint) policyv1alpha1.Placement {
		return policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{c}}
	}
	const unsupported = "just support cluster and region spread constraint"
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		room    string
		want    string
	}{
		"more clusters than there are":  {configMap(upTo(policyv1alpha1.Placement{}, 3, 4)), "", "the number of feasible clusters is less than spreadConstraint.MinGroups"},
		"no room in as many as allowed": {deployment(9, upTo(together(), 1, 1)), "a=5 b=6", "no enough resource when selecting 1 clusters"},
		"by zone":                       {configMap(by(policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldZone})), "", unsupported},
		"by provider":                   {configMap(by(policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldProvider})), "", unsupported},
		"by label":                      {configMap(by(policyv1alpha1.SpreadConstraint{SpreadByLabel: "rack"})), "", unsupported},
		"by region":                     {configMap(by(policyv1alpha1.SpreadConstraint{SpreadByField: policyv1alpha1.SpreadByFieldRegion})), "", "the region spread constraint is not supported yet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Schedule(test.binding, s, room(test.room))
			if err == nil || err.Error() != test.want {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if c := Condition(err); c.Reason != workv1alpha2.ReasonSchedulerError || c.Message != test.want {
				t.Errorf("the condition says %s: %s", c.Reason, c.Message)
			}
		})
	}
}
