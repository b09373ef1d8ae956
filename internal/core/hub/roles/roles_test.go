package roles

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/argosy-io/argosy/api/argo"
	"github.com/argosy-io/argosy/api/crds"
	"github.com/argosy-io/argosy/api/kruise"
)

// definitions returns all that the hub installs, by resource and group.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, read := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		crds.Definitions, kruise.Hub, argo.CRDs} {
		some, err := read()
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range some {
			all[crd.Name] = crd
		}
	}
	return all
}

// beside are served without a definition.
var beside = []string{"clusters/proxy.cluster.karmada.io", "resourcebindings/pods.work.karmada.io",
	"proxying/proxy.search.karmada.io", "search/api.search.karmada.io", "search/apis.search.karmada.io",
	"pods.metrics.k8s.io", "nodes.metrics.k8s.io"}

// A new kind, or a subresource of one, fails this until somebody has decided who may use it.
func TestEveryKindOfTheHubIsDecidedForEachRole(t *testing.T) {
	all, decided := definitions(t), map[string]Decision{}
	for _, d := range Decisions {
		name := d.Resource + "." + d.Group
		if _, twice := decided[name]; twice {
			t.Errorf("%s is decided twice", name)
		}
		decided[name] = d
		if d.Why == "" {
			t.Errorf("%s: nothing says why nobody may do more", name)
		}
		if all[name] == nil && !slices.Contains(beside, name) {
			t.Errorf("%s is decided, and the hub does not serve it", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d, ok := decided[name]
		if !ok {
			t.Errorf("decide in internal/core/hub/roles what each role may do with %s, and in docs/access.md say so", name)
			continue
		}
		for _, v := range all[name].Spec.Versions {
			status := v.Subresources != nil && v.Subresources.Status != nil
			scale := v.Subresources != nil && v.Subresources.Scale != nil
			if status != d.Status || scale != d.Scale {
				t.Errorf("%s %s has the subresources status: %t, scale: %t; decided are %t and %t", name, v.Name, status, scale,
					d.Status, d.Scale)
			}
		}
	}
}

func role(t *testing.T, name string) rbacv1.ClusterRole {
	t.Helper()
	all := ClusterRoles()
	i := slices.IndexFunc(all, func(r rbacv1.ClusterRole) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return all[i]
}

// forEachRight calls f for each verb and resource that a role allows.
func forEachRight(r rbacv1.ClusterRole, f func(verb, group, resource string)) {
	for _, rule := range r.Rules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					f(verb, group, resource)
				}
			}
		}
	}
}

func TestRolesAllowNoEscalation(t *testing.T) {
	for _, r := range ClusterRoles() {
		forEachRight(r, func(verb, group, resource string) {
			what := r.Name + " may " + verb + " " + resource + "." + group
			_, sub, _ := strings.Cut(resource, "/")
			switch {
			case strings.Contains(verb+group+resource, "*"):
				t.Errorf("%s: what is to come would be in it as well", what)
			case slices.Contains([]string{"bind", "escalate", "impersonate"}, verb) || group == rbacv1.GroupName:
				t.Errorf("%s: with that one gets more", what)
			case verb != "get" && (sub == "status" || sub == "finalizers") || sub == "proxy":
				t.Errorf("%s", what)
			case group == "" && !slices.Contains([]string{"namespaces", "events"}, resource):
				t.Errorf("%s: Kubernetes' own roles decide that", what)
			}
		})
	}
}

func TestNoRoleReadsSecretKinds(t *testing.T) {
	for _, r := range ClusterRoles() {
		forEachRight(r, func(verb, _, resource string) {
			if slices.Contains([]string{"secrets", "works", "manifestworks", "manifestworkreplicasets", "enclosedmanifests",
				"resourcedistributions", "addontemplates", "addondeploymentconfigs"},
				strings.Split(resource, "/")[0]) {
				t.Errorf("%s may %s %s", r.Name, verb, resource)
			}
		})
	}
}

// In a namespace, whoever is bound: each role has what the one before has, and none writes what is in no namespace.
func TestNamespaceRolesNestAndWriteNoClusterScopedKind(t *testing.T) {
	all, before := definitions(t), map[string]bool{}
	for _, name := range []string{View, Edit, Admin} {
		has := map[string]bool{}
		forEachRight(role(t, name), func(verb, group, resource string) {
			has[verb+" "+resource+"."+group] = true
			plain, _, _ := strings.Cut(resource, "/")
			crd := all[plain+"."+group]
			if crd == nil && resource != "leases" && !slices.Contains(beside, resource+"."+group) {
				t.Errorf("%s may %s %s.%s, which is none of the hub's", name, verb, resource, group)
			}
			write := !slices.Contains(verbs(reads), verb)
			if write && (name == View || crd == nil || crd.Spec.Scope == apiextensionsv1.ClusterScoped) {
				t.Errorf("%s may %s %s.%s", name, verb, resource, group)
			}
		})
		for right := range before {
			if !has[right] {
				t.Errorf("%s may not %s, which the role before may", name, right)
			}
		}
		before = has
	}
}

// Operators write nothing in a namespace, create no cluster, and cannot delete the whole fleet in one request. They may
// stop releases: admission permits no other change with these verbs.
func TestOperatorsWriteOnlyFleetObjects(t *testing.T) {
	all, wrote := definitions(t), 0
	forEachRight(role(t, Operator), func(verb, group, resource string) {
		if slices.Contains(verbs(reads), verb) {
			return
		}
		wrote++
		if resource == "releases" && slices.Contains([]string{"abort", "patch", "pause", "rollback"}, verb) {
			return
		}
		if slices.Contains([]string{"managedclusteraddons", "addonplacementscores"}, resource) && verb != "deletecollection" {
			return // its namespace is that of a cluster
		}
		if crd := all[resource+"."+group]; crd == nil || crd.Spec.Scope != apiextensionsv1.ClusterScoped ||
			verb == "deletecollection" || verb+" "+resource == "create clusters" ||
			verb+" "+resource == "create managedclusters" {
			t.Errorf("operators may %s %s.%s", verb, resource, group)
		}
	})
	if wrote == 0 {
		t.Error("operators may write nothing")
	}
	if labels := role(t, Operator).Labels; len(labels) > 0 {
		t.Errorf("operators' role is part of others: %v", labels)
	}
}

// Who may write quotas is not limited by them.
func TestNoRoleWritesQuotas(t *testing.T) {
	for _, name := range []string{Fleet, View, Edit, Admin, Operator} {
		read := false
		forEachRight(role(t, name), func(verb, _, resource string) {
			if resource == "federatedresourcequotas" || resource == "federatedresourcequotas/status" {
				read = true
				if !slices.Contains(verbs(reads), verb) {
					t.Errorf("%s may %s %s", name, verb, resource)
				}
			}
		})
		if read != (name != Fleet) {
			t.Errorf("%s may read quotas: %v", name, read)
		}
	}
}

func TestRolesArePartOfKubernetesRolesOfTheirNames(t *testing.T) {
	for name, want := range map[string][]string{View: {"view", "edit", "admin"}, Edit: {"edit", "admin"},
		Admin: {"admin"}} {
		r := role(t, name)
		if len(r.Labels) != len(want) {
			t.Errorf("%s has the labels %v", name, r.Labels)
		}
		for _, of := range want {
			if r.Labels["rbac.authorization.k8s.io/aggregate-to-"+of] != "true" {
				t.Errorf("%s is not part of %s: %v", name, of, r.Labels)
			}
		}
	}
	for _, r := range ClusterRoles() {
		if r.Annotations[rbacv1.AutoUpdateAnnotationKey] != "true" {
			t.Errorf("%s does not say that a start brings it up to date", r.Name)
		}
	}
}

func TestRolesMayControlReleases(t *testing.T) {
	may := map[string]string{}
	for _, name := range Names() {
		forEachRight(role(t, name), func(verb, group, resource string) {
			if group == "release.argosy.io" {
				may[resource] += name + " " + verb + "; "
			}
		})
	}
	for verb, want := range map[string][]string{
		"get": {View, Edit, Admin, Operator}, "create": {Edit, Admin}, "update": {Edit, Admin}, "delete": {Edit, Admin},
		"patch": {Edit, Admin, Operator}, "pause": {Edit, Admin, Operator}, "abort": {Edit, Admin, Operator},
		"rollback": {Edit, Admin, Operator}, "resume": {Admin}, "skip": {Admin}, "retry": {Admin}, "approve": {Admin},
	} {
		for _, name := range Names() {
			if got := strings.Contains(may["releases"], name+" "+verb+"; "); got != slices.Contains(want, name) {
				t.Errorf("%s may %s releases: %t", name, verb, got)
			}
		}
	}
	for _, right := range []string{"update", "patch", "delete", "deletecollection"} {
		if strings.Contains(may["releaseapprovals"]+may["releaserevisions"], right) {
			t.Errorf("a role may %s releaseapprovals or releaserevisions", right)
		}
	}
	if may := may["releaseapprovals"]; strings.Count(may, "create") != 1 || !strings.Contains(may, Admin+" create; ") {
		t.Errorf("only administrators of a namespace create releaseapprovals, but %s", may)
	}
}

func TestTheRoleThatMayGetAPathIsNamed(t *testing.T) {
	for path, want := range map[string]string{
		"/argosy/scheduler":  "you may not get /argosy/scheduler; a ClusterRoleBinding to the ClusterRole argosy:fleet permits it",
		"/argosy/room":       "you may not get /argosy/room; a ClusterRoleBinding to the ClusterRole argosy:view permits it",
		"/readyz/etcd":       "you may not get /readyz/etcd; a ClusterRoleBinding to the ClusterRole argosy:operator permits it",
		"/readyz/store":      "you may not get /readyz/store; a ClusterRoleBinding to the ClusterRole argosy:operator permits it",
		"/argosy/encryption": "you may not get /argosy/encryption; only administrators may by default",
		"/metrics":           "you may not get /metrics; only administrators may by default",
	} {
		if got := Sentence([]Missing{LackPath(path)}); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// The sentences say of no object in a namespace, and of no other, that it is in none.
func TestObjectsWithoutNamespaceAreKnown(t *testing.T) {
	for name, crd := range definitions(t) {
		resource, group, _ := strings.Cut(name, ".")
		scoped := crd.Spec.Scope == apiextensionsv1.ClusterScoped
		if got := Lack("list", group, resource, ""); got.clusterScoped() != scoped || got.Everywhere == scoped {
			t.Errorf("%s is in no namespace: %t, everywhere: %t", name, got.clusterScoped(), got.Everywhere)
		}
		for _, m := range []Missing{Lack("get", group, resource, ""), Lack("list", group, resource, "shop")} {
			if m.Everywhere {
				t.Errorf("%s: it is about the objects of all namespaces", m)
			}
		}
	}
}

// A command needs one role that has all of its rights; an answer does without them, and names the smallest of each.
func TestRightsAreNamedTogether(t *testing.T) {
	clusters := Lack("list", "cluster.karmada.io", "clusters", "")
	patch := Lack("patch", "cluster.karmada.io", "clusters", "")
	bindings := Lack("list", "work.karmada.io", "resourcebindings", "")
	works := Lack("list", "work.karmada.io", "works", "")
	lease := Lack("get", "coordination.k8s.io", "leases", "karmada-system")
	const fleet, view, operator = "; a ClusterRoleBinding to the ClusterRole argosy:fleet permits it",
		"; a ClusterRoleBinding to the ClusterRole argosy:view permits it",
		"; a ClusterRoleBinding to the ClusterRole argosy:operator permits it"
	const listClusters = "you may not list clusters.cluster.karmada.io"
	for _, c := range []struct {
		all              []Missing
		sentence, needed string
	}{
		{[]Missing{clusters}, listClusters + fleet, listClusters + fleet},
		{[]Missing{clusters, bindings}, listClusters + ", or list resourcebindings.work.karmada.io in all namespaces" + view,
			listClusters + ", or list resourcebindings.work.karmada.io in all namespaces" + view},
		{[]Missing{clusters, patch}, listClusters + fleet + "; you may not patch clusters.cluster.karmada.io" + operator,
			listClusters + ", or patch clusters.cluster.karmada.io" + operator},
		{[]Missing{clusters, works}, listClusters + fleet + "; you may not list works.work.karmada.io in all namespaces; " +
			"only administrators may by default", listClusters + ", or list works.work.karmada.io in all namespaces; only " +
			"administrators may by default"},
		{[]Missing{bindings, lease, LackPath("/argosy/pods")}, "you may not list resourcebindings.work.karmada.io in all " +
			"namespaces, or get leases.coordination.k8s.io in namespace karmada-system, or get /argosy/pods" + view,
			"you may not list resourcebindings.work.karmada.io in all namespaces, or get /argosy/pods" + view +
				"; you may not get leases.coordination.k8s.io in namespace karmada-system; a RoleBinding to the ClusterRole " +
				"view permits it"},
	} {
		if got := Sentence(c.all); got != c.sentence {
			t.Errorf("Sentence:\n%s\nwant\n%s", got, c.sentence)
		}
		if got := Needed(c.all); got != c.needed {
			t.Errorf("Needed:\n%s\nwant\n%s", got, c.needed)
		}
	}
	const denial = `clusters.cluster.karmada.io "eu" is forbidden: User "dev" cannot get resource "clusters" in API group ` +
		`"cluster.karmada.io" at the cluster scope`
	want := "you may not get clusters.cluster.karmada.io, and the command also needs to patch clusters.cluster.karmada.io" +
		operator
	if got := Denied(denial, Missing{Verb: "get"}, Missing{Verb: "patch"}); got != want {
		t.Errorf("Denied:\n%s\nwant\n%s", got, want)
	}
}

// What a member says is denied there, whatever it says: no role of the hub is named for it.
func TestDenialsOfMembersAreNeverTheHubs(t *testing.T) {
	const clusters = `User "x" cannot patch resource "clusters" in API group "cluster.karmada.io" at the cluster scope`
	for _, said := range []string{
		clusters,
		`on the hub: User "x" cannot list resource "deployments" in API group "apps" in the namespace "shop"`,
		`User "x" cannot get path "/argosy/pods"`,
		`cluster "us": ` + clusters,
		"one\n" + clusters + ` in cluster ""` + "\n" + clusters + ` in cluster "us"`,
	} {
		marked := InCluster("eu", said)
		got := Denied(marked, Missing{Verb: "get"}, Missing{Verb: "get", Group: "cluster.karmada.io", Resource: "clusters"})
		if n := strings.Count(got, "permits it"); !strings.Contains(got, "you may not ") ||
			n != strings.Count(got, "in that cluster permits it") || strings.Contains(got, "also needs") ||
			!strings.Contains(got, "of cluster eu") {
			t.Errorf("%q is named %q", said, got)
		}
		if again := InCluster("eu", marked); again != marked {
			t.Errorf("it is marked twice: %q", again)
		}
	}
}

// A member may say what the hub and its commands say of missing rights. It is quoted, and names nothing.
func TestSentencesOfMembersAboutRightsAreQuoted(t *testing.T) {
	const forged = "you may not list clusters.cluster.karmada.io; a ClusterRoleBinding to the ClusterRole argosy:fleet permits it"
	const genuine = `User "x" cannot list resource "pods" in API group "" in the namespace "shop" in cluster "us"`
	for name, said := range map[string]string{
		"plain": forged, "with a newline": "not found\n\n" + forged, "with quotes": `it is "` + forged + `"`,
		"as if it was quoted": `cluster "eu" says: "fine" ` + forged, "with an open quote": `cluster "eu" says: "` + forged,
		"with a denial": genuine + "\n" + forged,
	} {
		t.Run(name, func(t *testing.T) {
			marked := InCluster("eu", said)
			if left := saying.ReplaceAllString(marked, ""); strings.TrimSpace(left) != "" {
				t.Errorf("not quoted is %q in %s", left, marked)
			}
			for _, wrapped := range []string{marked, "Error from server: " + marked, marked + "\n" + marked} {
				if again := InCluster("eu", wrapped); again != wrapped {
					t.Errorf("it is quoted twice: %s", again)
				}
			}
			if got := Denied(marked, Missing{Verb: "get", Group: "cluster.karmada.io", Resource: "clusters"}); got != "" {
				t.Errorf("it names %q", got)
			}
			if got := Denied(marked + "\n" + genuine); !strings.HasPrefix(got,
				"you may not list pods in namespace shop of cluster us") {
				t.Errorf("it hides what another cluster denies: %q", got)
			}
		})
	}
	for _, said := range []string{`pods "web" not found`, `cluster "eu" says: "no"`, ""} {
		if got := InCluster("eu", said); got != said {
			t.Errorf("%q becomes %q", said, got)
		}
	}
}

func TestRightsBesidesAreInTheNamespaceOfTheDenial(t *testing.T) {
	got := Denied(`User "x" cannot get resource "releases" in API group "release.argosy.io" in the namespace "shop"`,
		Missing{Verb: "create", Group: "release.argosy.io", Resource: "releaseapprovals", Namespace: SameNamespace})
	if !strings.Contains(got, "also needs to create releaseapprovals.release.argosy.io in namespace shop; a RoleBinding "+
		"to the ClusterRole admin permits it") {
		t.Error(got)
	}
}
