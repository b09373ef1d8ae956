package commit

import (
	"runtime"
	"strings"
)

// QueueStuck says that a queue of controllers was shut down just as it handed out an item, and holds its workers for
// ever: a fault of controller-runtime up to 0.24 (kubernetes-sigs/controller-runtime#3538). Its manager then ends with
// an error though nothing is under way.
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
