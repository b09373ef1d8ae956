package commit

import (
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PendingWriteLife is how long the cache may lack a write. An object that the cache lacks for longer was deleted before
// the cache could show it.
const PendingWriteLife = 10 * time.Second

// PendingWrites are objects that were written and that the cache may not show yet. A controller looks them up before it
// decides, so that it reads its own writes. Each write belongs to a key: the name of the object itself, or of the
// object that it was written for. The zero value is empty.
type PendingWrites[O client.Object] struct {
	// Life is how long a write is kept; 0 is until Seen or Forget is called.
	Life time.Duration
	// Clock is the time; default the real one.
	Clock clock.PassiveClock

	mu     sync.Mutex
	writes map[types.NamespacedName][]pendingWrite[O]
	swept  time.Time
}

type pendingWrite[O client.Object] struct {
	object O
	at     time.Time
}

// Add records the object as the server returned it. It replaces an earlier write of the object under the same key.
func (p *PendingWrites[O]) Add(key types.NamespacedName, written O) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.currentTime()
	if p.writes == nil {
		p.writes = map[types.NamespacedName][]pendingWrite[O]{}
	}
	if p.Life > 0 && now.Sub(p.swept) >= p.Life {
		for k := range p.writes {
			p.remove(k, func(w pendingWrite[O]) bool { return p.expired(w, now) })
		}
		p.swept = now
	}
	p.remove(key, func(w pendingWrite[O]) bool { return sameName(w.object, written) })
	p.writes[key] = append(p.writes[key], pendingWrite[O]{written, now})
}

// Get returns the pending writes of the key. The caller must not change them.
func (p *PendingWrites[O]) Get(key types.NamespacedName) []O { return p.Older(key, 0) }

// Older returns the pending writes of the key that are at least as old as age. The caller must not change them.
func (p *PendingWrites[O]) Older(key types.NamespacedName, age time.Duration) []O {
	p.mu.Lock()
	defer p.mu.Unlock()
	var objects []O
	now := p.currentTime()
	for _, w := range p.writes[key] {
		if !p.expired(w, now) && now.Sub(w.at) >= age {
			objects = append(objects, w.object)
		}
	}
	return objects
}

// Seen forgets the write of an object under the key if cached shows it.
func (p *PendingWrites[O]) Seen(key types.NamespacedName, cached client.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(key, func(w pendingWrite[O]) bool { return sameName(w.object, cached) && Shows(cached, w.object) })
}

// Gone forgets the write of an object that was deleted under the key, also if its last known state is older.
func (p *PendingWrites[O]) Gone(key types.NamespacedName, deleted client.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(key, func(w pendingWrite[O]) bool {
		return sameName(w.object, deleted) && (w.object.GetUID() == deleted.GetUID() || Shows(deleted, w.object))
	})
}

// Forget forgets all writes of a key, for example because its object was deleted.
func (p *PendingWrites[O]) Forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.writes, key)
}

// ForgetIf forgets all writes of the keys for which which returns true.
func (p *PendingWrites[O]) ForgetIf(which func(types.NamespacedName) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.writes, func(key types.NamespacedName, _ []pendingWrite[O]) bool { return which(key) })
}

// Len returns the number of keys that have writes.
func (p *PendingWrites[O]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.writes)
}

func (p *PendingWrites[O]) currentTime() time.Time {
	if p.Clock == nil {
		return time.Now()
	}
	return p.Clock.Now()
}

func (p *PendingWrites[O]) expired(w pendingWrite[O], now time.Time) bool {
	return p.Life > 0 && now.Sub(w.at) >= p.Life
}

// remove removes writes of a key. The caller holds the lock.
func (p *PendingWrites[O]) remove(key types.NamespacedName, which func(pendingWrite[O]) bool) {
	if writes := slices.DeleteFunc(p.writes[key], which); len(writes) > 0 {
		p.writes[key] = writes
	} else {
		delete(p.writes, key)
	}
}

func sameName(a, b client.Object) bool {
	return a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}

// Shows reports whether the cache has an object as it was written, or later, or a later one of the same name. It is
// also true if the versions cannot be compared.
func Shows(cached, written client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written.GetResourceVersion())
	return err != nil || order >= 0
}

// Newest returns the pending write of the cached object if the cache does not show it yet, and otherwise cached.
func Newest[O client.Object](cached O, pending []O) O {
	for _, written := range pending {
		if sameName(cached, written) && !Shows(cached, written) {
			return written
		}
	}
	return cached
}

// VersionOf returns the name and the version of an object, for PendingWrites that need no more of it.
func VersionOf(obj client.Object) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration()}}
}
