package history

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
)

// clusters is a list of clusters with replicas.
type clusters map[string]int32

// placed returns the binding of the Deployment web with replicas in clusters.
func placed(in clusters, evicted ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "b1",
		CreationTimestamp: *minute(0)}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	for name, replicas := range in {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: replicas})
	}
	for _, name := range evicted {
		b.Spec.GracefulEvictionTasks = append(b.Spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{
			FromCluster: name, Reason: "TaintUntolerated", Message: "not ready"})
	}
	return b
}

func TestChangesOfClustersAreEvents(t *testing.T) {
	for name, c := range map[string]struct {
		was, is clusters
		evicted []string
		want    string
	}{
		"first clusters":  {nil, clusters{"eu": 2}, nil, "Placed [] → [{eu 2}]"},
		"another cluster": {clusters{"eu": 2}, clusters{"us": 2}, nil, "Moved [{eu 2}] → [{us 2}]"},
		"one more":        {clusters{"eu": 2}, clusters{"us": 1, "eu": 2}, nil, "Moved [{eu 2}] → [{eu 2} {us 1}]"},
		"replicas move": {clusters{"eu": 2, "us": 1}, clusters{"eu": 1, "us": 2}, nil,
			"Moved [{eu 2} {us 1}] → [{eu 1} {us 2}]"},
		"scaled":           {clusters{"eu": 2, "us": 1}, clusters{"eu": 3, "us": 1}, nil, ""},
		"nothing":          {clusters{"eu": 2}, clusters{"eu": 2}, nil, ""},
		"no cluster left":  {clusters{"eu": 2}, nil, nil, "Moved [{eu 2}] → []"},
		"without replicas": {clusters{"eu": 0}, clusters{"us": 0}, nil, "Moved [{eu 0}] → [{us 0}]"},
		"failed over":      {clusters{"eu": 2}, clusters{"us": 2}, []string{"eu"}, "FailedOver [{eu 2}] → [{us 2}]"},
		"evicted first": {clusters{"eu": 2, "us": 1}, clusters{"us": 1}, []string{"eu"},
			"FailedOver [{eu 2} {us 1}] → [{us 1}]"},
		"evicted in part": {clusters{"eu": 5}, clusters{"eu": 2, "us": 3}, []string{"eu"},
			"FailedOver [{eu 5}] → [{eu 2} {us 3}]"},
		"added during an eviction": {clusters{"us": 1}, clusters{"asia": 2, "us": 1}, []string{"eu"},
			"Moved [{us 1}] → [{asia 2} {us 1}]"},
		"added to a cluster with an eviction": {clusters{"eu": 2, "us": 1}, clusters{"asia": 2, "eu": 2, "us": 1},
			[]string{"eu"}, "Moved [{eu 2} {us 1}] → [{asia 2} {eu 2} {us 1}]"},
		"moved during a failover": {clusters{"us": 1}, clusters{"asia": 1}, []string{"eu"},
			"Moved [{us 1}] → [{asia 1}]"},
	} {
		last := PlacementOf(placed(c.was))
		got := ""
		if e := EventOfBinding(last, placed(c.is, c.evicted...), noon.Add(time.Hour)); e != nil {
			got = fmt.Sprintf("%s %v → %v", e.Type, e.From, e.To)
			if failover := e.Type == FailedOver; failover != (e.Reason == "TaintUntolerated") {
				t.Errorf("%s: the reason is %q", name, e.Reason)
			}
		}
		if got != c.want {
			t.Errorf("%s: the event is %q, want %q", name, got, c.want)
		}
	}
}

func TestFailbackIsAMoveWithItsReason(t *testing.T) {
	last := PlacementOf(placed(clusters{"us": 2, "asia": 1}))
	b := placed(clusters{"eu": 3}, "us")
	b.Spec.GracefulEvictionTasks[0].Reason = failover.ReasonFailback
	e := EventOfBinding(last, b, noon.Add(time.Hour))
	if e == nil || e.Type != Moved || e.Reason != failover.ReasonFailback || e.Message == "" {
		t.Errorf("a failback gives %+v", e)
	}
	b = placed(clusters{"eu": 3}, "us", "asia")
	b.Spec.GracefulEvictionTasks[0].Reason = failover.ReasonFailback
	if e := EventOfBinding(last, b, noon.Add(time.Hour)); e == nil || e.Type != FailedOver ||
		e.Reason != "TaintUntolerated" {
		t.Errorf("a failover during a failback gives %+v", e)
	}
}

// A hub that begins to record does not show old placements as new ones.
func TestOnlyAYoungBindingIsPlacedWhenItIsFirstSeen(t *testing.T) {
	b := placed(clusters{"eu": 2})
	if e := EventOfBinding(Placement{}, b, noon.Add(time.Minute)); e == nil || e.Type != Placed || len(e.From) > 0 {
		t.Errorf("a young one gives %+v", e)
	}
	if e := EventOfBinding(Placement{}, b, noon.Add(time.Hour)); e != nil {
		t.Errorf("an old one gives %+v", e)
	}
	other := PlacementOf(placed(clusters{"us": 2}))
	other.UID = "b0" // a binding of the same name that was deleted
	if e := EventOfBinding(other, b, noon.Add(time.Minute)); e == nil || e.Type != Placed || len(e.From) > 0 {
		t.Errorf("a new one of the same name gives %+v", e)
	}
}

func TestLastChangeOfASpecHasItsUserAndManager(t *testing.T) {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "p1",
		Generation: 3}}
	if e := EventOfChange(p, "g", "PropagationPolicy"); e != nil {
		t.Errorf("without managed fields: %+v", e)
	}
	field := func(manager, fields, subresource string, at int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: minute(at),
			FieldsV1: metav1.NewFieldsV1(fields)}
	}
	p.ManagedFields = []metav1.ManagedFieldsEntry{field("helm", `{"f:spec":{}}`, "", 1),
		field("kubectl", `{"f:spec":{}}`, "", 5), field("argosy", `{"f:metadata":{}}`, "", 9),
		field("argosy", `{"f:spec":{}}`, "status", 9)}
	e := EventOfChange(p, "g", "PropagationPolicy")
	if e == nil || e.Manager != "kubectl" || e.User != "" || !e.At.Equal(minute(5).Time) {
		t.Errorf("the event is %+v", e)
	}
	p.Annotations = map[string]string{wellknown.ChangedByAnnotation: "ann"}
	if e := EventOfChange(p, "g", "PropagationPolicy"); e == nil || e.User != "ann" {
		t.Errorf("after a change that names its user, the event is %+v", e)
	}
}

// recordFleet writes a join, a move and the change of a policy beside a release.
func recordFleet(t *testing.T, s *Store) {
	t.Helper()
	record(t, s, release("1", 0, "web-1", releasev1alpha1.ReleaseSucceeded))
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "c1", CreationTimestamp: *minute(-9)}}
	err := s.RecordFleet(t.Context(), append(EventsOfCluster(c), FleetEvent{UID: "p1", Type: Changed, At: minute(3).Time,
		User: "ann", Manager: "kubectl", Workload: Workload{Group: "policy.karmada.io", Kind: "PropagationPolicy",
			Namespace: "shop", Name: "<script>'; DROP TABLE fleet_events;--"}}))
	if err != nil {
		t.Fatal(err)
	}
	b := placed(clusters{"m1": 2, "m3": 1}, "m2")
	last := PlacementOf(placed(clusters{"m2": 3}))
	if err := s.RecordPlacement(t.Context(), PlacementOf(b), EventOfBinding(last, b, minute(30).Time)); err != nil {
		t.Fatal(err)
	}
}

func TestTimelineHasWhatTheFilterSelects(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		recordFleet(t, s)
		for name, c := range map[string]struct {
			filter TimelineFilter
			want   string
		}{
			"all": {TimelineFilter{}, "FailedOver web, Gate web-1, Changed <script>'; DROP TABLE fleet_events;--, " +
				"Phase web-1, Created web-1, Joined m1"},
			"releases":  {TimelineFilter{Class: ClassReleases}, "Gate web-1, Phase web-1, Created web-1"},
			"failovers": {TimelineFilter{Class: ClassFailovers}, "FailedOver web"},
			"moves":     {TimelineFilter{Class: ClassMoves}, ""},
			"clusters":  {TimelineFilter{Class: ClassClusters}, "Joined m1"},
			"a cluster": {TimelineFilter{Cluster: "m1"},
				"FailedOver web, Phase web-1, Created web-1, Joined m1"},
			"the cluster before":         {TimelineFilter{Cluster: "m2", Class: ClassFailovers}, "FailedOver web"},
			"a cluster without replicas": {TimelineFilter{Cluster: "m"}, ""},
			"a part of a name": {TimelineFilter{Text: "WEB"},
				"FailedOver web, Gate web-1, Phase web-1, Created web-1"},
			"wildcards in a name":    {TimelineFilter{Text: "w%b"}, ""},
			"a wildcard of one rune": {TimelineFilter{Text: "w_b"}, ""},
			"a text with a wildcard": {TimelineFilter{Text: "table fleet_e"},
				"Changed <script>'; DROP TABLE fleet_events;--"},
			"any text of a cluster": {TimelineFilter{Cluster: "%"}, ""},
			"before":                {TimelineFilter{Before: minute(0).Time}, "Created web-1, Joined m1"},
			"namespaces": {TimelineFilter{Namespaces: []string{"shop", "bank"}},
				"FailedOver web, Gate web-1, Changed <script>'; DROP TABLE fleet_events;--, Phase web-1, Created web-1"},
			"the cluster scope": {TimelineFilter{Namespaces: []string{""}}, "Joined m1"},
			"no namespace":      {TimelineFilter{Namespaces: []string{}}, ""},
			"what people did": {TimelineFilter{By: ByPeople},
				"Gate web-1, Changed <script>'; DROP TABLE fleet_events;--, Created web-1"},
			"what the hub did":           {TimelineFilter{By: ByHub}, "FailedOver web, Phase web-1, Joined m1"},
			"what people did to a class": {TimelineFilter{By: ByPeople, Class: ClassClusters}, ""},
			"since":                      {TimelineFilter{Since: minute(10).Time, By: ByHub}, "FailedOver web"},
			"from and to": {TimelineFilter{Since: minute(0).Time, Before: minute(1).Time},
				"Phase web-1, Created web-1"},
		} {
			found, err := s.Timeline(t.Context(), c.filter, 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range found {
				got = append(got, e.Type+" "+e.Name)
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("%s: %s, want %s", name, text, c.want)
			}
		}
		found, err := s.Timeline(t.Context(), TimelineFilter{}, 2)
		if err != nil || len(found) != 2 || found[0].Type != FailedOver || found[1].User != "wang" {
			t.Errorf("the newest two are %+v, %v", found, err)
		}
		found, err = s.Timeline(t.Context(), TimelineFilter{Class: ClassChanges}, 2)
		if err != nil || len(found) != 1 || found[0].User != "ann" || found[0].Manager != "kubectl" {
			t.Errorf("the changes are %+v, %v", found, err)
		}
	})
}

func TestPlacementIsRemembered(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		recordFleet(t, s)
		p, err := s.PlacementOfBinding(t.Context(), "shop", "web-deployment")
		if want := PlacementOf(placed(clusters{"m1": 2, "m3": 1})); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("it is %+v, %v, want %+v", p, err, want)
		}
		if p, err := s.PlacementOfBinding(t.Context(), "bank", "web-deployment"); err != nil || p.Binding != "" {
			t.Errorf("another one is %+v, %v", p, err)
		}
	})
}

func TestClusterLeavesOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		recordFleet(t, s)
		for i := range 2 {
			if err := s.RecordGone(t.Context(), LeftOf("m1", "c1", minute(40+i).Time)); err != nil {
				t.Fatal(err)
			}
		}
		found, err := s.Timeline(t.Context(), TimelineFilter{Class: ClassClusters}, 10)
		if err != nil || len(found) != 2 || found[0].Type != Left || found[0].At != "2026-03-01T12:40:00Z" {
			t.Errorf("the entries are %+v, %v", found, err)
		}
	})
}

func TestArchiveHasWhatHappenedInTheFleet(t *testing.T) {
	from, to := openSQLite(t, t.TempDir()), openSQLite(t, t.TempDir())
	recordFleet(t, from)
	var archive bytes.Buffer
	if _, err := from.Export(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Import(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	want, _ := from.Timeline(t.Context(), TimelineFilter{}, 100)
	got, err := to.Timeline(t.Context(), TimelineFilter{}, 100)
	if err != nil || len(got) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the time line is %+v, %v, want %+v", got, err, want)
	}
}

func TestOldEventsOfTheFleetAreRemoved(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		recordFleet(t, s)
		gone := PlacementOf(placed(nil))
		gone.UID = ""
		if err := s.RecordPlacement(t.Context(), gone, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), DefaultRetention, noon.Add(DefaultRetention.Details+10*time.Minute)); err != nil {
			t.Fatal(err)
		}
		found, err := s.Timeline(t.Context(), TimelineFilter{Class: ClassFailovers}, 10)
		if err != nil || len(found) != 1 {
			t.Errorf("the newest event is gone: %+v, %v", found, err)
		}
		if has, err := s.HasEvent(t.Context(), "c1", Joined); err != nil || has {
			t.Errorf("an old event is there: %t, %v", has, err)
		}
		if p, err := s.PlacementOfBinding(t.Context(), "shop", "web-deployment"); err != nil || p.Binding != "" {
			t.Errorf("the placement of a deleted binding is %+v, %v", p, err)
		}
	})
}

// The same cluster gives the same events, so that it can be recorded again at any time.
func TestEventsOfAClusterAreThoseOfItsObject(t *testing.T) {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: types.UID("c1"),
		CreationTimestamp: *minute(0), DeletionTimestamp: minute(9)}} // it leaves when it is gone
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse,
		Reason: "ClusterNotReachable", LastTransitionTime: *minute(5)}}
	var got []string
	for _, e := range EventsOfCluster(c) {
		got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.At.Format("15:04"), e.Reason))
	}
	if want := []string{"Joined 12:00 ", "NotReady 12:05 ClusterNotReachable"}; !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
}
