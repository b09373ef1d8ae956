package dispatch

import (
	"encoding/json"
	"slices"

	"github.com/argosy-io/argosy/api/wellknown"
)

// preservedState returns the labels that carry state to the copy in a cluster. A new copy gets the labels of the
// cluster that it replaces, once. An existing copy keeps those in its Work.
func (in Input) preservedState(cluster string) (labels map[string]string) {
	if in.Binding == nil {
		return nil
	}
	if w := in.Existing[cluster]; w != nil {
		if json.Unmarshal([]byte(w.Annotations[wellknown.PreservedStateAnnotation]), &labels) != nil {
			return nil
		}
		return labels
	}
	tasks := in.Binding.BindingSpec().GracefulEvictionTasks
	for i := len(tasks) - 1; i >= 0; i-- { // the newest one first
		if t := &tasks[i]; len(t.PreservedLabelState) > 0 && !slices.Contains(t.ClustersBeforeFailover, cluster) {
			return t.PreservedLabelState
		}
	}
	return nil
}
