package roles

import (
	"fmt"
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
	// Role is the hub's role with the fewest rights that has it; empty if none has.
	Role string `json:"role,omitempty"`
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

// kubernetesRole returns the one of Kubernetes' roles view and edit that has a right; empty if that is not known.
func kubernetesRole(verb, group, resource string) string {
	reads := slices.Contains([]string{"get", "list", "watch"}, verb)
	writes := slices.Contains([]string{"create", "delete", "patch", "update"}, verb)
	switch {
	case slices.Contains(kubernetes[group], resource) && reads:
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
			if m.Verb == first.Verb && m.Namespace == first.Namespace && m.Role == first.Role {
				objects = append(objects, m.object())
			} else {
				others = append(others, m)
			}
		}
		part := first.sentence(strings.Join(objects, ", "))
		switch {
		case first.Role != "" && first.Namespace != "":
			part += "; a RoleBinding to the ClusterRole " + first.Role + " permits it"
		case first.Role != "":
			part += "; a ClusterRoleBinding to the ClusterRole " + first.Role + " permits it"
		}
		parts, all = append(parts, part), others
	}
	return strings.Join(parts, "; ")
}
