package remedy

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// EventTrafficKept: Remedies would take all clusters out of traffic that could serve, so they stay in traffic. It is
// also the reason of the condition TrafficKept.
//
//reference:event Warning on MultiClusterService and MultiClusterIngress
//reference:reason TrafficKept of MultiClusterService
//reference:reason TrafficKept of MultiClusterIngress
const EventTrafficKept = "TrafficKept"

// Candidate is a cluster that may provide a Service.
type Candidate struct {
	Cluster string
	// Controlled is true if the cluster has the action TrafficControl.
	Controlled bool
	// Live is true if the cluster is Ready and not lost. A cluster that is neither Live nor Lost is one about which
	// failover has not decided yet.
	Live, Lost bool
	// Known is true if it is known whether the Service has endpoints there. Endpoints is true if some are ready, as last
	// known.
	Known, Endpoints bool
}

// Traffic says which clusters with the action TrafficControl are in traffic. No cluster is in two lists. Each list is
// sorted.
type Traffic struct {
	// Blocked are out of traffic.
	Blocked []string
	// Kept stay in traffic: no other cluster could serve.
	Kept []string
	// Held stay as they are, in traffic or out of it: it is not decided yet whether they are lost, or not known whether
	// another cluster could serve.
	Held []string
	// Unknown is true if some are Held because it is not known whether another cluster could serve.
	Unknown bool
}

// Decide returns the traffic of one Service. Clusters with the action TrafficControl are out of traffic if a live
// cluster without the action has ready endpoints. Otherwise all of them stay, because no traffic is worse than traffic
// to a bad cluster. The endpoints of a live cluster that are not known yet decide nothing. A cluster that is not ready
// leaves the traffic only once it is lost: many that are not ready at once are more likely a fault of the hub.
func Decide(candidates []Candidate) Traffic {
	var t Traffic
	replaced, unknown := false, false
	for _, c := range candidates {
		if c.Live && !c.Controlled {
			replaced = replaced || c.Known && c.Endpoints
			unknown = unknown || !c.Known
		}
	}
	for _, c := range candidates {
		switch {
		case !c.Controlled:
		case replaced && (c.Live || c.Lost):
			t.Blocked = append(t.Blocked, c.Cluster)
		case replaced:
			t.Held = append(t.Held, c.Cluster)
		case unknown, !c.Endpoints && !c.Known:
			t.Held, t.Unknown = append(t.Held, c.Cluster), true
		case c.Endpoints:
			t.Kept = append(t.Kept, c.Cluster)
		}
	}
	return t.sorted()
}

// Together returns the traffic of several Services for which a cluster is in traffic or out of it as a whole: it is out
// if it is out for each of them that has it.
func Together(all []Traffic) Traffic {
	var t Traffic
	for _, one := range all {
		t.Kept = append(t.Kept, one.Kept...)
	}
	for _, one := range all {
		t.Held = append(t.Held, difference(one.Held, t.Kept)...)
		t.Unknown = t.Unknown || one.Unknown
	}
	for _, one := range all {
		t.Blocked = append(t.Blocked, difference(difference(one.Blocked, t.Kept), t.Held)...)
	}
	return t.sorted()
}

// Blocking returns the clusters out of traffic, sorted. was are those before: a held cluster stays as it is.
func (t Traffic) Blocking(was []string) []string {
	out := slices.Clone(t.Blocked)
	for _, c := range t.Held {
		if slices.Contains(was, c) {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out
}

// difference returns what is in list and not in taken.
func difference(list, taken []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(taken, s) })
}

func (t Traffic) sorted() Traffic {
	for _, list := range []*[]string{&t.Blocked, &t.Kept, &t.Held} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return t
}

// KeptCondition returns the condition that clusters stay in traffic; nil for none. was is the present condition, which
// does not change while it is unknown whether others could serve. remedies are the names of the Remedies
// that give the kept clusters the action.
func KeptCondition(t Traffic, remedies []string, was *metav1.Condition) *metav1.Condition {
	switch {
	case t.Unknown && (was != nil || len(t.Kept) == 0):
		return was
	case len(t.Kept) == 0:
		return nil
	}
	against := "a Remedy"
	if len(remedies) > 0 {
		against = "Remedy " + text.Names(remedies, 3)
	}
	return &metav1.Condition{Type: networkingv1alpha1.TrafficKept, Status: metav1.ConditionTrue, Reason: EventTrafficKept,
		Message: fmt.Sprintf("traffic to %s continues against %s: no other cluster is ready and has ready endpoints; "+
			"provide endpoints in another cluster, or change the Remedy", text.Names(t.Kept, 3), against)}
}
