// Package heap tunes the garbage collector of a process that embeds Kubernetes: much garbage may accumulate in a burst,
// where collections would otherwise take a fifth of the time, and little when the process is idle.
package heap

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// Roomy is for Pace: so many bytes of garbage may gather between collections.
	Roomy = 768 << 20
	// Thrifty has Go's own pace.
	Thrifty = 0
	// starting is the pace until the process serves, in percent.
	starting = 200
	// settling is the pace from then until the start is over, in percent. At a slower pace, live objects lie scattered
	// among the garbage, and its memory cannot be returned.
	settling = 50
	// period is the interval of checks of the process.
	period = time.Second
	// calm is the share of one core below which a process counts as having nothing to do.
	calm = 0.2
	// settled is the number of idle checks in a row after which the start is over.
	settled = 5
	// busiest is the processor time after which the start is over, for a process that is never idle.
	busiest = 30 * time.Second
	// worth is the minimal amount of garbage, in bytes, that justifies a collection.
	worth = 16 << 20
)

// Pace tunes the garbage collector until ctx ends; room is how many bytes of garbage may accumulate between
// collections. It does nothing if GOGC or GOMEMLIMIT is set.
func Pace(ctx context.Context, room uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	paced.Store(true)
	debug.SetGCPercent(min(starting, percent(live(), room)))
	go func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		p := pacer{used: used()}
		for {
			select {
			case <-ticker.C:
				if p.started {
					debug.SetGCPercent(percent(live(), room))
				}
				if p.trims(used(), period, spare()) {
					runtime.GC() // what pools keep is garbage only after a second collection
					debug.FreeOSMemory()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}

// paced is set when Pace tunes this process.
var paced atomic.Bool

// Settle collects garbage more often until the start of the process is over. It is called when the process serves, so
// that it does not delay that. It does nothing without Pace.
func Settle() {
	if paced.Load() {
		debug.SetGCPercent(settling)
	}
}

// percent converts room to GOGC's percentage of the live heap: at least Go's default, with a limit for small processes.
func percent(live, room uint64) int {
	return int(min(max(room*100/max(live, 1), 100), 400))
}

// live returns the bytes that survived the last collection.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// pacer has the state of the last check.
type pacer struct {
	used time.Duration
	// calm is the number of idle checks in a row.
	calm int
	// started is true if the start is over: its garbage would otherwise stay scattered over a large heap.
	started bool
}

// trims reports whether to return memory to the system: the process was idle for two periods, and it is worth it. used
// is the processor time of the process so far, spare the unused memory in bytes.
func (p *pacer) trims(used, period time.Duration, spare uint64) bool {
	if used-p.used < time.Duration(calm*float64(period)) {
		p.calm++
	} else {
		p.calm = 0
	}
	p.used, p.started = used, p.started || p.calm >= settled || used >= busiest
	return p.calm >= 2 && spare >= worth
}

// spare returns the garbage and the free memory of the heap, in bytes.
func spare() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(samples)
	objects, alive := samples[0].Value.Uint64(), live()
	return max(objects, alive) - alive + samples[1].Value.Uint64()
}

// used returns the processor time of the process so far.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
