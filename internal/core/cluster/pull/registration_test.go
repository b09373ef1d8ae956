package pull

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// role returns the ClusterRole of an agent with keys, nil for none, which a Cluster owns or does not own.
func role(keys []string, owned bool) metav1.Object {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: RoleOf("eu")}}
	if keys != nil {
		RecordKeys(role, keys)
	}
	if owned {
		role.OwnerReferences = []metav1.OwnerReference{{Kind: "Cluster", Name: "eu"}}
	}
	return role
}

// A certificate ends with its registration, and an agent creates one Cluster for each registration.
func TestOnlyCertificatesOfTheCurrentRegistrationAreValid(t *testing.T) {
	const other, again = "not of the current registration", "cannot create its Cluster again"
	for story, tc := range map[string]struct {
		role        metav1.Object
		key         string
		want, first string
	}{
		"its Cluster exists, or existed":           {role([]string{"old", "new"}, true), "new", "", again},
		"the key before a renewal":                 {role([]string{"old", "new"}, true), "old", "", again},
		"a key while the cluster is registered":    {role([]string{"new"}, false), "new", "", ""},
		"a key of an earlier registration":         {role([]string{"new"}, false), "old", other, ""},
		"a key of a former Cluster":                {role([]string{"new"}, true), "old", "--cluster-name eu", again},
		"any key in a Cluster of a person":         {role([]string{}, true), "old", other, again},
		"a person creates the Cluster":             {role([]string{}, false), "old", other, again},
		"a Cluster of an earlier version":          {role(nil, true), "old", "", again},
		"a ClusterRole that a token's user made":   {role(nil, false), "old", other, again},
		"roles and bindings without a ClusterRole": {nil, "old", "is not registered", again},
	} {
		if why := CheckCertificate("eu", tc.role, tc.key); (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) {
			t.Errorf("%s: a certificate: %q, want %q", story, why, tc.want)
		}
		if why := CheckFirst("eu", tc.role); (why == "") != (tc.first == "") || !strings.Contains(why, tc.first) {
			t.Errorf("%s: a Cluster: %q, want %q", story, why, tc.first)
		}
	}
}

func TestKeysOfApprovedRequestsAreRecorded(t *testing.T) {
	pulls, keys := registered("eu", clusterv1alpha1.Pull), []string{"1", "2", "3", "4", "5"}
	known := Known{Cluster: pulls, Keys: keys}
	for story, tc := range map[string]struct {
		request Request
		known   Known
		token   Token
		want    []string
	}{
		"a token registers": {csr("eu"), Known{}, Token{ID: "abcdef"}, []string{"new"}},
		"a token replaces credentials": {csr("eu"), known, Token{ID: "other", Cluster: "eu", Renews: true},
			[]string{"new"}},
		"an agent renews":               {agentCSR("eu", "eu"), known, Token{}, []string{"2", "3", "4", "5", "new"}},
		"an agent of an earlier one":    {agentCSR("eu", "eu"), Known{Cluster: pulls}, Token{}, nil},
		"a token of another cluster":    {csr("eu"), Known{}, Token{ID: "abcdef", Cluster: "us"}, nil},
		"a cluster that is registered":  {csr("eu"), known, Token{ID: "abcdef"}, nil},
		"an agent requests another's":   {agentCSR("us", "eu"), known, Token{}, nil},
		"a Secret of somebody is there": {csr("eu"), Known{Secret: "eu"}, Token{ID: "abcdef"}, nil},
		"a cluster in Push mode": {csr("eu"), Known{Cluster: registered("eu", clusterv1alpha1.Push)}, Token{ID: "abcdef"},
			nil},
	} {
		tc.request.Key = "new"
		var got []string
		if recorded := tc.request.Judge(tc.known, tc.token).Record; recorded != nil {
			got = Keys(role(recorded, true))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", story, got, tc.want)
		}
	}
	if !slices.Equal(keys, []string{"1", "2", "3", "4", "5"}) {
		t.Errorf("the known keys became %v", keys)
	}
}

func TestAgentUsesOnlySecretsOfItsOwn(t *testing.T) {
	secret := func(by string) metav1.Object {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
		if by != "" {
			Report(by, s)
		}
		return s
	}
	refers := func(mode clusterv1alpha1.ClusterSyncMode, namespace string) *clusterv1alpha1.Cluster {
		c := registered("eu", mode)
		c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: namespace, Name: "eu"}
		return c
	}
	for story, tc := range map[string]struct {
		secret  metav1.Object
		cluster *clusterv1alpha1.Cluster
		may     bool
	}{
		"what it created, before its Cluster exists": {secret("eu"), nil, true},
		"what another agent created":                 {secret("us"), nil, false},
		"what a join created, before its Cluster":    {secret(""), nil, false},
		"what a join created":                        {secret(""), refers(clusterv1alpha1.Push, "karmada-cluster"), false},
		"that of its Cluster, of an earlier version": {secret(""), refers(clusterv1alpha1.Pull, "karmada-cluster"), true},
		"one that its Cluster does not refer to":     {secret(""), registered("eu", clusterv1alpha1.Pull), false},
		"one of the same name in another namespace":  {secret(""), refers(clusterv1alpha1.Pull, "shop"), false},
	} {
		if why := CheckSecretUse("eu", tc.secret, tc.cluster); (why == "") != tc.may {
			t.Errorf("%s: %q", story, why)
		}
	}
	for story, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		may     bool
	}{"no Cluster": {nil, false}, "a Cluster in Push mode": {registered("eu", clusterv1alpha1.Push), false},
		"a Cluster in Pull mode": {registered("eu", clusterv1alpha1.Pull), true}} {
		if why := CheckPulls("eu", tc.cluster); (why == "") != tc.may {
			t.Errorf("a Work with %s: %q", story, why)
		}
	}
}
