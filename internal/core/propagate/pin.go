package propagate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Pin records on want from which clusters replicas leave, if it asks for fewer than existing and the template
// determines the pods. works are those of the clusters, for fleet.LeavesByOrdinal; clustersOf returns the clusters that
// have a pod of that name. unknown reports that a cluster that may have such a pod did not respond: want keeps the
// replicas of existing.
func Pin(template *unstructured.Unstructured, existing, want workv1alpha2.Binding, works map[string]*workv1alpha1.Work,
	clustersOf func(pod string) (clusters []string, known bool)) (unknown bool, err error) {
	was, is := existing.BindingSpec(), want.BindingSpec()
	if was.Replicas == is.Replicas {
		return false, nil // the pin of the last change stands
	}
	var leaving map[string]int32
	if fewer := schedule.Placed(was) - is.Replicas; fewer > 0 && is.Placement.DividesReplicas() {
		var pods []string
		if leaving, pods, err = fleet.Leaving(template, int64(fewer), works, clustersOf); err != nil {
			return false, err
		}
		if len(pods) > 0 {
			is.Replicas, is.Components = was.Replicas, was.Components
			return true, nil
		}
	}
	schedule.SetPin(want, leaving)
	return false, nil
}
