package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
)

// scalerTimeout limits the wait of the first call of Scaler for the list, which never completes without the right to
// list.
const scalerTimeout = 2 * time.Second

// scalers are the workloads that autoscalers of a member scale. Nothing else of the autoscalers is stored.
type scalers struct {
	changed func(of execute.Target)

	mu       sync.Mutex
	followed map[schema.GroupKind]*values[execute.Target] // the workload that each autoscaler scales
}

// Scaler returns the autoscaler in the member that sets the replicas of a workload, as "HorizontalPodAutoscaler web";
// empty if none. The first call starts to watch all autoscalers, and waits up to two seconds until they are listed. If
// they are not, known is false, and OnScaler reports the result later.
func (m *Member) Scaler(ctx context.Context, workload execute.Target) (scaler string, known bool) {
	known = true
	for _, gvk := range kind.Scalers() {
		store := m.followScalers(gvk)
		if store == nil {
			continue
		}
		store.await(ctx, scalerTimeout)
		name := "" // the first by name
		listed := store.visit(func(scaler types.NamespacedName, of execute.Target) {
			if of == workload && (name == "" || scaler.Name < name) {
				name = scaler.Name
			}
		})
		if name != "" {
			return gvk.Kind + " " + name, true
		}
		known = known && listed
	}
	return "", known
}

// followScalers returns the store of a kind of autoscaler, followed from now on; nil while the member does not serve
// it.
func (m *Member) followScalers(gvk schema.GroupVersionKind) *values[execute.Target] {
	m.scalers.mu.Lock()
	defer m.scalers.mu.Unlock()
	if store := m.scalers.followed[gvk.GroupKind()]; store != nil {
		return store
	}
	mapping, ok, _ := m.conn().apis.find(gvk) // from the last discovery: if it is not served, do not ask again
	if !ok {
		return nil
	}
	store := newValues(func(changes []change[execute.Target]) {
		for _, c := range changes {
			for _, workload := range []execute.Target{c.old, c.new} {
				if workload != (execute.Target{}) {
					m.scalers.changed(workload)
				}
			}
		}
	})
	if m.scalers.followed == nil {
		m.scalers.followed = map[schema.GroupKind]*values[execute.Target]{}
	}
	m.scalers.followed[gvk.GroupKind()] = store
	go m.follow(fmt.Sprintf("%s in cluster %s", mapping.Resource.GroupResource(), m.Name), &unstructured.Unstructured{},
		&trimming[*unstructured.Unstructured, execute.Target]{trim: trimScaler(kind.Lookup(gvk.GroupKind())), into: store},
		func(c *connection) cache.ListWatch { return c.listWatch(mapping.Resource, "", "") })
	return store
}

// trimScaler returns the workload that an autoscaler of a kind scales.
func trimScaler(of *kind.Kind) func(*unstructured.Unstructured) (execute.Target, bool, error) {
	return func(u *unstructured.Unstructured) (execute.Target, bool, error) {
		_, _, err := unstructured.NestedStringMap(u.Object, of.WorkloadPaths()[0]...)
		gk, name, scales := of.Target(u.Object)
		return execute.Target{GroupKind: gk, Namespace: u.GetNamespace(), Name: name}, scales, err
	}
}
