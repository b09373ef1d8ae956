package schedule

import (
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// Karmada takes the best cluster of each required region, however few clusters are allowed.
func TestRequiredRegionsOutweighMaxClusters(t *testing.T) {
	s := fleet(cluster("e1", located("acme", "eu")), cluster("e2", located("acme", "eu")),
		cluster("u1", located("acme", "us")),
		cluster("a1", located("acme", "ap")))
	none := policyv1alpha1.Placement{}
	for _, c := range []struct {
		name      string
		placement policyv1alpha1.Placement
		want      string
	}{
		{"two regions, one cluster", upTo(spreadBy(none, "region", 2, 2), 1, 1), "a1 e1"},
		{"three regions, two clusters", upTo(spreadBy(none, "region", 3, 0), 1, 2), "a1 e1 u1"},
		{"more clusters than regions", upTo(spreadBy(none, "region", 2, 2), 1, 2), "a1 e1"},
	} {
		if got := schedule(t, configMap(c.placement), s, nil); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
