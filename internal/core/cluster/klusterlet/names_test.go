package klusterlet

import (
	"strings"
	"testing"
)

func TestUsersOfKlusterletsNameTheirCluster(t *testing.T) {
	for user, want := range map[string][2]string{
		"system:open-cluster-management:eu:agent-1":                    {"eu", "agent-1"},
		"system:open-cluster-management:eu":                            {},
		"system:open-cluster-management:eu:":                           {},
		"system:open-cluster-management::agent":                        {},
		"system:open-cluster-management:eu:agent:1":                    {},
		"system:open-cluster-management:cluster:eu:addon:a:agent:x":    {},
		"open-cluster-management:eu:agent-1":                           {},
		"system:karmada:agent:eu":                                      {},
		"x:system:open-cluster-management:eu:agent":                    {},
		"system:serviceaccount:open-cluster-management:agent-registra": {},
		"": {},
	} {
		cluster, agent, ok := ClusterOf(user)
		if got := [2]string{cluster, agent}; got != want || ok != (want != [2]string{}) {
			t.Errorf("%q: %q, %t, want %q", user, got, ok, want)
		}
	}
	if cluster, _, _ := ClusterOf(GroupOf("eu") + ":agent"); cluster != "eu" {
		t.Errorf("a user with the prefix of the group is of cluster %q", cluster)
	}
}

func TestNamesOfTheHubAreNoNamesOfClusters(t *testing.T) {
	const invalid, reserved = "must be a DNS label of at most 48 characters", "choose another name"
	for name, want := range map[string]string{
		"eu":                          "",
		"open-cluster-management-lab": "",
		strings.Repeat("a", 48):       "",
		strings.Repeat("a", 49):       invalid,
		"eu.west":                     invalid,
		"EU":                          invalid,
		"":                            invalid,
		"kube-system":                 reserved, // it could write Leases there
		"karmada-es-eu":               reserved,
		"open-cluster-management":     reserved,
		"open-cluster-management-hub": reserved,
		"managed-clusters":            reserved, // its group would be that of all klusterlets
		"registration":                reserved, // its ClusterRole would be a shared one
		"work":                        reserved,
	} {
		if why := CheckName(name); (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%q: %q, want %q", name, why, want)
		}
	}
}
