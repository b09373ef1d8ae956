package grant_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/source/grant"
)

func TestWhatCannotBeGrantedIsRefusedWithTheReason(t *testing.T) {
	for want, c := range map[string]struct {
		group, role, namespace, selector string
		clusters                         []string
	}{
		`granted to "system:masters": the hub acts for nobody`: {"system:masters", "view", "", "a=b", nil},
		`"system:authenticated": the hub acts for nobody`:      {"system:authenticated", "view", "", "a=b", nil},
		`"system:unauthenticated": the hub acts for nobody`:    {"system:unauthenticated", "view", "", "a=b", nil},
		`"system:nodes": the hub acts for nobody`:              {"system:nodes", "view", "", "a=b", nil},
		`the name of the group "" is empty`:                    {"", "view", "", "a=b", nil},
		`"devs " is empty, begins or ends with a space`:        {"devs ", "view", "", "a=b", nil},
		"or has a control character":                           {"de\x1bvs", "view", "", "a=b", nil},
		"--role is missing":                                    {"devs", "", "", "a=b", nil},
		`--role "a/b" cannot be the name of a ClusterRole`:     {"devs", "a/b", "", "a=b", nil},
		`--namespace "Shop"`:                                   {"devs", "view", "Shop", "a=b", nil},
		"use one of the two":                                   {"devs", "view", "", "a=b", []string{"eu"}},
		`--clusters "=" is not a selector such as env=prod`:    {"devs", "view", "", "=", nil},
		`--clusters " " is not a selector such as env=prod`:    {"devs", "view", "", " ", nil},
	} {
		if g, err := grant.New(c.group, c.role, c.namespace, c.selector, c.clusters); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", g, err, want)
		}
	}
}

func TestGrantIsOneObjectHoweverItIsWritten(t *testing.T) {
	seen := map[string]bool{}
	for _, same := range [][]func() (grant.Grant, error){
		{func() (grant.Grant, error) { return grant.New("devs", "view", "", "", []string{"us", "eu", "us"}) },
			func() (grant.Grant, error) { return grant.New("devs", "view", "", "", []string{"eu", "us"}) }},
		{func() (grant.Grant, error) { return grant.New("devs", "view", "", "env=prod,tier in (b,a)", nil) },
			func() (grant.Grant, error) { return grant.New("devs", "view", "", "tier in (a, b), env==prod", nil) }},
		{func() (grant.Grant, error) { return grant.New("devs", "view", "shop", "env=prod", nil) },
			func() (grant.Grant, error) { return grant.New("devs", "view", "shop", "env in (prod)", nil) }},
		{func() (grant.Grant, error) {
			return grant.New("/platform/Ops: Team é", "view", "shop", "env=prod", nil)
		}},
	} {
		name := ""
		for _, make := range same {
			g, err := make()
			if err != nil {
				t.Fatal(err)
			}
			if name == "" {
				name = g.Name()
			}
			if g.Name() != name || seen[name] {
				t.Errorf("%+v has the name %s, another has %s", g, g.Name(), name)
			}
			if read, ok := grant.Read(g.Template()); !ok || !reflect.DeepEqual(read, g) {
				t.Errorf("it is read as %+v (%t), want %+v", read, ok, g)
			}
			for _, change := range []func(*releasev1alpha1.EnclosedManifest){
				func(m *releasev1alpha1.EnclosedManifest) { m.Annotations = nil },
				func(m *releasev1alpha1.EnclosedManifest) { m.Name = "another" },
				func(m *releasev1alpha1.EnclosedManifest) {
					m.Spec.Manifest.Raw = []byte(strings.Replace(string(m.Spec.Manifest.Raw), `"view"`, `"edit"`, 1))
				},
				func(m *releasev1alpha1.EnclosedManifest) {
					m.Spec.Manifest.Raw = []byte(strings.Replace(string(m.Spec.Manifest.Raw), `"Group"`, `"User"`, 1))
				},
			} {
				m := g.Template()
				if change(m); reflect.DeepEqual(m, g.Template()) {
					t.Fatal("nothing was changed")
				}
				if _, ok := grant.Read(m); ok {
					t.Errorf("what others changed is read as a grant: %+v", m)
				}
			}
		}
		seen[name] = true
	}
}

func named(names ...string) (all []clusterv1alpha1.Cluster) {
	for _, name := range names {
		all = append(all, clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return all
}

// The grant is a template that is no binding on the hub, and a policy that selects it alone.
func TestGrantGivesNothingOnTheHub(t *testing.T) {
	g, err := grant.New("devs", "edit", "shop", "env=prod", nil)
	if err != nil {
		t.Fatal(err)
	}
	var m rbacv1.RoleBinding
	if err := json.Unmarshal(g.Template().Spec.Manifest.Raw, &m); err != nil {
		t.Fatal(err)
	}
	if m.Kind != "RoleBinding" || m.Namespace != "shop" || m.RoleRef.Name != "edit" || len(m.Subjects) != 1 ||
		m.Subjects[0] != (rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "devs"}) {
		t.Errorf("the template encloses %+v", m)
	}
	s := g.Policy().Spec.ResourceSelectors
	if len(s) != 1 || s[0].Kind != "EnclosedManifest" || s[0].Name != g.Name() {
		t.Errorf("the policy selects %v", s)
	}
	role, binding := g.Proxy(named("eu"))
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, []string{"eu"}) ||
		!slices.Equal(role.Rules[0].Resources, []string{"clusters/proxy"}) || slices.Contains(role.Rules[0].Verbs, "*") ||
		len(binding.Subjects) != 1 || binding.Subjects[0].Name != "devs" {
		t.Errorf("the right on the hub is %v for %v", role.Rules, binding.Subjects)
	}
	if view, _ := (grant.Grant{Group: "devs", Role: "view"}).Proxy(named("eu")); !slices.Equal(view.Rules[0].Verbs,
		[]string{"get"}) {
		t.Errorf("a reader has %v", view.Rules)
	}
}

// A grant that cannot be read is one for no cluster.
func TestGrantWithoutASelectionSelectsNoCluster(t *testing.T) {
	all := named("eu")
	for _, g := range []grant.Grant{{Group: "devs", Role: "view"}, {Group: "devs", Role: "view", Selector: " "},
		{Group: "devs", Role: "view", Selector: "a in ("}} {
		affinity := g.Policy().Spec.Placement.ClusterAffinity
		if g.Selects(&all[0]) || slices.Equal(affinity.ClusterNames, nil) {
			t.Errorf("%+v selects %+v", g, affinity)
		}
		if _, ok := grant.Read(g.Template()); ok {
			t.Errorf("%+v is read as a grant", g)
		}
	}
}

func TestStateOfAGrantNamesWhatIsMissingInEachCluster(t *testing.T) {
	g, err := grant.New("devs", "viewer", "", "env=prod", nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster := func(name, env string) clusterv1alpha1.Cluster {
		return clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}}}
	}
	role, binding := g.Proxy(named("good", "refusing"))
	lets := access.Derive([]rbacv1.ClusterRole{*role}, []rbacv1.ClusterRoleBinding{*binding})
	b := &workv1alpha2.ClusterResourceBinding{}
	for _, item := range []workv1alpha2.AggregatedStatusItem{{ClusterName: "good", Applied: true},
		{ClusterName: "refusing", AppliedMessage: "the hub may not grant rights"}, {ClusterName: "left", Applied: true}} {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: item.ClusterName})
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, item)
	}
	got := g.States([]clusterv1alpha1.Cluster{cluster("good", "prod"), cluster("refusing", "prod"), cluster("new", "prod"),
		cluster("left", "dev"), cluster("moved", "dev"), cluster("other", "dev")}, b,
		[]string{"good", "refusing", "moved", "unjoined"}, lets,
		map[string]string{"new": grant.NoRole, "refusing": grant.UnknownRole})
	want := []grant.State{{Cluster: "good", Applied: true},
		{Cluster: "refusing", Missing: []string{"the hub may not grant rights",
			"it is not known whether it has a ClusterRole viewer, because you may not read that there"}},
		{Cluster: "new", Missing: []string{"it is not applied yet",
			"it has no ClusterRole viewer, so the grant permits nothing there", grant.NoProxy}},
		{Cluster: "left", Applied: true, Missing: []string{"it is no longer selected", grant.NoProxy}},
		{Cluster: "moved", Missing: []string{grant.StillProxied}},
		{Cluster: "unjoined", Missing: []string{grant.StillProxied}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
