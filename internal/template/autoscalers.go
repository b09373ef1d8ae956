package template

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/execute"
	kinds "github.com/argosy-io/argosy/internal/core/kind"
)

// byScaled indexes autoscalers by the workload that they scale.
const byScaled = "scaled"

// Autoscalers returns the cached autoscalers of a workload, of the kinds that are wanted, in no order.
func (s *Store) Autoscalers(workload execute.Target) []*unstructured.Unstructured {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*unstructured.Unstructured
	for _, gvk := range kinds.Scalers() {
		k := s.kinds[gvk.GroupKind()]
		if k == nil || k.informer == nil {
			continue
		}
		// The index exists, so there is no error.
		objs, _ := k.informer.GetIndexer().ByIndex(byScaled, workload.String())
		for _, obj := range objs {
			out = append(out, obj.(*unstructured.Unstructured))
		}
	}
	return out
}
