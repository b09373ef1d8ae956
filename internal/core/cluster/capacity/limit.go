package capacity

import (
	"cmp"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Limit keeps more replicas from fitting in a cluster: a quota, the spread of the replicas, or else its nodes.
type Limit struct {
	// Replicas is the number that fits.
	Replicas int32 `json:"replicas"`
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

// QuotasText names the quota that limits a binding in the first of the clusters with one, and the clusters with the
// same, as "in m1, m2 ResourceQuota …"; empty for none.
func QuotasText(b workv1alpha2.Binding, clusters []string, limit func(cluster string) (Limit, bool)) string {
	var limited []string
	first := ""
	for _, name := range clusters {
		l, known := limit(name)
		if !known {
			continue
		}
		quota := l.QuotaText(b.GetNamespace())
		if first = cmp.Or(first, quota); quota != "" && quota == first {
			limited = append(limited, name)
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("in %s %s", text.Names(limited, 8), first)
}

// Limit returns why Replicas is not larger.
func (m *ClusterState) Limit(need *Requirement) Limit {
	l := Limit{Replicas: m.Replicas(need)}
	bound, quota, resource := m.allowed([]Part{{need, 1}})
	if quota != nil && int64(l.Replicas) == bound {
		l.Quota, l.Resource = quota.Name, resource
		return l
	}
	if need.spread != nil {
		free := *need
		free.spread = nil
		if l.Spread = m.Replicas(&free) > l.Replicas; l.Spread {
			return l
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
	return l
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
