package fleet

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// FormerPodsKept returns the field of a manifest whose partition keeps pods of a former revision in a cluster; empty if
// none does, or if updated pods are not available. certain is true if the kind counts those that are: pods in trouble
// are then former ones.
func FormerPodsKept(manifest *unstructured.Unstructured, item workv1alpha2.AggregatedStatusItem) (path string,
	certain bool) {
	kind := manifest.GroupVersionKind().GroupKind()
	w, known := workloadOf(kind)
	paths, pods, c := append(strategyPath(manifest.Object), "partition"), []string{"replicas"}, w.Counters
	if known {
		pods = c.Present()
	}
	var status map[string]any
	if !HasOldPods(kind, []workv1alpha2.AggregatedStatusItem{item}) || item.Status == nil ||
		json.Unmarshal(item.Status.Raw, &status) != nil {
		return "", false
	}
	if kept, err := KeptOld(field(manifest.Object, paths...), sumOf(status, pods), Up); err != nil || kept == 0 {
		return "", false
	}
	_, counted := status[c.UpdatedAvailable]
	if counted && number(status, c.UpdatedAvailable) < number(status, c.Updated) {
		return "", false
	}
	return strings.Join(paths, "."), counted
}
