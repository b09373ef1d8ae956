package commit

import (
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Recorder writes events in the name of a component, as core/v1 events: those are what users of Karmada look at.
func Recorder(mgr ctrl.Manager, component string) record.EventRecorder {
	//lint:ignore SA1019 the recorder that replaces it writes events of another group
	return mgr.GetEventRecorderFor(component)
}
