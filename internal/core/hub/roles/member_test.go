package roles

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

var update = flag.Bool("update", false, "write the table of docs/member-rights.md")

const (
	page  = "../../../../docs/member-rights.md"
	begin = "<!-- rights: go test ./internal/core/hub/roles -update -->\n"
	end   = "<!-- end of rights -->\n"
)

func TestPageListsTheRightsOfTheRoleMinimal(t *testing.T) {
	b := &strings.Builder{}
	b.WriteString("| group | resources | verbs | for |\n|---|---|---|---|\n")
	for _, n := range InMember("karmada-NAME", "karmada-impersonator") {
		what := strings.Join(append(slices.Clone(n.Resources), n.NonResourceURLs...), ", ")
		if len(n.ResourceNames) > 0 {
			what += ": only `" + strings.Join(n.ResourceNames, "`, `") + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", strings.Join(n.APIGroups, ""), strings.ReplaceAll(what, "*", "`*`"),
			strings.Join(n.Verbs, ", "), n.For)
	}
	coretest.PagePart(t, page, begin, end, b.String(), *update)
}

func permits(rules []rbacv1.PolicyRule, verb, group, resource, name string) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) &&
			slices.Contains(r.Resources, resource) && (len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
	})
}

func TestEveryKnownKindIsInTheRoleMinimal(t *testing.T) {
	rules := Minimal("karmada-eu")
	for k := range kind.List() {
		plural, _ := meta.UnsafeGuessKindToResource(k.WithVersion(""))
		wanted := verbs(manages)
		switch {
		case k.Group == "autoscaling.karmada.io", k.MemberMade && k.ClusterScoped:
			wanted = nil
		case k.MemberMade:
			wanted = []string{"list"}
		}
		for _, verb := range verbs(writes) {
			if got := permits(rules, verb, k.Group, plural.Resource, ""); got != slices.Contains(wanted, verb) {
				t.Errorf("to %s %s is permitted: %t", verb, plural.GroupResource(), got)
			}
		}
		// The guessed plural is the one of the hub's definitions.
		if slices.ContainsFunc(Decisions, func(d Decision) bool { return d.Group == k.Group }) && !k.MemberMade &&
			k.Group != "autoscaling.karmada.io" && !slices.ContainsFunc(Decisions, func(d Decision) bool {
			return d.Group == k.Group && d.Resource == plural.Resource
		}) {
			t.Errorf("%s is no resource of the hub", plural.GroupResource())
		}
	}
	// What users of a namespace propagate, and what the hub itself reads and writes in a member.
	for _, want := range [][4]string{
		{"patch", "", "configmaps"}, {"create", "", "secrets"}, {"watch", "", "services"},
		{"create", "networking.k8s.io", "ingresses"}, {"update", "rbac.authorization.k8s.io", "rolebindings"},
		{"watch", "", "nodes"}, {"watch", "", "namespaces"}, {"watch", "", "resourcequotas"}, {"list", "", "events"},
		{"patch", "rollouts.kruise.io", "rollouts/status"}, {"watch", "discovery.k8s.io", "endpointslices"},
		{"create", "coordination.k8s.io", "leases"}, {"update", "coordination.k8s.io", "leases", tenure.Name},
		{"delete", "coordination.k8s.io", "leases", tenure.Name}, {"create", "authentication.k8s.io", "tokenreviews"},
		{"create", "", "serviceaccounts/token", "karmada-eu"},
		{"update", "rbac.authorization.k8s.io", "clusterroles"},
		{"delete", "rbac.authorization.k8s.io", "clusterrolebindings"},
	} {
		if !permits(rules, want[0], want[1], want[2], want[3]) {
			t.Errorf("%v is not permitted", want)
		}
	}
}

func TestTheRoleMinimalOpensNoBackDoor(t *testing.T) {
	rules := Minimal("karmada-eu", "karmada-impersonator")
	for _, r := range rules {
		for _, verb := range []string{"*", "escalate", "bind", "impersonate", "deletecollection", "approve", "sign"} {
			if slices.Contains(r.Verbs, verb) {
				t.Errorf("it has the verb %s: %v", verb, r)
			}
		}
		if slices.Contains(r.APIGroups, "*") || slices.Contains(r.NonResourceURLs, "*") ||
			slices.Contains(r.Resources, "*") && r.APIGroups[0] != "custom.metrics.k8s.io" {
			t.Errorf("it is about everything: %v", r)
		}
	}
	for _, door := range [][4]string{
		{"create", "", "serviceaccounts/token", "other"}, {"create", "", "pods/exec"}, {"get", "", "pods/exec"},
		{"create", "", "pods/attach"}, {"create", "", "pods/portforward"}, {"get", "", "pods/proxy"},
		{"get", "", "services/proxy"}, {"get", "", "nodes/proxy"}, {"update", "", "nodes"}, {"get", "", "pods/log"},
		{"create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"},
		{"create", "apiextensions.k8s.io", "customresourcedefinitions"}, {"update", "coordination.k8s.io", "leases", "other"},
		{"create", "certificates.k8s.io", "certificatesigningrequests"}, {"create", "", "persistentvolumes"},
	} {
		if permits(rules, door[0], door[1], door[2], door[3]) {
			t.Errorf("%v is permitted", door)
		}
	}
	if IsFull(rules) || !IsFull(Full()) {
		t.Error("the two roles are not told apart")
	}
}

func TestHubNamesTheRightThatItLacksInAMember(t *testing.T) {
	const account = `User "system:serviceaccount:karmada-cluster:karmada-eu"`
	const verbs = "verbs: [create, delete, get, list, patch, update, watch]"
	const join = "`argosy join eu --role full --cluster-kubeconfig FILE` permits it"
	for said, want := range map[string]string{
		`trains.example.com is forbidden: ` + account +
			` cannot create resource "trains" in API group "example.com" in the namespace "shop"`: "the hub may not create " +
			"trains.example.com in namespace shop of cluster eu: " + join + ", or a ClusterRole of its account there with the " +
			`rule {apiGroups: ["example.com"], resources: ["trains"], ` + verbs + `}`,
		`nodes is forbidden: ` + account + ` cannot list resource "nodes" in API group "" at the cluster scope`: "the hub " +
			`may not list nodes of cluster eu: ` + join + `, or a ClusterRole of its account there with the rule ` +
			`{apiGroups: [""], resources: ["nodes"], ` + verbs + `}`,
		`clusterrolebindings.rbac.authorization.k8s.io "a" is forbidden: user "system:serviceaccount:karmada-cluster:karmada-eu" (groups=["y"]) is attempting to grant ` +
			`RBAC permissions not currently held: {APIGroups:["*"]}`: "the hub may not grant rights in cluster eu that it " +
			"lacks there: " + join,
		`User "system:serviceaccount:karmada-system:karmada-agent-sa" cannot impersonate resource "users" in API group "" ` +
			"at the cluster scope": "the hub may not impersonate users of cluster eu: " + join + ", or a ClusterRole of its " +
			`account there with the rule {apiGroups: [""], resources: ["users"], verbs: [impersonate]}`,
		// What others lack, which a webhook relays, is not for the hub to get.
		`admission webhook "w" denied the request: User "olga" cannot list resource "nodes" in API group "" at the cluster ` +
			"scope": "",
		`admission webhook "w" denied the request: User "system:serviceaccount:karmada-cluster:karmada-us" cannot list ` +
			`resource "nodes" in API group "" at the cluster scope`: "",
		`admission webhook "w" denied the request: user "olga" (groups=["y"]) is attempting to grant RBAC permissions not ` +
			"currently held": "",
		`admission webhook "w" denied the request: no`: "",
		account + ` cannot get path "/metrics"`:        "",
	} {
		got := HubLacks("eu", said)
		if got != want {
			t.Errorf("of %q it says\n%s\nwant\n%s", said, got, want)
		}
		if got != "" && (HubLacks("eu", got) != "" || Denied(got+": "+said) != "") {
			t.Errorf("what it says is taken for a denial of a user: %s", Denied(got+": "+said))
		}
	}
	// A member cannot speak for the hub.
	if got := InCluster("eu", "the hub may not list pods: run x"); !strings.HasPrefix(got, `cluster "eu" says: `) {
		t.Error(got)
	}
}

// No default role grants a role in members: only administrators write enclosed manifests.
func TestOnlyAdministratorsWriteWhatGrantsAccess(t *testing.T) {
	for _, verb := range verbs(writes) {
		if m := Lack(verb, "release.argosy.io", "enclosedmanifests", ""); m.Role != "" {
			t.Errorf("to %s enclosedmanifests, %s suffices", verb, m.Role)
		}
	}
}
