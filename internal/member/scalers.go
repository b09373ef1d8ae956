package member

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/execute"
)

// scalerKinds are the kinds whose objects set the replicas of others.
var scalerKinds = []schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"},
}

// scalerTimeout is how long the first call of Scaler waits for the list, which never completes without the right to
// list.
const scalerTimeout = 2 * time.Second

// scalers are the workloads that autoscalers of a member scale. Nothing else of the autoscalers is stored.
type scalers struct {
	changed func(of execute.Target)

	mu       sync.Mutex
	followed map[schema.GroupKind]*scalerStore
}

// Scaler returns the autoscaler in the member that sets the replicas of a workload, as "HorizontalPodAutoscaler web";
// empty if none. The first call starts to watch all autoscalers, and waits up to two seconds until they are listed. If
// they are not, known is false, and OnScaler reports the result later.
func (m *Member) Scaler(ctx context.Context, workload execute.Target) (scaler string, known bool) {
	known = true
	for _, gvk := range scalerKinds {
		store := m.followScalers(gvk)
		if store == nil {
			continue
		}
		await(ctx, store.listed, store.since.Add(scalerTimeout))
		name, listed := store.scalerOf(workload)
		if name != "" {
			return gvk.Kind + " " + name, true
		}
		known = known && listed
	}
	return "", known
}

// followScalers returns the store of a kind of autoscaler, followed from now on; nil while the member does not serve
// it.
func (m *Member) followScalers(gvk schema.GroupVersionKind) *scalerStore {
	m.scalers.mu.Lock()
	defer m.scalers.mu.Unlock()
	if store := m.scalers.followed[gvk.GroupKind()]; store != nil {
		return store
	}
	mapping, ok, _ := m.conn().apis.find(gvk) // from the last discovery: if it is not served, do not ask again
	if !ok {
		return nil
	}
	store := &scalerStore{listed: make(chan struct{}), since: time.Now()}
	store.equal = func(a, b execute.Target) bool { return a == b }
	var once sync.Once
	store.changed = func(gone, added []execute.Target) {
		once.Do(func() { close(store.listed) })
		for _, workload := range slices.Concat(gone, added) {
			m.scalers.changed(workload)
		}
	}
	if m.scalers.followed == nil {
		m.scalers.followed = map[schema.GroupKind]*scalerStore{}
	}
	m.scalers.followed[gvk.GroupKind()] = store
	trim := func(u *unstructured.Unstructured) (line[execute.Target], bool, error) {
		target, scales := execute.TargetOf(u)
		return line[execute.Target]{keyOf(u), target}, scales, nil
	}
	go m.follow(fmt.Sprintf("%s in cluster %s", mapping.Resource.GroupResource(), m.Name), &unstructured.Unstructured{},
		&trimming[*unstructured.Unstructured, line[execute.Target]]{trim: trim, into: store},
		func(c *connection) cache.ListWatch { return c.listWatch(mapping.Resource, "", "") })
	return store
}

// scalerStore has the workload that each autoscaler of one kind scales.
type scalerStore struct {
	lines[execute.Target]
	since  time.Time
	listed chan struct{} // closed after the first list
}

// scalerOf returns the first by name that scales a workload; empty if none does, as far as listed.
func (s *scalerStore) scalerOf(workload execute.Target) (name string, listed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, t := range s.values {
		if t == workload && (name == "" || key.Name < name) {
			name = key.Name
		}
	}
	return name, s.values != nil
}
