package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// A user of one namespace sees its policies, and which rights show the others.
func TestPoliciesAreThoseThatTheUserMayList(t *testing.T) {
	policy := func(namespace string) *policyv1alpha1.PropagationPolicy {
		return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{Kind: "Deployment",
				Name: "web"}, {Kind: "Service"}}, Placement: policyv1alpha1.Placement{
				ClusterAffinity: &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"eu"},
					LabelSelector: &metav1.LabelSelector{}}}}}
	}
	objects := []client.Object{policy("shop"), policy("bank"),
		&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "base"}},
		&policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "registry"}}}
	resources := []string{"propagationpolicies", "clusterpropagationpolicies", "overridepolicies",
		"clusteroverridepolicies"}
	everything := grants{}
	for _, resource := range resources {
		everything["list "+resource+" *"] = true
	}
	for name, c := range map[string]struct {
		grants  grants
		sees    string
		missing []string
	}{
		"view in shop": {grants{"list propagationpolicies shop": true, "list overridepolicies shop": true},
			"PropagationPolicy shop/web", []string{"clusterpropagationpolicies", "overridepolicies",
				"clusteroverridepolicies"}},
		"all rights": {everything, "PropagationPolicy bank/web, PropagationPolicy shop/web, " +
			"ClusterPropagationPolicy /base, ClusterOverridePolicy /registry", nil},
		"no right": {grants{}, "", resources},
	} {
		a := newTestAPI(t, c.grants, objects...)
		w := a.request(t, alice, "GET", policiesPath, "")
		var got policiesAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", name, w.Code, w.Body)
		}
		var sees, missing []string
		for _, p := range got.Policies {
			sees = append(sees, fmt.Sprintf("%s %s/%s", p.Kind, p.Namespace, p.Name))
		}
		for _, m := range got.Missing {
			if missing = append(missing, m.Resource); m.Role != "argosy:view" && m.Role != "argosy:fleet" {
				t.Errorf("%s: %s has the role %q", name, m.Resource, m.Role)
			}
		}
		if strings.Join(sees, ", ") != c.sees || !slices.Equal(missing, c.missing) {
			t.Errorf("%s: the user sees %q and lacks %q", name, sees, missing)
		}
		if name == "view in shop" && (!slices.Equal(got.Policies[0].Selects, []string{"Deployment web", "Service"}) ||
			!got.Policies[0].ByLabel || !slices.Equal(got.Policies[0].Except, []string{"eu"})) {
			t.Errorf("the policy is %+v", got.Policies[0])
		}
	}
}

func TestUnclaimedWorkloadsAreThoseWithoutAPolicy(t *testing.T) {
	claimed, free := deployment(), deployment()
	claimed.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"})
	free.SetName("free")
	a, _ := changing(t, grants{}, "", claimed, free)
	for query, want := range map[string]string{
		"":                `{"objects":[{"namespace":"shop","name":"free"}],"command":"kubectl get deployments.apps -A -l '!propagationpolicy`,
		"&namespace=shop": "kubectl get deployments.apps -n shop -l '",
		"&namespace=bank": `{"objects":[]`,
	} {
		w := a.request(t, alice, "GET", unclaimedPath+"?kind=Deployment.apps"+query, "")
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q gave %d %s, want %s", query, w.Code, w.Body, want)
		}
	}
	if w := a.request(t, alice, "GET", unclaimedPath+"?kind=Other.example.com", ""); w.Code != http.StatusNotFound {
		t.Errorf("an unknown kind gave %d %s", w.Code, w.Body)
	}
}

// An empty page names the right that shows workloads: to list bindings, or to list their kinds.
func TestMissingKindsAreNamed(t *testing.T) {
	a := newTestAPI(t, grants{"list clusters *": true, "list resourcebindings *": true},
		binding("Deployment", "shop", "web", "c1"), waitingRelease("shop"))
	s, err := a.rows.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[string]string{"workloads": "list deployments view",
		"fleet": "list deployments view, list releases argosy:view", "releases": "list releases argosy:view"} {
		var got []string
		for _, m := range topics[topic](a, t.Context(), alice, s).missing {
			got = append(got, m.Verb+" "+m.Resource+" "+m.Role)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: the user lacks %q, want %s", topic, got, want)
		}
	}
}
