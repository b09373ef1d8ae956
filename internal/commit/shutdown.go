package commit

import (
	"runtime"
	"strings"
)

// QueueStuck reports whether a controller's queue blocks its workers forever because it was shut down while it returned
// an item. This is a bug of controller-runtime up to 0.24 (kubernetes-sigs/controller-runtime#3538). The manager then
// ends with an error although no reconciliation is running.
func QueueStuck() bool {
	stacks := make([]byte, 1<<20)
	for n := runtime.Stack(stacks, true); n == len(stacks); n = runtime.Stack(stacks, true) {
		stacks = make([]byte, 2*len(stacks))
	}
	for _, g := range strings.Split(string(stacks), "\n\n") {
		if state, _, _ := strings.Cut(g, "\n"); strings.Contains(state, "[chan send") &&
			strings.Contains(g, "priorityqueue") && strings.Contains(g, ".handleReadyItems") {
			return true
		}
	}
	return false
}
