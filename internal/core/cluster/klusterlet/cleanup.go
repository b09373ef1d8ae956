package klusterlet

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
)

// lastPriority is the highest priority for cleanup. Objects with lower ones are deleted before.
const lastPriority = 100

// cleanupPriority returns the priority of an object; 0 if its annotation is missing or not valid.
func cleanupPriority(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetAnnotations()[clusterv1.CleanupPriorityAnnotation])
	if err != nil || n < 0 || n > lastPriority {
		return 0
	}
	return n
}

// NextDeletions returns the objects to delete now: all that have the lowest priority. The others follow when none of
// these exist any more.
func NextDeletions[T metav1.Object](objects []T) []T {
	lowest := lastPriority
	for _, o := range objects {
		lowest = min(lowest, cleanupPriority(o))
	}
	var next []T
	for _, o := range objects {
		if cleanupPriority(o) == lowest {
			next = append(next, o)
		}
	}
	return next
}

// GivenUp reports whether a ManifestWork can be deleted without deleting what it says to keep: a klusterlet reads the
// delete option only while the ManifestWork is not being deleted.
func GivenUp(mw *ocmv1.ManifestWork) bool {
	applied := meta.FindStatusCondition(mw.Status.Conditions, ocmv1.Applied)
	return mw.Spec.DeleteOption == nil || mw.Spec.DeleteOption.PropagationPolicy == ocmv1.DeleteForeground ||
		applied == nil || applied.ObservedGeneration == mw.Generation && applied.Status == metav1.ConditionTrue ||
		meta.IsStatusConditionTrue(mw.Status.Conditions, ocmv1.Complete) // it ignores the option until it is deleted
}

// Deletion returns the condition Deleting of a ManagedCluster that is being deleted. plural is the kind that is deleted
// now: remaining of its objects still exist, and pending of them wait for their finalizers. failed is why they cannot
// be read or deleted, nil if they can.
func Deletion(plural string, remaining, pending int, cluster string, failed error, now time.Time) metav1.Condition {
	switch {
	case failed != nil:
		return newCondition(clusterv1.ClusterDeleting, metav1.ConditionFalse, clusterv1.ReasonDeletingError,
			fmt.Sprintf("delete the %s of cluster %q: %v", plural, cluster, failed), now)
	case remaining > 0:
		// Tools know this text, with its spelling.
		return newCondition(clusterv1.ClusterDeleting, metav1.ConditionFalse, clusterv1.ReasonResourceRemaining,
			fmt.Sprintf("The resource %s is remaning, the remaining count is %d, the finalizer pending count is %d", plural,
				remaining, pending), now)
	}
	return newCondition(clusterv1.ClusterDeleting, metav1.ConditionTrue, clusterv1.ReasonNoResource,
		"No cleaned resource in cluster ns.", now)
}
