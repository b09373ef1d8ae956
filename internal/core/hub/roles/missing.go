package roles

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Missing is a right that a user lacks.
type Missing struct {
	Verb  string `json:"verb"`
	Group string `json:"group,omitempty"`
	// Resource with its subresource, as "resourcebindings/pods".
	Resource string `json:"resource"`
	// Path is an address of the hub that is no object; then Group and Resource are empty.
	Path string `json:"path,omitempty"`
	// Namespace is empty for all namespaces, and for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Everywhere is true if the right is about the objects of all namespaces.
	Everywhere bool `json:"everywhere,omitempty"`
	// Role is the role with the fewest rights that has it; empty if none has.
	Role string `json:"role,omitempty"`
	// Cluster is the member in which the right is missing; empty for the hub.
	Cluster string `json:"cluster,omitempty"`
	// also is true if no request was refused, but the command that failed needs the right, too.
	also bool
}

// Lack returns the right as missing, with the role that has it.
func Lack(verb, group, resource, namespace string) Missing {
	return Missing{Verb: verb, Group: group, Resource: resource, Namespace: namespace}.named()
}

// LackPath returns the right to get an address of the hub as missing, with the role that has it.
func LackPath(path string) Missing { return Missing{Verb: "get", Path: path}.named() }

func (m Missing) named() Missing {
	m.Everywhere = m.Namespace == "" && !m.clusterScoped()
	m.Role = roleFor([]Missing{m})
	return m
}

// The roles of Kubernetes, which include ours.
const view, edit, admin = "view", "edit", "admin"

// candidates are the roles that are named, those with fewer rights first. View is for all namespaces: in one namespace,
// the role view has the same rights on the hub's kinds.
var candidates = []string{Fleet, View, view, edit, admin, Operator}

// roleFor returns the role with the fewest rights that has all of these; empty if none has.
func roleFor(all []Missing) string {
	for _, role := range candidates {
		if !slices.ContainsFunc(all, func(m Missing) bool { return !m.permittedBy(role) }) {
			return role
		}
	}
	return ""
}

// permittedBy reports whether a binding of a role, in the namespace of the right or in all, gives the right, and may be
// recommended: writers of all namespaces, or of those of the system, can read the credentials of members; no role is
// named for Secrets.
func (m Missing) permittedBy(role string) bool {
	system := m.Namespace == "" || names.OfSystem(m.Namespace)
	secret := m.Resource == "secrets" && m.Group == ""
	if (system || secret) && (role == edit || role == admin) || m.Namespace != "" && role == View {
		return false
	}
	rules := rulesInMembers[role]
	if m.Cluster == "" {
		rules = rulesOnHub[role]
	}
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		if len(r.ResourceNames) > 0 && m.Namespace != names.System && m.Namespace != "" {
			return false // the hub's own lease
		}
		return slices.Contains(r.Verbs, m.Verb) && (m.Path != "" && slices.Contains(r.NonResourceURLs, m.Path) ||
			slices.Contains(r.APIGroups, m.Group) && slices.Contains(r.Resources, m.Resource))
	})
}

// The rules of the candidates, on the hub and in members.
var rulesOnHub, rulesInMembers = func() (hub, members map[string][]rbacv1.PolicyRule) {
	hub, members = map[string][]rbacv1.PolicyRule{}, map[string][]rbacv1.PolicyRule{}
	for _, r := range ClusterRoles() {
		hub[r.Name] = r.Rules
	}
	own := map[string]string{view: View, edit: Edit, admin: Admin}
	for _, k := range kubernetes {
		for _, role := range []string{view, edit, admin}[k.from:] {
			members[role] = append(members[role], rbacv1.PolicyRule{Verbs: verbs(k.level), APIGroups: []string{k.group},
				Resources: strings.Fields(k.resources)})
			hub[role] = slices.Concat(hub[own[role]], members[role])
		}
	}
	return hub, members
}()

// kubernetes are the rights of Kubernetes' roles on its own kinds; from is the first role that has them: 0 is view, 1
// edit, 2 admin. A test compares them with the roles that Kubernetes creates.
var kubernetes = []struct {
	from             int
	level            level
	group, resources string
}{
	{0, reads, "", "configmaps endpoints events limitranges namespaces persistentvolumeclaims pods pods/log " +
		"replicationcontrollers replicationcontrollers/scale resourcequotas serviceaccounts services"},
	{0, reads, "apps", "controllerrevisions daemonsets deployments deployments/scale replicasets replicasets/scale " +
		"statefulsets statefulsets/scale"},
	{0, reads, "autoscaling", "horizontalpodautoscalers"},
	{0, reads, "batch", "cronjobs jobs"},
	{0, reads, "discovery.k8s.io", "endpointslices"},
	{1, writes, "events.k8s.io", "events"}, {0, reads, "events.k8s.io", "events"},
	{1, writes, "resource.k8s.io", "resourceclaims resourceclaimtemplates"},
	{0, reads, "resource.k8s.io", "resourceclaims resourceclaimtemplates"},
	{0, reads, "networking.k8s.io", "ingresses networkpolicies"},
	{0, reads, "policy", "poddisruptionbudgets"},
	{1, writes, "", "configmaps events persistentvolumeclaims pods pods/attach pods/exec pods/portforward pods/proxy " +
		"replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy"},
	{1, creates, "", "pods/eviction serviceaccounts/token"},
	{1, writes, "apps", "daemonsets deployments deployments/scale replicasets replicasets/scale statefulsets " +
		"statefulsets/scale"},
	{1, writes, "autoscaling", "horizontalpodautoscalers"},
	{1, writes, "batch", "cronjobs jobs"},
	{1, writes, "coordination.k8s.io", "leases"},
	{1, writes, "networking.k8s.io", "ingresses networkpolicies"},
	{1, writes, "policy", "poddisruptionbudgets"},
	{2, writes, "rbac.authorization.k8s.io", "rolebindings roles"},
}

// object returns the resource with its group, as "deployments.apps/scale", or the path.
func (m Missing) object() string {
	resource, part, divided := strings.Cut(m.Resource, "/")
	if m.Group != "" {
		resource += "." + m.Group
	}
	if divided {
		resource += "/" + part
	}
	return resource + m.Path
}

// refusal begins the sentences that name missing rights.
const refusal = "you may not "

func (m Missing) String() string { return refusal + m.Verb + " " + m.object() + m.place() }

// place returns the place of the objects, such as " in namespace shop".
func (m Missing) place() (where string) {
	switch {
	case m.Namespace != "":
		where = " in namespace " + m.Namespace
	case !m.clusterScoped():
		where = " in all namespaces"
	}
	if m.Cluster != "" {
		where += " of cluster " + m.Cluster
	}
	return where
}

// inNoNamespace are groups, and resources after a slash, whose objects are in no namespace.
var inNoNamespace = strings.Fields("/namespaces /nodes /persistentvolumes admissionregistration.k8s.io " +
	"apiextensions.k8s.io apiregistration.k8s.io certificates.k8s.io node.k8s.io scheduling.k8s.io " +
	"rbac.authorization.k8s.io/clusterroles rbac.authorization.k8s.io/clusterrolebindings " +
	"storage.k8s.io/storageclasses apps.karmada.io apps.kruise.io/resourcedistributions apps.kruise.io/sidecarsets " +
	"argoproj.io/clusterworkflowtemplates " +
	"cluster.karmada.io config.karmada.io remedy.karmada.io policy.karmada.io/clusteroverridepolicies " +
	"policy.karmada.io/clusterpropagationpolicies policy.karmada.io/clustertaintpolicies " +
	"work.karmada.io/clusterresourcebindings search.karmada.io" +
	" cluster.open-cluster-management.io/managedclusters cluster.open-cluster-management.io/managedclustersets" +
	" addon.open-cluster-management.io/clustermanagementaddons addon.open-cluster-management.io/addontemplates" +
	" release.argosy.io/enclosedmanifests release.argosy.io/releaseguards")

// clusterScoped reports whether the objects are in no namespace. Only a right to all objects may be about those of all
// namespaces.
func (m Missing) clusterScoped() bool {
	return m.Namespace == "" && (!slices.Contains([]string{"list", "watch", "deletecollection"}, m.Verb) ||
		slices.Contains(inNoNamespace, m.Group) || slices.Contains(inNoNamespace, m.Group+"/"+m.Resource))
}

// Sentence names all rights that a user lacks together, and the roles that have them; empty for none. For an answer
// that does without them.
func Sentence(all []Missing) string {
	rank := func(m Missing) int { return slices.Index(candidates, m.Role) }
	return sentence(all, func(m Missing) Missing {
		best := m
		for _, o := range all {
			in := m
			in.Namespace = o.Namespace
			// A role that is named anyway may suffice. That of operators permits more than to read.
			if o.Cluster == m.Cluster && m.Role != "" && o.Role != "" && o.Role != Operator && in.permittedBy(o.Role) &&
				(o.Namespace == m.Namespace && rank(o) > rank(best) || o.Namespace == "" && m.Namespace != "") {
				best = o
			}
		}
		return best
	})
}

// Needed is Sentence for a command that fails without these rights: it names a role that has all, or none.
func Needed(all []Missing) string {
	return sentence(all, func(m Missing) Missing {
		m.Role = roleFor(slices.DeleteFunc(slices.Clone(all), func(o Missing) bool {
			return o.Namespace != m.Namespace || o.Cluster != m.Cluster || o.Resource == intoMembers
		}))
		return m
	})
}

// How returns how a user gets rights to all objects of the hub, with one role.
func How(all []Missing) string { return Missing{Role: roleFor(all)}.how() }

// sentence names rights with their roles. grantOf returns a right with the role and the namespace of a binding that
// gives the right.
func sentence(all []Missing, grantOf func(Missing) Missing) string {
	var hows, parts []string
	rights := map[string][]Missing{}
	for _, m := range all {
		how := grantOf(m).how()
		if rights[how] = append(rights[how], m); len(rights[how]) == 1 {
			hows = append(hows, how)
		}
	}
	for _, how := range hows {
		parts = append(parts, phrases(rights[how]), how)
	}
	return strings.Join(parts, "; ")
}

// how returns how a user gets the right.
func (m Missing) how() string {
	binding, there := "ClusterRoleBinding", ""
	if m.Namespace != "" {
		binding = "RoleBinding"
	}
	if m.Cluster != "" {
		there = " in that cluster"
	}
	switch {
	case m.Resource == intoMembers:
		return "no role of the hub permits it: grant it cluster by cluster (docs/access.md#access-to-a-cluster)"
	case m.Role == "":
		return "only administrators may by default"
	}
	return "a " + binding + " to the ClusterRole " + m.Role + there + " permits it"
}

// phrases names rights: objects of a verb and a place together.
func phrases(all []Missing) (text string) {
	begin := map[bool]string{false: refusal, true: "the command also needs to "}
	for i, m := range all {
		same := func(o Missing) bool { return o.Verb == m.Verb && o.place() == m.place() && o.also == m.also }
		if slices.IndexFunc(all, same) < i {
			continue
		}
		var objects []string
		for _, o := range all {
			if same(o) && !slices.Contains(objects, o.object()) {
				objects = append(objects, o.object())
			}
		}
		switch {
		case text == "":
			text = begin[m.also]
		case strings.Contains(text, begin[m.also]):
			text += ", or "
		default:
			text += ", and " + begin[m.also]
		}
		text += m.Verb + " " + strings.Join(objects, ", ") + m.place()
	}
	return text
}

// intoMembers is the right to send requests to a member.
const intoMembers = "clusters/proxy"

// SameNamespace is, in a right that a command needs besides, the namespace of what was denied.
const SameNamespace = "."

// denial is what an API server says of a request that its RBAC denies.
var denial = regexp.MustCompile(`User "[^"]*" cannot (\S+) (?:path "([^"]+)"|resource "([^"]+)" in API group "([^"]*)" ` +
	`(?:at the cluster scope|in the namespace "([^"]+)"))(?:` + inCluster + `([^"]*)")?`)

const inCluster = ` in cluster "`

// saying is a text of a member that InCluster has quoted.
var saying = regexp.MustCompile(`cluster "[^"]*" says: "(?:[^"\\]|\\.)*"`)

// InCluster returns a text of a member with the cluster in each denial, so that Denied takes none for one of the hub. A
// text that names missing rights itself, as only the hub and its commands do, or that quotes another cluster, is quoted
// as the member's.
func InCluster(cluster, text string) string {
	text = denial.ReplaceAllStringFunc(text, func(said string) string {
		if i := strings.LastIndex(said, inCluster); i >= 0 {
			said = said[:i]
		}
		return said + inCluster + cluster + `"`
	})
	own := regexp.MustCompile(strings.Replace(saying.String(), `[^"]*`, regexp.QuoteMeta(cluster), 1))
	left := own.ReplaceAllString(text, "")
	if strings.Contains(left, refusal) || strings.Contains(left, hubRefusal) || strings.Contains(left, ` says: "`) {
		return fmt.Sprintf("cluster %q says: %q", cluster, text)
	}
	return text
}

// Denied names together the rights that a user lacks by the error of requests to the hub, and to members, whose texts
// InCluster has marked. It is empty for other errors, and for those that name rights already.
// needs are those that the command needs besides what the hub denied; one without a resource is about that.
func Denied(message string, needs ...Missing) string {
	message = saying.ReplaceAllString(message, "")
	if strings.Contains(message, refusal) || strings.Contains(message, hubRefusal) {
		return ""
	}
	var all []Missing
	add := func(m Missing) {
		if !slices.ContainsFunc(all, func(o Missing) bool { o.also = m.also; return o == m }) {
			all = append(all, m)
		}
	}
	for _, said := range denial.FindAllStringSubmatch(message, -1) {
		add(Missing{Verb: said[1], Path: said[2], Resource: said[3], Group: said[4], Namespace: said[5], Cluster: said[6]})
	}
	for _, m := range slices.Clone(all) {
		for _, n := range needs {
			if n.Resource == "" {
				n.Group, n.Resource, n.Namespace = m.Group, m.Resource, m.Namespace
			}
			if n.Namespace == SameNamespace {
				n.Namespace = m.Namespace
			}
			if n.also = true; m.Cluster == "" {
				add(n)
			}
		}
	}
	return Needed(all)
}
