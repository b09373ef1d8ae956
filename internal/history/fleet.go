package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
)

// FleetEvent is something that happened in the fleet beside releases.
type FleetEvent struct {
	// UID of the object. The UID, the type, the time and the generation identify the event.
	UID  string
	Type string
	At   time.Time
	Workload
	// Generation of the object if its change is the event. It distinguishes two events in one second.
	Generation int64
	// From and To are sorted by name.
	From, To []PlacedCluster
	// User and Manager are the user and the field manager that changed the object; empty if they are not known.
	User, Manager   string
	Reason, Message string
}

// The types of FleetEvents.
const (
	Joined         = "Joined"     // a cluster joined the fleet
	Left           = "Left"       // a cluster was removed from the fleet
	BecameNotReady = "NotReady"   // a cluster became not ready
	BecameReady    = "Ready"      // a cluster became ready again
	Placed         = "Placed"     // a workload got its first clusters
	Moved          = "Moved"      // a workload has other clusters, or other numbers of replicas in them; a failback too
	FailedOver     = "FailedOver" // a failover moved a workload
	Removed        = "Removed"    // a workload left the fleet
	Changed        = "Changed"    // a policy was created or changed
	Deleted        = "Deleted"    // a policy was deleted
)

// PolicyResources has the kinds of policies whose changes are recorded, with their resources.
var PolicyResources = map[string]string{
	"PropagationPolicy": "propagationpolicies", "ClusterPropagationPolicy": "clusterpropagationpolicies",
	"OverridePolicy": "overridepolicies", "ClusterOverridePolicy": "clusteroverridepolicies",
}

// young is the maximum age of a new binding: the placement of an older one is not an event.
const young = 10 * time.Minute

// PlacedCluster is a cluster of a workload, with its replicas there. A workload without replicas has 0.
type PlacedCluster struct {
	Name     string `json:"name"`
	Replicas int32  `json:"replicas,omitempty"`
}

// Placement has the clusters of the workload of a binding.
type Placement struct {
	Binding  string
	UID      string
	Workload Workload
	// Clusters are sorted by name.
	Clusters []PlacedCluster
}

// IsSame reports whether p has the same binding and the same clusters.
func (p Placement) IsSame(other Placement) bool {
	return p.UID == other.UID && slices.Equal(p.Clusters, other.Clusters)
}

func PlacementOf(b workv1alpha2.Binding) Placement {
	spec := b.BindingSpec()
	ref := spec.Resource
	clusters := make([]PlacedCluster, len(spec.Clusters))
	for i, c := range spec.Clusters {
		clusters[i] = PlacedCluster{c.Name, c.Replicas}
	}
	slices.SortFunc(clusters, func(a, b PlacedCluster) int { return strings.Compare(a.Name, b.Name) })
	return Placement{Binding: b.GetName(), UID: string(b.GetUID()), Clusters: clusters,
		Workload: Workload{Group: match.GroupKind(ref.APIVersion, ref.Kind).Group, Kind: ref.Kind,
			Namespace: ref.Namespace, Name: ref.Name}}
}

// EventOfBinding returns the difference between the last recorded placement and a binding; nil for none. A change of
// the number of replicas alone is not an event. If replicas leave a cluster that has an eviction task, the event has
// the reason of the task, and is a failover unless the reason is a failback. Clusters that the scheduler adds meanwhile
// are a move.
func EventOfBinding(last Placement, b workv1alpha2.Binding, now time.Time) *FleetEvent {
	is := PlacementOf(b)
	e := &FleetEvent{UID: is.UID, Type: Moved, At: now, Workload: is.Workload, Generation: b.GetGeneration(),
		From: last.Clusters, To: is.Clusters}
	if last.UID != is.UID {
		if len(is.Clusters) == 0 || now.Sub(b.GetCreationTimestamp().Time) > young {
			return nil
		}
		e.Type, e.From = Placed, nil
		return e
	}
	was, total := namesAndTotal(last.Clusters)
	current, sum := namesAndTotal(is.Clusters)
	switch {
	case slices.Equal(was, current) && (slices.Equal(last.Clusters, is.Clusters) || total != sum):
		return nil
	case len(was) == 0:
		e.Type = Placed
	}
	for _, task := range b.BindingSpec().GracefulEvictionTasks {
		if !hasFewer(last.Clusters, is.Clusters, task.FromCluster) {
			continue
		}
		e.Reason, e.Message = task.Reason, task.Message
		if task.Reason != failover.ReasonFailback {
			e.Type = FailedOver
			break
		}
	}
	return e
}

// hasFewer reports whether a cluster is no longer in a placement, or has fewer replicas in it.
func hasFewer(before, after []PlacedCluster, cluster string) bool {
	named := func(c PlacedCluster) bool { return c.Name == cluster }
	was, is := slices.IndexFunc(before, named), slices.IndexFunc(after, named)
	return was >= 0 && (is < 0 || after[is].Replicas < before[was].Replicas)
}

// namesAndTotal returns the names of clusters and the total of their replicas.
func namesAndTotal(clusters []PlacedCluster) (names []string, total int64) {
	for _, c := range clusters {
		names, total = append(names, c.Name), total+int64(c.Replicas)
	}
	return names, total
}

// EventsOfCluster returns the events that a cluster object shows. The same object always gives the same events.
func EventsOfCluster(c *clusterv1alpha1.Cluster) []FleetEvent {
	e := FleetEvent{UID: string(c.UID), Workload: Workload{Group: clusterv1alpha1.GroupVersion.Group, Kind: "Cluster",
		Name: c.Name}, To: []PlacedCluster{{Name: c.Name}}, Type: Joined, At: c.CreationTimestamp.Time}
	events := []FleetEvent{e}
	if ready := membership.Readiness(c); ready != nil {
		e.Type, e.At, e.Reason, e.Message = BecameNotReady, ready.LastTransitionTime.Time, ready.Reason, ready.Message
		if membership.IsReady(c) {
			e.Type, e.Message = BecameReady, ""
		}
		events = append(events, e)
	}
	return events
}

// LeftOf returns the event that a cluster was removed from the fleet.
func LeftOf(name, uid string, at time.Time) FleetEvent {
	return FleetEvent{UID: uid, Type: Left, At: at, From: []PlacedCluster{{Name: name}},
		Workload: Workload{Group: clusterv1alpha1.GroupVersion.Group, Kind: "Cluster", Name: name}}
}

// EventOfChange returns the last change of the spec of an object, from its managed fields; nil if they do not show it.
// The user is the one whom admission stored with the change.
func EventOfChange(obj client.Object, group, kind string) *FleetEvent {
	var last *metav1.ManagedFieldsEntry
	for i := range obj.GetManagedFields() {
		f := &obj.GetManagedFields()[i]
		if f.Time == nil || f.Subresource != "" || f.FieldsV1 == nil ||
			!strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`) {
			continue
		}
		if last == nil || last.Time.Before(f.Time) {
			last = f
		}
	}
	if last == nil {
		return nil
	}
	return &FleetEvent{UID: string(obj.GetUID()), Type: Changed, At: last.Time.Time, Manager: last.Manager,
		User: obj.GetAnnotations()[wellknown.ChangedByAnnotation], Generation: obj.GetGeneration(),
		Workload: Workload{Group: group, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

var (
	fleetTable = table{name: "fleet_events", keys: 4, immutable: true, columns: []string{"uid", "type", "at",
		"generation", "api_group", "kind", "namespace", "name", "from_clusters", "to_clusters", "manager", "reason",
		"message", "by_user"}, added: map[string]any{"by_user": ""}}
	placementsTable = table{name: "placements", keys: 2, columns: []string{"namespace", "binding", "uid", "api_group",
		"kind", "name", "clusters"}}
)

func (e FleetEvent) row() row {
	return row{fleetTable, []any{e.UID, e.Type, timeText(&metav1.Time{Time: e.At}), e.Generation, e.Group, e.Kind,
		e.Namespace, e.Name, encodeClusters(e.From), encodeClusters(e.To), e.Manager, e.Reason, e.Message, e.User}}
}

func (p Placement) row() row {
	w := p.Workload
	return row{placementsTable, []any{w.Namespace, p.Binding, p.UID, w.Group, w.Kind, w.Name, encodeClusters(p.Clusters)}}
}

// encodeClusters returns a JSON list.
func encodeClusters(clusters []PlacedCluster) string {
	if len(clusters) == 0 {
		return "[]"
	}
	raw, _ := json.Marshal(clusters) // it has texts and numbers alone
	return string(raw)
}

// decodeClusters reads a list of encodeClusters.
func decodeClusters(raw string) (clusters []PlacedCluster, err error) {
	if err := json.Unmarshal([]byte(raw), &clusters); err != nil {
		return nil, fmt.Errorf("read clusters of the history: %w", err)
	}
	return clusters, nil
}

// clusterPattern returns the LIKE pattern for a list of encodeClusters that contains a cluster.
func clusterPattern(name string) string { return `%{"name":"` + escapeLike(name) + `"%` }

func (s *Store) RecordFleet(ctx context.Context, events []FleetEvent) error {
	rows := make([]row, len(events))
	for i, e := range events {
		rows[i] = e.row()
	}
	return s.upsert(ctx, rows)
}

// RecordPlacement writes the clusters of a workload, and the event that led to them; nil for none.
func (s *Store) RecordPlacement(ctx context.Context, p Placement, e *FleetEvent) error {
	rows := []row{p.row()}
	if e != nil {
		rows = append(rows, e.row())
	}
	return s.upsert(ctx, rows)
}

// PlacementOfBinding returns the last recorded placement of a binding; the zero value for none.
func (s *Store) PlacementOfBinding(ctx context.Context, namespace, binding string) (p Placement, err error) {
	err = s.query(ctx, "SELECT uid, api_group, kind, name, clusters FROM placements WHERE namespace = ? AND binding = ?",
		[]any{namespace, binding}, func(found *sql.Rows) error {
			p.Binding, p.Workload.Namespace = binding, namespace
			var clusters string
			if err := found.Scan(&p.UID, &p.Workload.Group, &p.Workload.Kind, &p.Workload.Name, &clusters); err != nil {
				return err
			}
			var err error
			p.Clusters, err = decodeClusters(clusters)
			return err
		})
	return p, err
}

// HasEvent reports whether the history has an event of a type for an object.
func (s *Store) HasEvent(ctx context.Context, uid, kind string) (found bool, err error) {
	err = s.query(ctx, "SELECT 1 FROM fleet_events WHERE uid = ? AND type = ? LIMIT 1", []any{uid, kind},
		func(*sql.Rows) error { found = true; return nil })
	return found, err
}

// RecordGone writes the event that an object was deleted, unless the history has one.
func (s *Store) RecordGone(ctx context.Context, e FleetEvent) error {
	if has, err := s.HasEvent(ctx, e.UID, e.Type); err != nil || has {
		return err
	}
	return s.RecordFleet(ctx, []FleetEvent{e})
}
