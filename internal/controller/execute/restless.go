package execute

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// What turns at once is written at once, to the Work, its binding and its template: an object that a broken or hostile
// member has turn a hundred times a second would be most of what the hub writes. After turnsAtOnce it may turn
// turnsASecond, and what is between is not told.
const turnsAtOnce, turnsASecond = 30, 1

// restless are the Works whose condition or health turned of late.
type restless struct {
	mu    sync.Mutex
	works map[types.NamespacedName]*turns
	// sweep is how many there may be until those are forgotten that have been quiet.
	sweep int
}

type turns struct {
	*rate.Limiter
	last time.Time
}

// turn reports whether one more turn of a Work is told at once.
func (r *restless) turn(key types.NamespacedName, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	const quiet = time.Second * turnsAtOnce / turnsASecond
	if len(r.works) >= r.sweep {
		maps.DeleteFunc(r.works, func(_ types.NamespacedName, t *turns) bool { return now.Sub(t.last) >= quiet })
		r.sweep = max(1000, 2*len(r.works))
	}
	t := r.works[key]
	if t == nil {
		t = &turns{Limiter: rate.NewLimiter(turnsASecond, turnsAtOnce)}
		if r.works == nil {
			r.works = map[types.NamespacedName]*turns{}
		}
		r.works[key] = t
	}
	t.last = now
	return t.AllowN(now, 1)
}

func (r *restless) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.works, key)
}
