// Package capacity keeps the snapshot of member clusters for the scheduler, with their free capacity and the
// reservations for placements whose pods do not exist yet. The controllers schedule and propagate place bindings with
// Fleet.Schedule.
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
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/member"
)

// Change is a cluster before and after a change; nil if it did not exist before or after.
type Change struct {
	Old, New *clusterv1alpha1.Cluster
}

// Fleet is the set of member clusters, updated by a watch.
type Fleet struct {
	mu       sync.Mutex
	clusters map[string]*clusterv1alpha1.Cluster
	snapshot schedule.Snapshot
	behind   bool // snapshot is older than the last change
	changed  []func(Change)

	// Clock is the real clock unless a test replaces it before the start.
	Clock clock.PassiveClock

	members *member.Members // nil if only summaries are used
	// bindings reads bindings from a cache; nil if only summaries are used.
	bindings client.Reader
	// placing is locked while one placement is decided, or checked again after its plan, and its room is reserved.
	placing    sync.Mutex
	estimators []func(workv1alpha2.Binding, schedule.Snapshot) schedule.Capacity
	assumed    map[types.NamespacedName]assumed
	sweeping   bool
	// recent are bindings that were placed shortly before the start. recalled are the members that have been informed.
	recent   map[types.NamespacedName]workv1alpha2.Binding
	recalled map[string]bool

	room []func(cluster string)
	// notifiedAt is the last notification about room per cluster. notifying are the clusters with a pending notification.
	notifiedAt map[string]time.Time
	notifying  map[string]bool

	registration cache.ResourceEventHandlerRegistration
}

// NewFleet watches the clusters of a cache.
func NewFleet(ctx context.Context, c ctrlcache.Informers) (*Fleet, error) {
	f := &Fleet{
		clusters: map[string]*clusterv1alpha1.Cluster{}, Clock: clock.RealClock{},
		assumed: map[types.NamespacedName]assumed{}, recent: map[types.NamespacedName]workv1alpha2.Binding{},
		recalled:   map[string]bool{},
		notifiedAt: map[string]time.Time{}, notifying: map[string]bool{},
	}
	informer, err := c.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	f.registration, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.put(obj.(*clusterv1alpha1.Cluster)) },
		UpdateFunc: func(_, obj any) { f.put(obj.(*clusterv1alpha1.Cluster)) },
		DeleteFunc: func(obj any) {
			f.remove(filter.LastState(obj).(*clusterv1alpha1.Cluster))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch clusters: %w", err)
	}
	return f, nil
}

// Synced reports whether all clusters that existed at the start are known. Nothing may be scheduled before.
func (f *Fleet) Synced() bool { return f.registration.HasSynced() }

// WaitForSync waits until the fleet is Synced, or returns an error when ctx ends.
func (f *Fleet) WaitForSync(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), f.Synced) {
		return errors.New("the clusters were not listed in time")
	}
	return nil
}

// OnChange subscribes notify to later changes. It is called after the snapshot includes the change and must not block.
// Clusters that exist at the start are no change.
func (f *Fleet) OnChange(notify func(Change)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = append(f.changed, notify)
}

// Use sets the settings of the scheduler.
func (f *Fleet) Use(s schedule.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshot, f.behind = s.Snapshot(nil), true
}

// Snapshot returns the current fleet. It is immutable.
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
		return // resync without a change
	}
	f.clusters[c.Name], f.behind = c, true
	f.mu.Unlock()
	f.notify(Change{Old: old, New: c})
}

func (f *Fleet) remove(c *clusterv1alpha1.Cluster) {
	f.mu.Lock()
	delete(f.clusters, c.Name)
	delete(f.notifiedAt, c.Name)
	f.behind = true
	f.mu.Unlock()
	f.notify(Change{Old: c})
}

// notify passes a change to subscribers. It must be called without the lock, because subscribers may read the snapshot.
func (f *Fleet) notify(c Change) {
	if !f.Synced() {
		return
	}
	f.mu.Lock()
	changed := f.changed
	f.mu.Unlock()
	for _, t := range changed {
		t(c)
	}
}
