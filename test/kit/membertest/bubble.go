package membertest

import (
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// The second default handler delays errors by the time since the last error of the process. Bubbles do not share a
// clock.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// Run runs a test in a testing/synctest bubble: its clock moves only when all goroutines wait. Waiting takes no time,
// and the speed of the machine does not matter. Use servers of NewInMemory, reached with Dial: a bubble cannot wait for
// sockets.
func Run(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// A bubble must be empty at its end. Goroutines that end with a timer get the time.
		t.Cleanup(func() { time.Sleep(time.Hour) })
		test(t)
	})
}

// Advance moves the clock of the bubble, and returns when all due work is done.
func Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Timeout is how long a test waits for a condition, on the clock of the bubble.
const Timeout = time.Minute

// Becomes reports whether a condition becomes true within Timeout.
func Becomes(holds func() bool) bool {
	pause := 5 * time.Millisecond
	for end := time.Now().Add(Timeout); time.Now().Before(end); pause = min(2*pause, 100*time.Millisecond) {
		synctest.Wait()
		if holds() {
			return true
		}
		time.Sleep(pause)
	}
	return false
}
