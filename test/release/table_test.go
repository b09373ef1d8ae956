package release

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// row of the table: the writes of a release with their limits, and how long the hub took from the last report of a
// member to the next stage.
type row struct {
	scenario                                   string
	status, statusLimit, binding, bindingLimit int
	delays                                     []time.Duration
}

func (r row) String() string {
	next := "-"
	if len(r.delays) > 0 {
		next = fmt.Sprintf("%.2f s", slices.Max(r.delays).Seconds())
	}
	return fmt.Sprintf("%s\t%d of %d\t%d of %d\t%s", r.scenario, r.status, r.statusLimit, r.binding, r.bindingLimit, next)
}

// figures are the rows of all scenarios.
type figures struct {
	mu   sync.Mutex
	rows []row
}

func (f *figures) add(r row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = append(f.rows, r)
}

func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.SortFunc(f.rows, func(a, b row) int { return strings.Compare(a.scenario, b.scenario) })
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "scenario\tstatus writes\tbinding writes\tlast report to next stage (target 1 s)")
	for _, r := range f.rows {
		fmt.Fprintln(w, r)
	}
	_ = w.Flush()
	return out.String()
}
