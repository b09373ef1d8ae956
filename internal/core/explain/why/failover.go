package why

import (
	"fmt"

	"github.com/argosy-io/argosy/internal/core/adjust/failover"
)

// explainFailover reports that the template should leave a cluster, and what the eviction waits for.
func (e *explanation) explainFailover(cluster string) {
	for _, m := range e.answer.Failovers {
		if m.From != cluster || m.Ended != nil {
			continue
		}
		severity, next := Waiting, ""
		switch {
		case m.WaitingFor == failover.NothingFits:
			severity, next = Attention, "add capacity, or let the placement select more clusters"
		case m.WaitingFor.NeedsUser():
			severity = Attention
		}
		what := fmt.Sprintf("%s: it should leave the cluster (%s): %s", cluster, m.Reason, m.Message)
		e.find(severity, cluster, what, next)
	}
}
