package aggregate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Outages are the clusters that are not ready now, by name.
type Outages map[string]*membership.Outage

// OutagesOf returns the outages among the clusters of b. get returns a cluster by name or nil.
func OutagesOf(b workv1alpha2.Binding, get func(name string) *clusterv1alpha1.Cluster) Outages {
	var outages Outages
	for _, cluster := range clusters(b) {
		if outage := membership.OutageOf(get(cluster)); outage != nil {
			if outages == nil {
				outages = Outages{}
			}
			outages[cluster] = outage
		}
	}
	return outages
}

// setStale sets or removes the condition that lists the clusters with stale statuses and the start of each outage.
func setStale(conditions *[]metav1.Condition, clusters []string, outages Outages, now metav1.Time) {
	slices.Sort(clusters)
	var stale []string
	for _, cluster := range clusters {
		stale = append(stale, fmt.Sprintf("cluster %q %s", cluster, outages[cluster]))
	}
	if len(stale) == 0 {
		meta.RemoveStatusCondition(conditions, workv1alpha2.StatusCurrent)
		return
	}
	meta.SetStatusCondition(conditions, metav1.Condition{Type: workv1alpha2.StatusCurrent, Status: metav1.ConditionFalse,
		Reason: workv1alpha2.ReasonClusterNotReady, LastTransitionTime: now,
		Message: text.Lines(stale, 10) + ": the last reported status is used, and its pods are not counted as ready"})
}

// Counters and conditions that are valid only in the present. Kubernetes handles pods on unreachable nodes in the same
// way: they exist but are not ready.
var (
	liveCounters = []string{
		"readyReplicas", "availableReplicas", "updatedReadyReplicas", "updatedAvailableReplicas", // workloads with replicas
		"numberReady", "numberAvailable", // daemons
		"ready",                         // Jobs
		"readyPods", "updatedReadyPods", // SidecarSets
		"currentHealthy", "disruptionsAllowed", "currentAvailable", "unavailableAllowed", // budgets
	}
	// opposites are counters of the complement.
	opposites = map[string]string{"availableReplicas": "unavailableReplicas", "numberAvailable": "numberUnavailable"}
	// liveConditions are conditions of workloads and pods.
	liveConditions = []string{"Available", "Ready", "ContainersReady"}
)

// Final reports whether a status is of a finished run, so that an outage does not make it stale.
func Final(kind schema.GroupKind, status *runtime.RawExtension) bool {
	if status == nil || !interpret.RunsOnce(kind) {
		return false
	}
	var reported map[string]any
	return json.Unmarshal(status.Raw, &reported) == nil && interpret.Finished(kind, reported)
}

// lastKnown returns the part of the last reported status that may still be valid: objects and pods exist, finished work
// stays finished, addresses are served, but nothing counts as ready. Invalid JSON is returned unchanged.
func lastKnown(status *runtime.RawExtension, outage *membership.Outage) *runtime.RawExtension {
	if status == nil {
		return nil
	}
	var reported map[string]any
	if json.Unmarshal(status.Raw, &reported) != nil || reported == nil {
		return status
	}
	forget(reported, outage)
	raw, err := json.Marshal(reported)
	if err != nil {
		return status
	}
	return &runtime.RawExtension{Raw: raw}
}

// forget resets the present-only fields of a status and of its parts, such as the subsets of a UnitedDeployment.
func forget(status map[string]any, outage *membership.Outage) {
	for _, counter := range liveCounters {
		n, is := status[counter].(int64)
		if !is {
			continue
		}
		status[counter] = int64(0)
		if opposite := opposites[counter]; opposite != "" {
			missing, _ := status[opposite].(int64)
			status[opposite] = missing + n
		}
	}
	for key, value := range status {
		switch v := value.(type) {
		case map[string]any:
			forget(v, outage)
		case []any:
			for _, part := range v {
				if part, is := part.(map[string]any); is {
					forget(part, outage)
					if key == "conditions" {
						forgetCondition(part, outage)
					}
				}
			}
		}
	}
}

func forgetCondition(condition map[string]any, outage *membership.Outage) {
	if kind, _ := condition["type"].(string); slices.Contains(liveConditions, kind) {
		condition["status"] = string(metav1.ConditionUnknown)
		condition["reason"] = workv1alpha2.ReasonClusterNotReady
		condition["message"] = "the cluster " + outage.String()
	}
}
