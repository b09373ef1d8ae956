package fleet

import (
	"testing"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// unhealthy has c1 report that its copy is unhealthy, with a pod that is not available.
func (h *hub) unhealthy(status string) {
	h.t.Helper()
	h.report(status)
	h.in.Members[0].Work.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
}

const ill = "replicas: 3, availableReplicas: 2, readyReplicas: 2, updatedReplicas: 3, updatedAvailableReplicas: 2"

// All pods are new everywhere: a cluster that has yet to report about a later write has no old ones.
func TestScaleDownHaltsNoRollout(t *testing.T) {
	for _, revised := range []bool{false, true} {
		h := newHub(t, plainCloneSet, 3, 3, 3)
		h.look()
		h.report(up(3, 3), up(3, 3), up(3, 3))
		if revised {
			h.edit(int64(2), "spec", "template", "a")
			for range 10 {
				h.look()
				h.report(up(3, 3), up(3, 3), up(3, 3))
			}
		}
		h.edit(int64(8), "spec", "replicas")
		h.look()
		h.expectConditions("before it is scheduled", "")
		h.unhealthy(ill)
		h.look()
		h.expectConditions("when one cluster has reported", "")
		h.in.Members[2].Replicas = 2
		h.look()
		h.unhealthy(ill)
		h.look()
		h.expectConditions("when it is scheduled", "")
		h.report(silent, up(3, 3), up(2, 2))
		h.unhealthy(ill)
		h.look()
		h.expectConditions("when all have reported", "")
	}
}

// In a rollout, a cluster that has yet to report may have old pods.
func TestUnreportedRevisionStillHaltsARollout(t *testing.T) {
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.look()
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.edit(int64(2), "spec", "template", "a")
	h.look()
	h.unhealthy(ill)
	h.look()
	h.expectConditions("while others have not reported", "FleetHalted")
	h.edit(int64(8), "spec", "replicas")
	h.in.Members[2].Replicas = 2
	h.look()
	h.unhealthy(ill)
	h.look()
	h.expectConditions("scaled down in the middle", "FleetHalted")
}

// The write that halts a rollout ends a refused update, and with it the failure that OpenKruise reports. The failing
// pods stay.
func TestHaltLastsUntilNewPodsAreAvailable(t *testing.T) {
	h := newHub(t, plainCloneSet, 3, 3, 3)
	h.look()
	h.report(up(3, 3), up(3, 3), up(3, 3))
	h.edit(int64(2), "spec", "template", "a")
	h.look()
	const failing = "replicas: 3, availableReplicas: 2, readyReplicas: 2, updatedReplicas: 1, updatedAvailableReplicas: 0"
	h.report(failing, up(3, 0), up(3, 0))
	h.unhealthy(failing)
	h.look()
	h.expectConditions("a pod fails and others are refused", "FleetHalted")
	h.report(failing, up(3, 0), up(3, 0))
	h.look()
	h.expectConditions("others are no longer refused", "FleetHalted")
	h.report(up(3, 1), up(3, 0), up(3, 0))
	h.look()
	h.expectConditions("the pod is available", "")
}
