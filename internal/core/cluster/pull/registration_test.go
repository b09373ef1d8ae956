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
	twice := Known{Cluster: pulls, Keys: []string{"1", "new"}}
	leaving := registered("eu", clusterv1alpha1.Pull)
	leaving.DeletionTimestamp = &metav1.Time{}
	renewal := func(with string) Request {
		r := agentCSR("eu", "eu")
		r.RequesterKey = with
		return r
	}
	for story, tc := range map[string]struct {
		request Request
		known   Known
		token   Token
		want    []string
	}{
		"a token registers": {csr("eu"), Known{}, Token{ID: "abcdef"}, []string{"new"}},
		"a token replaces credentials": {csr("eu"), known, Token{ID: "other", Cluster: "eu", Renews: true},
			[]string{"new"}},
		"an agent renews":               {renewal("5"), known, Token{}, []string{"2", "3", "4", "5", "new"}},
		"it keeps the key it uses":      {renewal("1"), known, Token{}, []string{"3", "4", "5", "1", "new"}},
		"it requests a second time":     {renewal("1"), twice, Token{}, []string{"1", "new"}},
		"it renews without a new key":   {renewal("new"), twice, Token{}, []string{"1", "new"}},
		"a former certificate":          {renewal("0"), known, Token{}, nil},
		"an unknown certificate":        {renewal(""), known, Token{}, nil},
		"none is of this Cluster":       {renewal("1"), Known{Cluster: pulls, Keys: []string{}}, Token{}, nil},
		"its Cluster leaves":            {renewal("5"), Known{Cluster: leaving, Keys: keys}, Token{}, nil},
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

func TestOnlyCurrentCertificatesAreRenewed(t *testing.T) {
	pulls, leaving := registered("eu", clusterv1alpha1.Pull), registered("eu", clusterv1alpha1.Pull)
	leaving.DeletionTimestamp = &metav1.Time{}
	for story, tc := range map[string]struct {
		known Known
		key   string
		want  string
	}{
		"the current one":                       {Known{Cluster: pulls, Keys: []string{"k"}}, "k", ""},
		"a former one":                          {Known{Cluster: pulls, Keys: []string{"k"}}, "old", "--cluster-name eu"},
		"one whose key the hub did not see":     {Known{Cluster: pulls, Keys: []string{"k"}}, "", "not of the current"},
		"any, for a Cluster of a person":        {Known{Cluster: pulls, Keys: []string{}}, "k", "not of the current"},
		"one of an earlier version":             {Known{Cluster: pulls}, "", ""},
		"the current one, but the cluster goes": {Known{Cluster: leaving, Keys: []string{"k"}}, "k", "is being removed"},
		"an earlier version's, and it goes":     {Known{Cluster: leaving}, "k", "is being removed"},
	} {
		r := agentCSR("eu", "eu")
		r.Key, r.RequesterKey = "next", tc.key
		got := r.Judge(tc.known, Token{})
		if (got.Verdict == Approve) != (tc.want == "") || !strings.Contains(got.Message, tc.want) {
			t.Errorf("%s: %+v, want %q", story, got, tc.want)
		}
	}
}

func TestAgentsKeepTheirSecretsWithoutFinalizers(t *testing.T) {
	secret := func(finalizers []string, owners ...metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "eu", Finalizers: finalizers, OwnerReferences: owners}}
	}
	none, kept := secret(nil), secret([]string{"a/b"}, metav1.OwnerReference{Kind: "ConfigMap", Name: "c", UID: "u"})
	owner := func(version, kind, name string) *corev1.Secret {
		return secret(nil, metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name})
	}
	for story, tc := range map[string]struct {
		was, is *corev1.Secret
		may     bool
	}{
		"nothing":                 {none, none, true},
		"a finalizer":             {none, secret([]string{"a/b"}), false},
		"what others set":         {kept, kept, true},
		"the finalizer of others": {kept, secret(nil), false},
		"its Cluster owns it":     {none, owner("cluster.karmada.io/v1alpha1", "Cluster", "eu"), true},
		"another Cluster":         {none, owner("cluster.karmada.io/v1alpha1", "Cluster", "us"), false},
		"another group":           {none, owner("example.io/v1", "Cluster", "eu"), false},
		"another kind":            {none, owner("v1", "ConfigMap", "eu"), false},
	} {
		if why := CheckSecretMeta("eu", tc.was, tc.is); (why == "") != tc.may {
			t.Errorf("%s: %q", story, why)
		}
	}
}
