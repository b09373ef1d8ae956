package roles

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Missing is a right that a user lacks.
type Missing struct {
	Verb  string `json:"verb"`
	Group string `json:"group,omitempty"`
	// Resource with its subresource, as "resourcebindings/pods".
	Resource string `json:"resource"`
	// Namespace is empty for all namespaces, and for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Role is the role with the fewest rights that has it; empty if none has.
	Role string `json:"role,omitempty"`
	// Cluster is the member in which the right is missing; empty for the hub.
	Cluster string `json:"cluster,omitempty"`
}

// Lack returns the right as missing, with the role that has it.
func Lack(verb, group, resource, namespace string) Missing {
	m := Missing{Verb: verb, Group: group, Resource: resource, Namespace: namespace}
	i := slices.IndexFunc(Decisions, func(d Decision) bool { return d.Group == group && d.Resource == resource })
	for _, role := range Names() {
		if m.Role == "" && i >= 0 && slices.Contains(Verbs(role, Decisions[i]), verb) {
			m.Role = role
		}
	}
	if i < 0 {
		m.Role = kubernetesRole(verb, group, resource)
	}
	return m
}

// kubernetes has resources that Kubernetes' role view reads, and edit writes.
var kubernetes = map[string][]string{
	"":                  {"configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "serviceaccounts", "services"},
	"apps":              {"daemonsets", "deployments", "replicasets", "statefulsets"},
	"autoscaling":       {"horizontalpodautoscalers"},
	"batch":             {"cronjobs", "jobs"},
	"networking.k8s.io": {"ingresses", "networkpolicies"},
	"policy":            {"poddisruptionbudgets"},
}

// onlyRead has resources of the core group that Kubernetes' role view reads, and edit does not write.
var onlyRead = []string{"events", "limitranges", "namespaces", "pods/log", "resourcequotas"}

// kubernetesRole returns the one of Kubernetes' roles view and edit that has a right; empty if that is not known.
func kubernetesRole(verb, group, resource string) string {
	reads := slices.Contains([]string{"get", "list", "watch"}, verb)
	writes := slices.Contains([]string{"create", "delete", "patch", "update"}, verb)
	switch {
	case reads && (slices.Contains(kubernetes[group], resource) || group == "" && slices.Contains(onlyRead, resource)):
		return "view"
	case slices.Contains(kubernetes[group], resource) && writes:
		return "edit"
	}
	return ""
}

// object returns the resource with its group, as "deployments.apps/scale".
func (m Missing) object() string {
	resource, part, divided := strings.Cut(m.Resource, "/")
	if m.Group != "" {
		resource += "." + m.Group
	}
	if divided {
		resource += "/" + part
	}
	return resource
}

func (m Missing) String() string { return m.sentence(m.object()) }

// sentence returns the sentence about several resources.
func (m Missing) sentence(objects string) string {
	where := "in all namespaces"
	if m.Namespace != "" {
		where = "in namespace " + m.Namespace
	}
	if m.Cluster != "" {
		where += " of cluster " + m.Cluster
	}
	return fmt.Sprintf("you may not %s %s %s", m.Verb, objects, where)
}

// LackOfPath names the right to get an address of the hub as missing, with the role that has it.
func LackOfPath(path string) string {
	text := "you may not get " + path
	i := slices.IndexFunc(Paths, func(p Path) bool { return p.Path == path })
	for _, role := range Names() {
		if i >= 0 && Paths[i].Allows(role) {
			return text + "; a ClusterRoleBinding to the ClusterRole " + role + " permits it"
		}
	}
	return text
}

// Sentence names all rights that a user lacks together, and the roles that have them; empty for none.
func Sentence(all []Missing) string {
	var parts []string
	for len(all) > 0 {
		first, objects, others := all[0], []string(nil), []Missing(nil)
		for _, m := range all {
			if m.Verb == first.Verb && m.Namespace == first.Namespace && m.Role == first.Role &&
				m.Cluster == first.Cluster {
				if object := m.object(); !slices.Contains(objects, object) {
					objects = append(objects, object)
				}
			} else {
				others = append(others, m)
			}
		}
		part, binding, there := first.sentence(strings.Join(objects, ", ")), "a ClusterRoleBinding", ""
		if first.Namespace != "" {
			binding = "a RoleBinding"
		}
		if first.Cluster != "" {
			there = " in that cluster"
		}
		switch {
		case first.Role != "":
			part += "; " + binding + " to the ClusterRole " + first.Role + there + " permits it"
		case first.Resource == intoMembers:
			part += "; no role of the hub permits it: grant it cluster by cluster (docs/access.md#access-to-a-cluster)"
		}
		parts, all = append(parts, part), others
	}
	return strings.Join(parts, "; ")
}

// intoMembers is the right to send requests to a member.
const intoMembers = "clusters/proxy"

// denial is what an API server says of a request that its RBAC denies.
var denial = regexp.MustCompile(`User "[^"]*" cannot (\S+) (?:path "([^"]+)"|resource "([^"]+)" in API group "([^"]*)" ` +
	`(?:at the cluster scope|in the namespace "([^"]+)"))`)

// somewhere is how an error names the cluster of a request, or the hub.
var somewhere = regexp.MustCompile(`cluster "([^"]+)"|on the hub`)

// Denied names together the rights that a user lacks by the error of requests to the hub, and to members through the
// hub, which names the cluster before the denial. It is empty for other errors, and for those that name rights already.
func Denied(message string) string {
	if strings.Contains(message, "you may not ") {
		return ""
	}
	var all []Missing
	var paths []string
	for _, at := range denial.FindAllStringSubmatchIndex(message, -1) {
		said := denial.FindStringSubmatch(message[at[0]:at[1]])
		verb, path, resource, group, namespace := said[1], said[2], said[3], said[4], said[5]
		if path != "" {
			paths = append(paths, LackOfPath(path))
			continue
		}
		m := Lack(verb, group, resource, namespace)
		if places := somewhere.FindAllStringSubmatch(message[:at[0]], -1); len(places) > 0 && !hubOnly(group) {
			m.Cluster = places[len(places)-1][1]
		}
		if m.Cluster != "" { // the roles of the hub are not in the member
			m.Role = kubernetesRole(verb, group, resource)
		}
		all = append(all, m)
	}
	if len(all) > 0 {
		paths = append(paths, Sentence(all))
	}
	return strings.Join(paths, "; ")
}

// hubOnly reports whether members do not serve an API group.
func hubOnly(group string) bool {
	return strings.HasSuffix(group, ".karmada.io") || strings.HasSuffix(group, ".argosy.io")
}
