// Package heap paces the memory of a process that embeds Kubernetes: much room in a burst, where every fifth of its time would
// otherwise go into collections, and little when there is nothing to do.
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
	// Roomy is for Pace: the heap grows to thrice of what is alive between collections.
	Roomy = 200
	// Thrifty is Go's own: to twice of what is alive.
	Thrifty = 100
	// period is how often the process is looked at.
	period = 2 * time.Second
	// calm is the share of one core below which a process counts as having nothing to do.
	calm = 0.2
	// worth is how much must be to be given back, in bytes: less is not worth a collection.
	worth = 48 << 20
)

// Pace paces the process until ctx ends; percent is how far the heap grows between collections, as a share of what is alive. Whoever sets GOGC or GOMEMLIMIT knows better: then it does nothing.
func Pace(ctx context.Context, percent int) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(percent)
	go func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		p := pacer{used: used()}
		for {
			select {
			case <-ticker.C:
				if p.trims(used(), period, spare()) {
					debug.FreeOSMemory()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}

// pacer remembers what was seen at the last look.
type pacer struct {
	used time.Duration
	// was says that there was nothing to do before the last look.
	was bool
}

// trims says whether it is time to give memory back: nothing was to be done for two periods, and it is worth it. used is the
// processor time of the process so far, spare the memory in bytes that it holds without need.
func (p *pacer) trims(used, period time.Duration, spare uint64) bool {
	is := used-p.used < time.Duration(calm*float64(period))
	now := is && p.was
	p.used, p.was = used, is
	return now && spare >= worth
}

// spare is what a collection would find and what the heap keeps free, in bytes.
func spare() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	objects, free, live := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	return max(objects, live) - live + free
}

// used is the processor time of the process so far.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
