package kruise

import (
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// cacheTimeout is how long a write is expected to be missing from the cache. After that, the cache is believed.
const cacheTimeout = 5 * time.Second

// pending holds the writes that the cache does not show yet, by set, so that no decision is taken twice.
type pending struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]map[string]write
	// conflicts are the steps that met their conflict, by set.
	conflicts map[types.NamespacedName]map[string]bool
}

// write is what is expected of a pod of that name: to be there, to be gone, or to have reached a version.
type write struct {
	gone    types.UID
	version string
	at      time.Time
}

func (p *pending) expect(set types.NamespacedName, pod string, w write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sets == nil {
		p.sets = map[types.NamespacedName]map[string]write{}
	}
	if p.sets[set] == nil {
		p.sets[set] = map[string]write{}
	}
	p.sets[set][pod] = w
}

func (p *pending) forget(set types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sets, set)
	delete(p.conflicts, set)
}

// first returns true the first time that it is called for a step of a set.
func (p *pending) first(set types.NamespacedName, step string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conflicts[set][step] {
		return false
	}
	if p.conflicts == nil {
		p.conflicts = map[types.NamespacedName]map[string]bool{}
	}
	if p.conflicts[set] == nil {
		p.conflicts[set] = map[string]bool{}
	}
	p.conflicts[set][step] = true
	return true
}

// settled reports whether pods show everything that was written for the set.
func (p *pending) settled(set types.NamespacedName, pods []*corev1.Pod, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]*corev1.Pod{}
	for _, pod := range pods {
		seen[pod.Name] = pod
	}
	for name, w := range p.sets[set] {
		if w.shown(seen[name]) || now.Sub(w.at) > cacheTimeout {
			delete(p.sets[set], name)
		}
	}
	if len(p.sets[set]) > 0 {
		return false
	}
	delete(p.sets, set)
	return true
}

func (w write) shown(pod *corev1.Pod) bool {
	if w.gone != "" {
		return pod == nil || pod.UID != w.gone || pod.DeletionTimestamp != nil
	}
	if pod == nil {
		return false
	}
	have, err1 := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	want, err2 := strconv.ParseUint(w.version, 10, 64)
	return err1 != nil || err2 != nil || have >= want
}
