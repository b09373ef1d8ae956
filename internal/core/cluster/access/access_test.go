package access

import (
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// role lets into the proxies of clusters, all if there are none.
func role(name string, clusters ...string) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"},
			ResourceNames: clusters}}}
}

// bind gives a role to subjects, as "User alice", "Group devs" or "ServiceAccount ci/deployer".
func bind(role string, subjects ...string) rbacv1.ClusterRoleBinding {
	b := rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}}
	for _, s := range subjects {
		kind, name, _ := strings.Cut(s, " ")
		namespace := ""
		if kind == rbacv1.ServiceAccountKind {
			namespace, name, _ = strings.Cut(name, "/")
		}
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name})
	}
	return b
}

func grants() Grants {
	return Derive([]rbacv1.ClusterRole{role("eu", "eu"), role("all"),
		{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"},
				Resources: []string{"clusters"}}}}},
		[]rbacv1.ClusterRoleBinding{bind("eu", "User alice", "Group devs", "ServiceAccount ci/deployer",
			"Group system:authenticated"),
			bind("all", "User root", "Group ops", "User system:kube-scheduler", "Group system:nodes"),
			bind("cluster-admin", "Group system:masters", "User chief"), bind("reader", "User reader")})
}

func TestUsersActUnderTheirOwnNameIfARoleAllowsIt(t *testing.T) {
	const opted = "system:serviceaccount:ci:deployer, system:kube-scheduler,system:authenticated,alice"
	for name, c := range map[string]struct {
		cluster, opted string
		user           string
		groups         []string
		want           string // "" for a refusal
		err            error
	}{
		"by name": {cluster: "eu", user: "alice", groups: []string{"others", everybody},
			want: "alice [] by []"},
		"with the groups that roles name": {cluster: "eu", user: "alice", groups: []string{"devs", "others", "ops"},
			want: "alice [devs ops] by []"},
		"by a group": {cluster: "us", user: "olga", groups: []string{"ops", "devs"},
			want: "olga [ops] by [ops]"},
		"by being somebody": {cluster: "eu", user: "carl", groups: []string{everybody},
			want: "carl [] by [system:authenticated]"},
		"not elsewhere": {cluster: "us", user: "alice", groups: []string{"devs", everybody},
			err: ErrNotNamed},
		"who may only read the Cluster": {cluster: "us", user: "reader", err: ErrNotNamed},
		"an administrator by role":      {cluster: "us", user: "chief", want: "chief [] by []"},
		"the administrator":             {cluster: "us", user: "admin", groups: []string{masters}, want: "the hub"},
		"a service account": {cluster: "eu", user: "system:serviceaccount:ci:deployer",
			groups: []string{"system:serviceaccounts", everybody}, err: ErrSystemName},
		"one that the Cluster names": {cluster: "eu", opted: opted, user: "system:serviceaccount:ci:deployer",
			groups: []string{"system:serviceaccounts", "devs"}, want: "system:serviceaccount:ci:deployer [] by []"},
		"another": {cluster: "eu", opted: opted, user: "system:serviceaccount:ci:other",
			groups: []string{everybody}, err: ErrSystemName},
		"named for the Cluster and by no role": {cluster: "us", opted: opted, user: "system:serviceaccount:ci:deployer",
			err: ErrNotNamed},
		"a component": {cluster: "eu", user: "system:kube-scheduler", err: ErrSystemName},
		"a group of Kubernetes' own acts nowhere": {cluster: "us", user: "node", groups: []string{"system:nodes"},
			want: "node [] by [system:nodes]"},
		"nobody": {cluster: "eu", user: "system:anonymous",
			groups: []string{"system:unauthenticated"}, err: ErrSystemName},
		"a user without a name": {cluster: "eu", user: "", groups: []string{"devs"}, err: ErrSystemName},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := grants().ForCluster(c.cluster, map[string]string{wellknown.SystemNamesAnnotation: c.opted}).Judge(c.user,
				c.groups)
			got := fmt.Sprintf("%s %v by %v", id.User, id.Groups, id.By)
			if id.Hub {
				got = "the hub"
			}
			if !errors.Is(err, c.err) || c.err == nil && got != c.want {
				t.Errorf("judged %s, %v, want %s, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestHubActsOnlyAsGrantedIdentities(t *testing.T) {
	a := grants().ForCluster("eu", nil)
	if got, want := fmt.Sprint(a.Rules(nil)), fmt.Sprint([]rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"},
			ResourceNames: []string{"alice", "chief", "root"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"groups"},
			ResourceNames: []string{"devs", "ops"}}}); got != want {
		t.Errorf("the rules are %s, want %s", got, want)
	}
	if rules := (Grants{}).ForCluster("eu", nil).Rules(nil); len(rules) != 0 {
		t.Errorf("without allowed users the rules are %v", rules)
	}
	opted := grants().ForCluster("eu",
		map[string]string{wellknown.SystemNamesAnnotation: "system:serviceaccount:ci:deployer"})
	if rules := opted.Rules(nil); len(rules) != 3 || !slices.Equal(rules[2].ResourceNames, []string{"deployer"}) ||
		rules[2].Resources[0] != "serviceaccounts" {
		t.Errorf("with a service account they are %v", rules)
	}
}

// For every caller and all roles, the rules let the hub impersonate the caller and the caller's groups. They name all
// users that they apply to, and no system user of Kubernetes that the Cluster does not name.
func TestRulesContainGrantedIdentitiesWithoutSystemOnes(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	names := []string{"a", "b", "c", masters, everybody, "system:nodes", "system:serviceaccount:x:y", "system:anonymous",
		""}
	some := func() (out []string) {
		for _, n := range names {
			if r.Intn(3) == 0 {
				out = append(out, n)
			}
		}
		return out
	}
	for range 5000 {
		var bindings []rbacv1.ClusterRoleBinding
		for _, of := range []string{"eu", "us", "all"} {
			b := bind(of)
			for _, n := range some() {
				b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: []string{"User", "Group"}[r.Intn(2)], Name: n})
			}
			bindings = append(bindings, b)
		}
		opted := some()
		a := Derive([]rbacv1.ClusterRole{role("eu", "eu"), role("us", "us"), role("all")}, bindings).ForCluster("eu",
			map[string]string{wellknown.SystemNamesAnnotation: strings.Join(opted, ",")})
		id, err := a.Judge(names[r.Intn(len(names))], some())
		existing, _ := a.Role(nil, "h", Identity{})
		want, ours := a.Role(existing, "h", id)
		if !ours {
			t.Fatal("the hub does not know its own role")
		}
		may := map[string]bool{}
		for _, rule := range want.Rules {
			if len(rule.ResourceNames) == 0 {
				t.Fatalf("anybody: %v", rule)
			}
			for _, n := range rule.ResourceNames {
				may[rule.Resources[0]+" "+n] = true
				full := n
				if rule.Resources[0] == "serviceaccounts" {
					full = "system:serviceaccount:x:" + n
				}
				if full == everybody || strings.HasPrefix(full, systemPrefix) && !slices.Contains(opted, full) {
					t.Fatalf("the hub may act as %s; opted in are %q", full, opted)
				}
			}
		}
		if err != nil || id.Hub {
			continue
		}
		needs := []string{"users " + id.User}
		if account, is := strings.CutPrefix(id.User, accountPrefix); is {
			needs = []string{"serviceaccounts " + strings.TrimPrefix(account, "x:")}
		}
		for _, g := range id.Groups {
			needs = append(needs, "groups "+g)
		}
		for _, n := range needs {
			if !may[n] {
				t.Fatalf("%+v needs %s; the rules are %v", id, n, want.Rules)
			}
		}
	}
}

func TestForeignRoleStays(t *testing.T) {
	a := grants().ForCluster("eu", nil)
	made, _ := a.Role(nil, "h", Identity{})
	old := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: Impersonator,
		Labels: map[string]string{"karmada.io/system": "true"}}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users", "groups", "serviceaccounts"}}}}
	if want, ours := a.Role(old, "h", Identity{}); !ours || !reflect.DeepEqual(want.Rules, made.Rules) ||
		!Differs(old, want) {
		t.Errorf("what a hub of before wrote is ours: %v, becomes %v", ours, want.Rules)
	}
	if again, ours := a.Role(made, "h", Identity{}); !ours || Differs(made, again) {
		t.Errorf("the same again is written")
	}
	narrowed := made.DeepCopy()
	narrowed.Rules = narrowed.Rules[:1]
	theirs := old.DeepCopy()
	theirs.Labels = nil
	for what, existing := range map[string]*rbacv1.ClusterRole{"one narrowed": narrowed, "one of somebody": theirs} {
		if want, ours := a.Role(existing, "h", Identity{}); ours || Differs(existing, want) {
			t.Errorf("%s is taken for the hub's", what)
		}
	}
}

func TestAMemberOfAGroupIsInTheRoleAsLongAsTheGroupIsLetIn(t *testing.T) {
	a := grants().ForCluster("us", nil)
	id, err := a.Judge("olga", []string{"ops"})
	if err != nil {
		t.Fatal(err)
	}
	with, _ := a.Role(nil, "h", id)
	if !slices.Contains(with.Rules[0].ResourceNames, "olga") {
		t.Fatalf("she is not in %v", with.Rules)
	}
	if later, _ := a.Role(with, "h", Identity{}); Differs(with, later) {
		t.Errorf("she left: %v", later.Rules)
	}
	without, ours := (Grants{}).ForCluster("us", nil).Role(with, "h", Identity{})
	if !ours || len(without.Rules) != 0 || without.Annotations[wellknown.MembersOfGroupsAnnotation] != "" {
		t.Errorf("after her group is let in no more there are %v %v", without.Rules, without.Annotations)
	}
	for i := range most + 10 {
		with, _ = a.Role(with, "h", Identity{User: fmt.Sprint("u", i), By: []string{"ops"}})
	}
	if n := len(with.Rules[0].ResourceNames); n != most+2 ||
		!slices.Contains(with.Rules[0].ResourceNames, fmt.Sprint("u", most+9)) {
		t.Errorf("there are %d users", n) // and those whom roles name
	}
	// Names of issuers are long, and an annotation takes 256 KiB.
	for i := range most {
		with, _ = a.Role(with, "h", Identity{User: fmt.Sprint("https://issuer.example.com/", strings.Repeat("u", 200), "#",
			i), By: []string{"ops"}})
	}
	if n := len(with.Annotations[wellknown.MembersOfGroupsAnnotation]); n > 200<<10 || n < 100<<10 ||
		!strings.Contains(with.Annotations[wellknown.MembersOfGroupsAnnotation], fmt.Sprint("#", most-1)) {
		t.Errorf("the annotation has %d bytes", n)
	}
}

func TestABindingIsOfTheHubsAccountAlone(t *testing.T) {
	made, ours := Binding(nil, "h", "karmada-cluster", "karmada-impersonator")
	if s := made.Subjects; !ours || len(s) != 1 || s[0].Kind != "ServiceAccount" || s[0].Namespace != "karmada-cluster" ||
		s[0].Name != "karmada-impersonator" || made.RoleRef.Name != Impersonator {
		t.Fatalf("made is %v", made)
	}
	before := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: Impersonator}, RoleRef: made.RoleRef,
		Subjects: made.Subjects}
	foreign := before.DeepCopy()
	foreign.Subjects = append(foreign.Subjects, rbacv1.Subject{Kind: "User", Name: "eve"})
	changed := made.DeepCopy()
	changed.Subjects = foreign.Subjects
	ofAnother, _ := Binding(nil, "other", "karmada-cluster", "karmada-impersonator")
	for what, c := range map[string]struct {
		existing     *rbacv1.ClusterRoleBinding
		account      string
		ours, writes bool
	}{
		"the same":                      {made, "karmada-impersonator", true, false},
		"one of a hub of before":        {before, "karmada-impersonator", true, false},
		"that of another account":       {made, "other", true, true},
		"of before for another account": {before, "other", false, false},
		"one of somebody":               {foreign, "karmada-impersonator", false, false},
		"one that somebody changed":     {changed, "karmada-impersonator", false, false},
		"one of another hub":            {ofAnother, "karmada-impersonator", true, true},
	} {
		want, ours := Binding(c.existing, "h", "karmada-cluster", c.account)
		if ours != c.ours || Differs(c.existing, want) != c.writes {
			t.Errorf("%s: ours %t, to be written %t", what, ours, Differs(c.existing, want))
		}
		if c.writes && (len(want.Subjects) != 1 || want.Subjects[0].Name != c.account ||
			want.Annotations["argosy.io/hub"] != "h") {
			t.Errorf("%s becomes %v", what, want)
		}
	}
}

func TestPresentSubjectIsNoWriteUntilItMayBeRemoved(t *testing.T) {
	a := grants().ForCluster("us", nil)
	var role *rbacv1.ClusterRole
	for i := range most {
		role, _ = a.Role(role, "h", Identity{User: fmt.Sprintf("u%04d", i), By: []string{"ops"}})
	}
	for user, writes := range map[string]bool{"u0000": true, "u0499": true, "u0500": false, "u0999": false} {
		want, _ := a.Role(role, "h", Identity{User: user, By: []string{"ops"}})
		if Differs(role, want) != writes {
			t.Errorf("a call of %s is a write: %t", user, !writes)
		}
	}
}

// An administrator who lets in a name of Kubernetes' own lets in that one alone.
func TestNamesOfKubernetesOwnAreLetInOneByOne(t *testing.T) {
	for opted, want := range map[string]string{
		"":                             "[]",
		"system:nodes":                 "[system:nodes]",
		" system:nodes ,, nodes":       "[system:nodes]",
		"system:*":                     "[]",
		"*":                            "[]",
		"system:authenticated":         "[]",
		"system:unauthenticated":       "[]",
		"system:masters":               "[system:masters]",
		"SYSTEM:MASTERS":               "[]",
		"system:masters/../x":          "[]",
		"system:nodes\nsystem:masters": "[]",
	} {
		a := Derive([]rbacv1.ClusterRole{role("all")},
			[]rbacv1.ClusterRoleBinding{bind("all", "Group system:nodes", "Group system:masters", "Group system:authenticated",
				"Group system:")}).
			ForCluster("eu", map[string]string{wellknown.SystemNamesAnnotation: opted})
		if got := fmt.Sprint(a.Groups); got != want {
			t.Errorf("%q lets in %s, want %s", opted, got, want)
		}
	}
}

// A member of a group who is refused is not remembered, and one who stays is.
func TestNarrowedRoleRemembersWhoIsInIt(t *testing.T) {
	allowed := Derive([]rbacv1.ClusterRole{role("see")}, []rbacv1.ClusterRoleBinding{{RoleRef: rbacv1.RoleRef{
		Kind: "ClusterRole", Name: "see"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "devs"}}}}).ForCluster("eu", nil)
	had, _ := allowed.Role(nil, "a", Identity{User: "bob", By: []string{"devs"}})
	want, _ := allowed.Role(had, "a", Identity{User: "eve", By: []string{"devs"}})
	for step, users := range [Narrowings][]string{{"bob", "eve"}, {"bob"}, {"bob"}} {
		got := Narrowed(had, want, step)
		if !slices.Equal(got.Rules[0].ResourceNames, users) || !written(got) ||
			strings.Contains(got.Annotations["argosy.io/members-of-groups"], "eve") != (step == 0) ||
			!strings.Contains(got.Annotations["argosy.io/members-of-groups"], "bob") {
			t.Errorf("step %d gives %v and %v", step, got.Rules, got.Annotations)
		}
	}
	if got := Narrowed(nil, want, 1); got != want {
		t.Errorf("of no role it makes %v", got)
	}
}
