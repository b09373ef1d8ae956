package pods

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// FailedCreate is the reason with which controllers of workloads report that they cannot create pods.
const FailedCreate = "FailedCreate"

// Missing returns how many of a workload's replicas have no pod in a cluster, by its status there.
func Missing(gk schema.GroupKind, status map[string]any, replicas int64) int64 {
	c := kind.Lookup(gk).Counters
	if c.Existing == nil {
		c.Existing = []string{"replicas"}
	} else if c.Desired != "" {
		replicas = fields.Number(status, c.Desired)
	}
	for _, name := range c.Existing {
		replicas -= fields.Number(status, name)
	}
	return max(0, replicas)
}

// WithRefusal returns the report with pods that the controller cannot create, for the reason in message. A rollout may
// lack its next pod although there are enough: missing counts as at least 1. total is the number of wanted pods.
func (r Report) WithRefusal(cluster string, missing, total int64, message string) Report {
	r.Cluster, r.Pods = cluster, max(r.Pods+missing, total, 1)
	r.Troubles = append([]Group{{Pods: int(max(1, missing)), Reason: FailedCreate,
		Message: text.Plain(message, messageMost)}}, r.Troubles...)
	return r
}
