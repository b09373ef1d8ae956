package template

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/execute"
	kinds "github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/companion"
)

// byReach indexes companions by the keys of what they refer to.
const byReach = "reach"

// byScaled indexes autoscalers by the workload that they scale.
const byScaled = "scaled"

// PointingAt returns the cached objects that may refer to the workload. companion.Find selects the ones that do.
// Kinds that are not wanted have none.
func (s *Store) PointingAt(workload *unstructured.Unstructured) []*unstructured.Unstructured {
	return s.indexed(companion.Kinds(), byReach, companion.ReachedBy(workload)...)
}

// Autoscalers returns the cached autoscalers of a workload, in no order. Kinds that are not wanted have none.
func (s *Store) Autoscalers(workload execute.Target) []*unstructured.Unstructured {
	return s.indexed(kinds.Select(func(k *kinds.Kind) bool { return k.Scaler != nil }), byScaled, workload.String())
}

// indexed returns the cached objects of the kinds with any of the keys in an index.
func (s *Store) indexed(kinds []schema.GroupKind, index string, keys ...string) []*unstructured.Unstructured {
	s.mu.RLock()
	defer s.mu.RUnlock()
	seen := map[*unstructured.Unstructured]bool{}
	var out []*unstructured.Unstructured
	for _, gk := range kinds {
		k := s.kinds[gk]
		if k == nil || k.informer == nil {
			continue
		}
		for _, key := range keys {
			// The index exists, so there is no error.
			objs, _ := k.informer.GetIndexer().ByIndex(index, key)
			for _, obj := range objs {
				if u := obj.(*unstructured.Unstructured); !seen[u] {
					seen[u] = true
					out = append(out, u)
				}
			}
		}
	}
	return out
}
