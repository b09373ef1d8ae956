package why

import (
	"cmp"
	"fmt"
	"slices"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// chooser chooses clusters by their capacity.
type chooser = func(schedule.Capacity) (clusters []workv1alpha2.TargetCluster, ok bool)

// failovers plans as the hub does, and returns the moves of the template.
func (e *explanation) failovers() []failover.Move {
	own := e.ownBinding()
	if own == nil || hidden(e.Missing, "clusters") {
		return nil
	}
	in := failover.Input{
		Options: cmp.Or(e.Failover, failover.Defaults), Registered: map[string]bool{},
		Bindings: append(slices.Clip(e.Peers), own),
		Fleet: deschedule.Clusters{Snapshot: e.fleet, Decide: func(b workv1alpha2.Binding, decide chooser) {
			room := e.fleet.Room(b)
			if b == own {
				room = e.room(b)
			}
			decide(room)
		}},
		Facts: func(b workv1alpha2.Binding) (failover.Facts, error) {
			switch {
			case b != own:
				return failover.Facts{}, nil
			case e.holder == nil:
				return failover.FactsOf(e.Facts.Template, nil), nil
			}
			return failover.FactsOf(e.Facts.Template, e.holder.GetAnnotations()), nil
		},
		HasWork: func(_ workv1alpha2.Binding, cluster string) bool {
			for i := range e.Works {
				if e.Works[i].Namespace == names.ExecutionSpace(cluster) {
					return true
				}
			}
			return false
		},
	}
	in.SchedulerName = e.Scheduler.Scheduler()
	for _, c := range e.Clusters {
		in.Registered[c.Name] = true
	}
	moves := failover.Moves([]workv1alpha2.Binding{own}, failover.Make(in, e.Now), e.Now)
	resource := own.BindingSpec().Resource
	return slices.DeleteFunc(moves, func(m failover.Move) bool {
		return m.APIVersion != resource.APIVersion || m.Kind != resource.Kind ||
			m.Namespace != resource.Namespace || m.Name != resource.Name
	})
}

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
