package fleet

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// HasOldPods reports whether a cluster has pods of a workload that are not updated, by the aggregated status of its
// binding. A cluster whose status is missing may have some: it was left out for its size. One that reports no number of
// updated pods has none.
func HasOldPods(kind schema.GroupKind, items []workv1alpha2.AggregatedStatusItem) bool {
	for i := range items {
		var status map[string]any
		if items[i].Status == nil || json.Unmarshal(items[i].Status.Raw, &status) != nil {
			return true
		}
		pods, counts := interpret.PodsOf(kind, status)
		if counts && (pods.Updated < pods.All || pods.All > 0 && !interpret.CountsUpdated(status, 0)) {
			return true
		}
	}
	return false
}
