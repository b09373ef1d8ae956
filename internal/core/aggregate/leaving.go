package aggregate

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// podCounters are the status fields that count pods of a workload.
var podCounters = []string{
	"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas",
	"updatedAvailableReplicas", "expectedUpdatedReplicas",
}

// capLeaving reduces the counters of clusters that are being left to what the other clusters lack, so that a pod and
// its replacement count once. It does not modify statuses in place.
func capLeaving(spec *workv1alpha2.ResourceBindingSpec, items []workv1alpha2.AggregatedStatusItem) {
	left := spec.LeftGracefully()
	if len(left) == 0 || spec.Replicas == 0 {
		return
	}
	var lack int64
	for _, t := range spec.Clusters {
		lack += int64(t.Replicas)
	}
	lacks := map[string]int64{}
	for _, counter := range podCounters {
		lacks[counter] = lack
	}
	statuses := make([]map[string]any, len(items))
	for i := range items {
		if items[i].Status == nil || json.Unmarshal(items[i].Status.Raw, &statuses[i]) != nil ||
			slices.Contains(left, items[i].ClusterName) {
			continue
		}
		for _, counter := range podCounters {
			n, _ := statuses[i][counter].(int64)
			lacks[counter] -= n
		}
	}
	for i := range items {
		if statuses[i] == nil || !slices.Contains(left, items[i].ClusterName) {
			continue
		}
		for _, counter := range podCounters {
			if n, is := statuses[i][counter].(int64); is {
				counts := max(0, min(n, lacks[counter]))
				statuses[i][counter] = counts
				lacks[counter] -= counts
			}
		}
		if _, is := statuses[i]["unavailableReplicas"]; is {
			statuses[i]["unavailableReplicas"] = int64(0)
		}
		if raw, err := json.Marshal(statuses[i]); err == nil {
			items[i].Status = &runtime.RawExtension{Raw: raw}
		}
	}
}
