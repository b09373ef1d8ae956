// Package capacity knows the member clusters as the scheduler sees them, and what room they have. It keeps the snapshot
// that decisions are made on, and what is placed but not there yet; who decides is the schedule and propagate
// controllers, with Fleet.Schedule.
package capacity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/member"
)

// Change is a cluster as it was and as it is; nil where it was not there, or is gone.
type Change struct {
	Old, New *clusterv1alpha1.Cluster
}

// Fleet is the member clusters, kept current by a watch.
type Fleet struct {
	mu       sync.Mutex
	clusters map[string]*clusterv1alpha1.Cluster
	snapshot schedule.Snapshot
	behind   bool // snapshot has not taken in the last changes
	tell     []func(Change)

	// Clock is the time; the real one unless a test sets it before it runs.
	Clock clock.PassiveClock

	members *member.Members // nil if only summaries are known
	// bindings reads bindings from a cache; nil if only summaries are known.
	bindings client.Reader
	// placing is held from the question for room to the assumption of what is placed there.
	placing    sync.Mutex
	estimators []func(workv1alpha2.Binding, schedule.Snapshot) schedule.Capacity
	assumed    map[types.NamespacedName]assumed
	sweeping   bool
	// recent are bindings that were placed shortly before the start; recalled are the members that were told.
	recent   map[types.NamespacedName]workv1alpha2.Binding
	recalled map[string]bool

	room []func(cluster string)
	// toldAt is when listeners were told of room in a cluster last; telling are those of which they are about to be.
	toldAt  map[string]time.Time
	telling map[string]bool

	registration cache.ResourceEventHandlerRegistration
}

// NewFleet follows the clusters of a cache.
func NewFleet(ctx context.Context, c ctrlcache.Informers) (*Fleet, error) {
	f := &Fleet{
		clusters: map[string]*clusterv1alpha1.Cluster{}, Clock: clock.RealClock{},
		assumed: map[types.NamespacedName]assumed{}, recent: map[types.NamespacedName]workv1alpha2.Binding{},
		recalled: map[string]bool{},
		toldAt:   map[string]time.Time{}, telling: map[string]bool{},
	}
	informer, err := c.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	f.registration, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.put(obj.(*clusterv1alpha1.Cluster)) },
		UpdateFunc: func(_, obj any) { f.put(obj.(*clusterv1alpha1.Cluster)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			f.remove(obj.(*clusterv1alpha1.Cluster))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	return f, nil
}

// Synced says whether every cluster that there was at the start is known. Until then nothing may be scheduled.
func (f *Fleet) Synced() bool { return f.registration.HasSynced() }

// WaitForSync returns when the fleet is Synced, or with an error when ctx ends before.
func (f *Fleet) WaitForSync(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), f.Synced) {
		return errors.New("the clusters were not listed in time")
	}
	return nil
}

// OnChange calls tell for each change from now on, after the snapshot has taken it in. What was there at the start is
// no change. tell must not block.
func (f *Fleet) OnChange(tell func(Change)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell = append(f.tell, tell)
}

// KeepEmpty has divided workloads go also to clusters that get none of their replicas, from now on.
func (f *Fleet) KeepEmpty() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshot = f.snapshot.KeepingEmpty()
}

// Use has the scheduler run with these plugins, from now on.
func (f *Fleet) Use(p schedule.Plugins) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshot = f.snapshot.With(p)
}

// Snapshot is the fleet now. It is never changed afterwards.
func (f *Fleet) Snapshot() schedule.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.behind {
		all := make([]*clusterv1alpha1.Cluster, 0, len(f.clusters))
		for _, c := range f.clusters {
			all = append(all, c)
		}
		f.snapshot, f.behind = f.snapshot.Next(all), false
	}
	return f.snapshot
}

func (f *Fleet) put(c *clusterv1alpha1.Cluster) {
	f.mu.Lock()
	old := f.clusters[c.Name]
	if old != nil && old.UID == c.UID && old.ResourceVersion == c.ResourceVersion {
		f.mu.Unlock()
		return // a resync
	}
	f.clusters[c.Name], f.behind = c, true
	f.mu.Unlock()
	f.told(Change{Old: old, New: c})
}

func (f *Fleet) remove(c *clusterv1alpha1.Cluster) {
	f.mu.Lock()
	delete(f.clusters, c.Name)
	delete(f.toldAt, c.Name)
	f.behind = true
	f.mu.Unlock()
	f.told(Change{Old: c})
}

// told passes a change on. It is called without the lock: who is told may ask for the snapshot.
func (f *Fleet) told(c Change) {
	if !f.Synced() {
		return
	}
	f.mu.Lock()
	tell := f.tell
	f.mu.Unlock()
	for _, t := range tell {
		t(c)
	}
}
