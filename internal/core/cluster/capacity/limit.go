package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Limit keeps more replicas, or sets of components, from fitting in a cluster: an estimator, a quota, the spread of the
// replicas, or else its nodes.
type Limit struct {
	// Replicas is the number that fits.
	Replicas int32 `json:"replicas"`
	// Estimator is true if an estimator answered that fewer fit.
	Estimator bool `json:"estimator,omitempty"`
	// Component is the name of the component that the nodes have the least capacity for; empty without components.
	Component string `json:"component,omitempty"`
	// Quota is the ResourceQuota that allows no more, and Resource what it limits, such as cpu or limits.cpu.
	Quota    string              `json:"quota,omitempty"`
	Resource corev1.ResourceName `json:"resource,omitempty"`
	// Spread is true if the nodes have capacity for more without the spread rules.
	Spread bool `json:"spread,omitempty"`
	// Nodes is the number of nodes. The others count those of them that are not ready, have a taint that a replica does
	// not tolerate, do not match its node selector or affinity, or lack a resource.
	Nodes     int            `json:"nodes,omitempty"`
	NotReady  int            `json:"notReady,omitempty"`
	Tainted   int            `json:"tainted,omitempty"`
	Unmatched int            `json:"unmatched,omitempty"`
	Lacking   map[string]int `json:"lacking,omitempty"`
}

// QuotaText names the quota of a namespace that allows no more; empty if none does.
func (l Limit) QuotaText(namespace string) string {
	if l.Quota == "" {
		return ""
	}
	return fmt.Sprintf("ResourceQuota %s of namespace %s limits %s", l.Quota, namespace, l.Resource)
}

// LimitsText returns the first three of what limits clusters, each with its clusters, as "m1, m2: ResourceQuota …; m3:
// …"; empty for nothing.
func LimitsText(clusters []string, limit func(cluster string) string) string {
	var order, texts []string
	limited := map[string][]string{}
	for _, name := range clusters {
		l := limit(name)
		if l != "" && limited[l] == nil {
			order = append(order, l)
		}
		limited[l] = append(limited[l], name)
	}
	for _, l := range order[:min(len(order), 3)] {
		texts = append(texts, text.Names(limited[l], 8)+": "+l)
	}
	return strings.Join(texts, "; ")
}

// Text returns what limits a binding; empty if that is not known.
func (l Limit) Text(b workv1alpha2.Binding) string {
	switch {
	case l.Estimator:
		return "its estimator answers that no more fit"
	case l.Quota != "":
		return l.QuotaText(b.BindingSpec().Resource.Namespace)
	case l.Spread:
		return "its spread allows no more: " + SpreadOfBinding(b).String()
	}
	var rules, whats []string
	if selector := l.Selector(b); selector != "" {
		rules = append(rules, "nodeSelector "+selector)
	}
	if claim := l.claim(b); claim != nil && claim.HardNodeAffinity != nil {
		rules = append(rules, "its node affinity")
	}
	count := func(n int, nodes string) {
		if n > 0 {
			whats = append(whats, fmt.Sprintf("%s: %d of %d", nodes, n, l.Nodes))
		}
	}
	count(l.Unmatched, "nodes that do not match "+strings.Join(rules, " and "))
	for _, resource := range slices.Sorted(maps.Keys(l.Lacking)) {
		count(l.Lacking[resource], "nodes that lack "+resource)
	}
	count(l.Tainted, "nodes with a taint that it does not tolerate")
	count(l.NotReady, "nodes that are not ready")
	all := strings.Join(whats, "; ")
	if l.Component != "" && all != "" {
		return "component " + l.Component + ": " + all
	}
	return all
}

// Selector returns the node selector of a binding, or of the component that limits; empty without.
func (l Limit) Selector(b workv1alpha2.Binding) string {
	if claim := l.claim(b); claim != nil {
		return labels.Set(claim.NodeSelector).String()
	}
	return ""
}

func (l Limit) claim(b workv1alpha2.Binding) *workv1alpha2.NodeClaim {
	spec := b.BindingSpec()
	for i := range spec.Components {
		if c := &spec.Components[i]; c.Name == l.Component && c.ReplicaRequirements != nil {
			return c.ReplicaRequirements.NodeClaim
		}
	}
	if spec.ReplicaRequirements != nil {
		return spec.ReplicaRequirements.NodeClaim
	}
	return nil
}

// Limit returns why no more of a binding fits.
func (m *ClusterState) Limit(b workv1alpha2.Binding) Limit {
	parts, sets := Parts(b)
	l, least := m.limit(parts, sets)
	if sets && least >= 0 {
		l.Component = b.BindingSpec().Components[least].Name
	}
	return l
}

// limit returns why Room is not larger, and the part that the nodes have the least room for if they limit it; else -1.
func (m *ClusterState) limit(parts []Part, sets bool) (l Limit, least int) {
	l.Replicas = m.Room(parts, sets)
	bound, quota, resource := m.allowed(parts)
	if quota != nil && int64(l.Replicas) == bound {
		l.Quota, l.Resource = quota.Name, resource
		return l, -1
	}
	if sets {
		most := int64(math.MaxInt64)
		for i, p := range parts {
			if p.Replicas == 0 {
				continue
			}
			if n := int64(m.Replicas(p.Need)) / p.Replicas; n < most {
				most, least = n, i
			}
		}
	}
	need := parts[least].Need
	if need.spread != nil {
		free := *need
		free.spread = nil
		if l.Spread = m.Replicas(&free) > l.Replicas; l.Spread {
			return l, -1
		}
	}
	l.Lacking = map[string]int{}
	for _, n := range m.nodes {
		if !n.seen {
			continue
		}
		l.Nodes++
		switch {
		case !n.Ready:
			l.NotReady++
		case !need.toleratesTaints(n):
			l.Tainted++
		case !need.selects(n):
			l.Unmatched++
		default:
			_, scarce := n.fit(need)
			l.Lacking[resourceName(scarce)]++
		}
	}
	return l, least
}

// fit returns how many more of these replicas the free resources of a node allow, and the resource that allows no more.
func (n *node) fit(r *Requirement) (most int64, scarce corev1.ResourceName) {
	most = math.MaxInt64
	for _, q := range r.requests {
		if k := n.left(q.name) / q.amount; k < most {
			most, scarce = k, q.name
		}
	}
	return most, scarce
}
