package failover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Move is a workload that should leave a cluster, is leaving it, or has left it within the last hour.
type Move struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	From       string `json:"from"`
	// To are the clusters that take over, with the replicas that each gains; empty while there is no replacement.
	To []workv1alpha2.TargetCluster `json:"to,omitempty"`
	// Reason is why it leaves, such as TaintUntolerated.
	Reason string `json:"reason,omitempty"`
	// WaitingFor says why it waits; empty if it does not wait. Message is the text for people.
	WaitingFor Code   `json:"waitingFor,omitempty"`
	Message    string `json:"message,omitempty"`
	// Since is when the cause began, Until when the wait ends by itself, Ended when the move was over.
	Since *time.Time `json:"since,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	Ended *time.Time `json:"ended,omitempty"`
}

// Workload names the workload for people: "Deployment shop/web".
func (m Move) Workload() string { return text.Object(m.Kind, m.Namespace, m.Name) }

// Destination formats To for users: "m2:2, m3:1".
func (m Move) Destination() string {
	var out []string
	for _, t := range m.To {
		if t.Replicas > 0 {
			t.Name = fmt.Sprintf("%s:%d", t.Name, t.Replicas)
		}
		out = append(out, t.Name)
	}
	return strings.Join(out, ", ")
}

// ClustersUnread is in no plan: the reader of a move may not list clusters, on which the wait depends.
const ClustersUnread Code = "ClustersUnread"

// Recorded returns the moves of bindings without a plan, which needs the clusters: those under way, and those that
// ended. What they wait for is not known.
func Recorded(bindings []workv1alpha2.Binding, now time.Time) []Move {
	var plan Plan
	for _, b := range bindings {
		for _, task := range b.BindingSpec().GracefulEvictionTasks {
			w := Waiting{Binding: keyOf(b), Resource: b.BindingSpec().Resource, From: task.FromCluster, Evicted: true,
				Reason: task.Reason, Code: ClustersUnread, Message: "what it waits for depends on clusters, which you may not list"}
			if task.CreationTimestamp != nil {
				w.Since = task.CreationTimestamp.Time
			}
			plan.Waiting = append(plan.Waiting, w)
		}
	}
	return Moves(bindings, plan, now)
}

// Moves returns the moves of the bindings of a plan, sorted by workload and cluster.
func Moves(bindings []workv1alpha2.Binding, plan Plan, now time.Time) []Move {
	var moves []Move
	records, changes := map[types.NamespacedName]Record{}, map[types.NamespacedName]map[string]string{}
	add := func(of workv1alpha2.ObjectReference, from string, since time.Time, m Move) {
		m.APIVersion, m.Kind, m.Namespace, m.Name, m.From = of.APIVersion, of.Kind, of.Namespace, of.Name, from
		if !since.IsZero() {
			m.Since = new(since.UTC())
		}
		moves = append(moves, m)
	}
	for _, b := range bindings {
		record := RecordOf(b)
		if record == nil {
			continue
		}
		records[keyOf(b)], changes[keyOf(b)] = record, map[string]string{}
		for from := range record {
			changes[keyOf(b)][from] = record.revisionChange(b, from)
		}
		for from, d := range shown(b, now) {
			add(b.BindingSpec().Resource, from, d.Since, Move{To: d.To, Reason: d.Reason, Ended: d.Ended,
				Message: changes[keyOf(b)][from]})
		}
	}
	for _, w := range plan.Waiting {
		m := Move{Reason: w.Reason, WaitingFor: w.Code, Message: w.Message}
		if w.Evicted {
			m.To = records[w.Binding][w.From].To
			m.Message = strings.TrimSuffix(m.Message+"; "+changes[w.Binding][w.From], "; ")
		}
		if !w.Until.IsZero() {
			m.Until = new(w.Until.UTC())
		}
		add(w.Resource, w.From, w.Since, m)
	}
	for _, e := range plan.Evictions {
		spec := e.Binding.BindingSpec()
		change := revisionChange(e.Binding, []string{e.From}, e.To, newCopies(e.Binding, e.To))
		message := strings.TrimSuffix("the hub is about to move it; "+change, "; ")
		add(spec.Resource, e.From, e.Since, Move{To: e.To, Reason: e.Reason(), Message: message})
	}
	for _, f := range plan.Finishes {
		for _, t := range f.Tasks {
			to := records[keyOf(f.Binding)][t.Task.FromCluster].To
			add(f.Binding.BindingSpec().Resource, t.Task.FromCluster, t.Since, Move{
				To: to, Reason: t.Task.Reason, Message: "the old copy is about to be removed"})
		}
	}
	slices.SortStableFunc(moves, func(a, b Move) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name), strings.Compare(a.From, b.From))
	})
	return moves
}
