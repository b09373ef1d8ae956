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
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/text"
)

// Outages are the clusters that are not ready now, by name.
type Outages map[string]*membership.Outage

// OutagesOf are those among the clusters of b. get gives a cluster by name, nil if there is none.
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

// setStale sets the condition that names the clusters whose statuses are stale, and since when. It removes it if
// there are none.
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

// Counters and conditions that hold only of what is seen now. Kubernetes does the same for the pods of a node that does
// not respond: they are there until somebody deletes them, and are not ready.
var (
	liveCounters = []string{
		"readyReplicas", "availableReplicas", "updatedReadyReplicas", "updatedAvailableReplicas", // workloads with replicas
		"numberReady", "numberAvailable", // daemons
		"ready",                         // Jobs
		"readyPods", "updatedReadyPods", // SidecarSets
		"currentHealthy", "disruptionsAllowed", "currentAvailable", "unavailableAllowed", // budgets
	}
	// opposites count what the counter does not.
	opposites = map[string]string{"availableReplicas": "unavailableReplicas", "numberAvailable": "numberUnavailable"}
	// liveConditions are of workloads and of pods.
	liveConditions = []string{"Available", "Ready", "ContainersReady"}
)

// Final says whether a status is of something that runs once and has ended: that is so for ever, whatever becomes of
// the cluster.
func Final(kind schema.GroupKind, status *runtime.RawExtension) bool {
	if status == nil || !interpret.RunsOnce(kind) {
		return false
	}
	var reported map[string]any
	return json.Unmarshal(status.Raw, &reported) == nil && interpret.Finished(kind, reported)
}

// lastKnown is the last reported status of an object as far as it may still be so: the object and its pods are there,
// what has ended has ended, addresses are served; what is ready is not known, and does not count. What is no object of
// JSON is left as it is.
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

// forget takes what is live out of a status, and out of the statuses of its parts, such as the subsets of a
// UnitedDeployment.
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
