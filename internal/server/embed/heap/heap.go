// Package heap paces the memory of a process that embeds Kubernetes: much room in a burst, where every fifth of its
// time would otherwise go into collections, and little when there is nothing to do.
package heap

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

const (
	// Roomy is for Pace: so many bytes of garbage may gather between collections.
	Roomy = 768 << 20
	// Thrifty has Go's own pace.
	Thrifty = 0
	// starting is the pace until the process has started, in percent.
	starting = 200
	// period is how often the process is looked at.
	period = time.Second
	// calm is the share of one core below which a process counts as having nothing to do.
	calm = 0.2
	// settled is for how many periods nothing must be to be done for the start to be over.
	settled = 5
	// worth is how much must be to be given back, in bytes: less is not worth a collection.
	worth = 32 << 20
)

// Pace paces the process until ctx ends; room is how much garbage may gather between collections, in bytes. Whoever
// sets GOGC or GOMEMLIMIT knows better: then it does nothing.
func Pace(ctx context.Context, room uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
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
					debug.FreeOSMemory()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}

// percent is Go's measure for the room, as a share of what is alive: at least its own, and not so much that a small
// process grows without need.
func percent(live, room uint64) int {
	return int(min(max(room*100/max(live, 1), 100), 400))
}

// live is what the last collection found alive, in bytes.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// pacer remembers what was seen at the last look.
type pacer struct {
	used time.Duration
	// calm is how many looks in a row found nothing to do.
	calm int
	// started says that the start is over: what it leaves for good would lie scattered over a large heap for ever.
	started bool
}

// trims says whether it is time to give memory back: nothing was to be done for two periods, and it is worth it. used
// is the processor time of the process so far, spare the memory in bytes that it holds without need.
func (p *pacer) trims(used, period time.Duration, spare uint64) bool {
	if used-p.used < time.Duration(calm*float64(period)) {
		p.calm++
	} else {
		p.calm = 0
	}
	p.used, p.started = used, p.started || p.calm >= settled
	return p.calm >= 2 && spare >= worth
}

// spare is what a collection would find and what the heap keeps free, in bytes.
func spare() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(samples)
	objects, alive := samples[0].Value.Uint64(), live()
	return max(objects, alive) - alive + samples[1].Value.Uint64()
}

// used is the processor time of the process so far.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
