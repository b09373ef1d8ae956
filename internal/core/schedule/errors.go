package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

var (
	errNoPlacement = errors.New("the binding has no placement")
	errNoClusters  = errors.New("no clusters available to schedule")
)

// Rejection is a cluster that may not take a binding.
type Rejection struct {
	// Cluster is its name.
	Cluster string
	// Reason as users know it, such as "cluster(s) did not have the API resource".
	Reason string
	// Pending says that the reason may go away by itself, because the cluster's API has not been discovered completely.
	Pending bool
}

// Rejections are sorted by cluster.
type Rejections []Rejection

// String counts the clusters by reason: "2 cluster(s) did not have the API resource, 1 …".
func (r Rejections) String() string {
	counts := map[string]int{}
	for i := range r {
		counts[r[i].Reason]++
	}
	texts := make([]string, 0, len(counts))
	for reason, n := range counts {
		texts = append(texts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// FitError says that no cluster may take the binding. Its clusters are to be emptied, and only a change of the fleet
// or of the binding can help: retrying cannot.
type FitError struct {
	// Clusters is the size of the fleet.
	Clusters int
	// Rejections say why, cluster by cluster.
	Rejections Rejections
}

// Error is the message of the condition.
func (e *FitError) Error() string {
	if e.Clusters == 0 {
		return "0/0 clusters are available: " + errNoClusters.Error() + "."
	}
	return fmt.Sprintf("0/%d clusters are available: %s.", e.Clusters, e.Rejections)
}

// Pending says whether a cluster may fit as soon as its API has been discovered.
func (e *FitError) Pending() bool {
	return slices.ContainsFunc(e.Rejections, func(r Rejection) bool { return r.Pending })
}

// UnschedulableError says that the clusters that may take the replicas have no room for them all.
// Nothing is moved; more room helps.
type UnschedulableError struct {
	// Available is the room there is, in replicas, for Wanted more.
	Available, Wanted int64
}

// Error is the message of the condition.
func (e *UnschedulableError) Error() string {
	return fmt.Sprintf("Clusters available replicas %d are not enough to schedule.", e.Available)
}

// Condition is the Scheduled condition that a run's error, or nil, asks for. Times and generation are the caller's.
func Condition(err error) metav1.Condition {
	c := metav1.Condition{
		Type:    workv1alpha2.Scheduled,
		Status:  metav1.ConditionTrue,
		Reason:  workv1alpha2.ReasonSuccess,
		Message: workv1alpha2.MessageScheduled,
	}
	if err == nil {
		return c
	}
	var unfit *FitError
	var unschedulable *UnschedulableError
	c.Status, c.Message, c.Reason = metav1.ConditionFalse, err.Error(), workv1alpha2.ReasonSchedulerError
	switch {
	case errors.As(err, &unfit):
		c.Reason = workv1alpha2.ReasonNoClusterFit
	case errors.As(err, &unschedulable):
		c.Reason = workv1alpha2.ReasonUnschedulable
	}
	return c
}
