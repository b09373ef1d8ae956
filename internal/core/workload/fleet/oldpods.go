package fleet

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// HasOldPods reports whether a cluster has pods of a workload that are not updated, by the aggregated status of its
// binding. A cluster whose status is missing may have some: it was left out for its size. One that reports no number of
// updated pods has none.
func HasOldPods(kind schema.GroupKind, items []workv1alpha2.AggregatedStatusItem) bool {
	pods, updated := "replicas", "updatedReplicas"
	w, known := workloads[kind]
	if known {
		pods, updated = w.pods, w.updated
	}
	known = known || kind == deploymentKind
	for i := range items {
		var status map[string]any
		if items[i].Status == nil || json.Unmarshal(items[i].Status.Raw, &status) != nil {
			return true
		}
		if _, counts := status[updated]; (counts || known) && number(status, updated) < number(status, pods) {
			return true
		}
	}
	return false
}
