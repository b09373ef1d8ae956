package template

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/companion"
)

// byReach indexes companions by the keys of what they refer to.
const byReach = "reach"

// PointingAt returns the cached objects that may refer to the workload. companion.Find selects the ones that do.
// Kinds that are not wanted have none.
func (s *Store) PointingAt(workload *unstructured.Unstructured) []*unstructured.Unstructured {
	keys := companion.ReachedBy(workload)
	s.mu.RLock()
	defer s.mu.RUnlock()
	seen := map[*unstructured.Unstructured]bool{}
	var out []*unstructured.Unstructured
	for _, gk := range companion.Kinds() {
		k := s.kinds[gk]
		if k == nil || k.informer == nil {
			continue
		}
		for _, key := range keys {
			// The index exists, so there is no error.
			objs, _ := k.informer.GetIndexer().ByIndex(byReach, key)
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
