package roles

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// Need is a right of the hub in a member, and its purpose.
type Need struct {
	rbacv1.PolicyRule
	For string
}

// InMember returns the rights of the role minimal in a member: what the hub needs there for the kinds that it knows.
// accounts are the names of its service accounts, whose tokens it renews.
func InMember(accounts ...string) []Need {
	const rbac, anyone = "rbac.authorization.k8s.io", "the kinds that administrators of a namespace on the hub may write"
	need := func(purpose, group, of string, verbs ...string) Need {
		return Need{rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(of), Verbs: verbs}, purpose}
	}
	named := func(n Need, names ...string) Need { n.ResourceNames = names; return n }
	return append(templates(),
		need("approve steps of Rollouts", "rollouts.kruise.io", "rollouts/status", "patch"),
		need("namespaces of the hub, and brakes", "", "namespaces", verbs(manages)...),
		need("`staticAssignments` of FederatedResourceQuotas, and room", "", "resourcequotas", verbs(manages)...),
		need("room", "", "nodes", verbs(reads)...),
		need("why pods are not created", "", "events", "list"),
		need("endpoints of Services of other clusters", "discovery.k8s.io", "endpointslices", verbs(manages)...),
		need(anyone, "multicluster.x-k8s.io", "serviceexports serviceimports", verbs(manages)...),
		need("what clusters export, with `mcs: auto`", "multicluster.x-k8s.io", "serviceexports/status serviceimports/status",
			"patch"),
		need("propagated roles, and the users of `clusters/proxy`; Kubernetes refuses to grant what the hub lacks", rbac,
			"clusterroles clusterrolebindings", verbs(manages)...),
		need("metrics of autoscalers", "metrics.k8s.io", "pods nodes", "get", "list"),
		need("metrics of autoscalers, whose names are resources", "custom.metrics.k8s.io", "*", "get", "list"),
		need("the hub that manages the cluster", "coordination.k8s.io", "leases", "create"),
		named(need("the hub that manages the cluster", "coordination.k8s.io", "leases", "delete", "get", "update"),
			"argosy-hub"),
		need("verify a token before it is renewed", "authentication.k8s.io", "tokenreviews", "create"),
		named(need("renew the tokens of its accounts", "", "serviceaccounts/token", "create"), accounts...),
		Need{rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*",
			"/healthz", "/livez", "/readyz", "/version"}}, "health, version and served kinds"})
}

// templates returns the rights on the kinds of templates: those of Kubernetes that users of a namespace may write on
// the hub, and those of core/kind.
func templates() (all []Need) {
	sent, made := map[string][]string{}, map[string][]string{}
	add := func(to map[string][]string, group, resource string) {
		if !slices.Contains(to[group], resource) {
			to[group] = append(to[group], resource)
		}
	}
	// Lists of kinds of Kubernetes show whether a namespace is empty.
	add(made, "", "limitranges")
	add(made, "apps", "controllerrevisions")
	add(made, "storage.k8s.io", "csistoragecapacities")
	for _, k := range kubernetes {
		for resource := range strings.FieldsSeq(k.resources) {
			// Clusters make events and leases themselves. A subresource is no template.
			if k.level == writes && !strings.Contains(resource, "/") && resource != "events" && resource != "leases" {
				add(sent, k.group, resource)
			}
		}
	}
	for k := range kind.List() {
		plural, _ := meta.UnsafeGuessKindToResource(k.WithVersion(""))
		switch {
		case strings.HasSuffix(k.Group, "karmada.io"), k.MemberMade && k.ClusterScoped: // the hub has none in members
		case k.MemberMade:
			add(made, k.Group, plural.Resource)
		default:
			add(sent, k.Group, plural.Resource)
		}
	}
	for _, part := range []struct {
		purpose string
		of      map[string][]string
		verbs   []string
	}{{"templates and their status", sent, verbs(manages)},
		{"whether a namespace is empty and can be deleted", made, []string{"list"}}} {
		for _, group := range slices.Sorted(maps.Keys(part.of)) {
			slices.Sort(part.of[group])
			all = append(all, Need{rbacv1.PolicyRule{APIGroups: []string{group}, Resources: part.of[group],
				Verbs: part.verbs}, part.purpose})
		}
	}
	return all
}

// Minimal returns the rules of the role minimal.
func Minimal(accounts ...string) (rules []rbacv1.PolicyRule) {
	for _, n := range InMember(accounts...) {
		rules = append(rules, n.PolicyRule)
	}
	return rules
}

// Full returns the rules of the role full, which permit everything in a member.
func Full() []rbacv1.PolicyRule {
	all := []string{"*"}
	return []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: all},
		{NonResourceURLs: all, Verbs: []string{"get"}}}
}

// IsFull reports whether rules permit everything.
func IsFull(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, "*") && slices.Contains(r.Resources, "*") && slices.Contains(r.APIGroups, "*")
	})
}

// hubRefusal begins the sentences that name rights that the hub lacks in a member.
const hubRefusal = "the hub may not "

// HubLacks returns which right the hub lacks in a cluster by what the cluster said, and how to grant it; empty if it
// lacks none by that. A webhook may relay the denial of another user, so the sentence must name an account that
// `argosy join` or `argosy register` gives to the hub.
func HubLacks(cluster, said string) string {
	own := regexp.MustCompile(`(?i)user "system:serviceaccount:[^":]+:(?:karmada-agent-sa|karmada-` +
		regexp.QuoteMeta(cluster) + `)" (?:cannot |\(groups=.*\) is attempting to grant RBAC permissions not currently held)`)
	at := own.FindStringIndex(said)
	if at == nil {
		return ""
	}
	said = said[at[0]:]
	join := fmt.Sprintf("`argosy join %s --role full --cluster-kubeconfig FILE` permits it", cluster)
	if d := denial.FindStringSubmatch(said); strings.Contains(said[:at[1]-at[0]], "cannot ") {
		if d == nil || d[2] != "" {
			return ""
		}
		rule := verbs(manages)
		m := Missing{Verb: d[1], Resource: d[3], Group: d[4], Namespace: d[5], Cluster: cluster}
		if !slices.Contains(rule, m.Verb) {
			rule = []string{m.Verb}
		}
		return fmt.Sprintf("%s%s %s%s: %s, or a ClusterRole of its account there with the rule "+
			"{apiGroups: [%q], resources: [%q], verbs: [%s]}", hubRefusal, m.Verb, m.object(), m.place(), join, m.Group,
			m.Resource, strings.Join(rule, ", "))
	}
	return hubRefusal + "grant rights in cluster " + cluster + " that it lacks there: " + join
}

// Explained returns an error of a cluster with the right that the hub lacks there, if that is the cause.
func Explained(cluster string, err error) error {
	if lacks := HubLacks(cluster, err.Error()); lacks != "" {
		return fmt.Errorf("%s: %w", lacks, err)
	}
	return err
}
