package autoscale

import (
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// fleetHPA is a FederatedHPA of 3 to 20 replicas, and the autoscalers that exist.
type fleetHPA struct {
	t     *testing.T
	spec  autoscalingv1alpha1.FederatedHPASpec
	works map[string]*workv1alpha1.Work
	since time.Time
	wrote int
}

func newFleetHPA(t *testing.T, lowest, highest int32) *fleetHPA {
	f := &fleetHPA{t: t, works: map[string]*workv1alpha1.Work{}}
	f.spec.MinReplicas, f.spec.MaxReplicas = &lowest, highest
	f.spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
		Name: "web"}
	return f
}

// divide evaluates the FederatedHPA, and writes what differs.
func (f *fleetHPA) divide(in map[string]Holding, now time.Time) map[string]Bounds {
	f.t.Helper()
	shares, since, err := Shares(&f.spec, in, f.works, Window{Since: f.since, Now: now})
	if err != nil {
		f.t.Fatal(err)
	}
	f.since = since
	works, out := map[string]*workv1alpha1.Work{}, map[string]Bounds{}
	var least, most int32
	for name, s := range shares {
		hpa := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: f.spec}
		if works[name], err = Work(hpa, name, s, "id"); err != nil {
			f.t.Fatal(err)
		}
		if !reflect.DeepEqual(works[name], f.works[name]) {
			f.wrote++
		}
		out[name] = s.Bounds
		least, most = least+s.Min, most+s.Max
	}
	if least != max(*f.spec.MinReplicas, int32(len(in))) || most != f.spec.MaxReplicas {
		f.t.Errorf("%v make %d to %d", out, least, most)
	}
	f.works = works
	return out
}

func unknown(replicas int32) Holding { return Holding{Replicas: replicas, Room: -1} }

// parseHoldings returns holdings by their description, as "a 8/40, b 4/?": a has 8 replicas and room for 40, and the
// room of b is unknown. A room of "lost" is a lost cluster.
func parseHoldings(t *testing.T, description string) map[string]Holding {
	t.Helper()
	in := map[string]Holding{}
	for _, each := range strings.Split(description, ", ") {
		var name, room string
		h := Holding{}
		if _, err := fmt.Sscanf(strings.Replace(each, "/", " ", 1), "%s %d %s", &name, &h.Replicas, &room); err != nil {
			t.Fatalf("%q: %v", each, err)
		}
		switch room {
		case "lost":
			h.Room, h.Lost = -1, true
		case "?":
			h.Room = -1
		default:
			if _, err := fmt.Sscan(room, &h.Room); err != nil {
				t.Fatalf("%q: %v", each, err)
			}
		}
		in[name] = h
	}
	return in
}

func described(bounds map[string]Bounds) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		out = append(out, fmt.Sprintf("%s %d-%d", name, bounds[name].Min, bounds[name].Max))
	}
	return strings.Join(out, ", ")
}

func TestBoundsAreDividedAgainWhenTheFleetChanges(t *testing.T) {
	type step struct {
		minute   int
		clusters string
		of, want string
	}
	const (
		roomy, cordoned, lost = "a 8/40, b 4/40", "a 8/0, b 4/40", "a 8/lost, b 4/40"
		limited, running      = "a 1/0, b 11/40", "a 12/4, b 4/40"
		back, partlyBack      = "a 1/30, b 11/40", "a 1/8, b 11/40"
		nowhere               = "a 8/0, b 4/0"
		whole, without        = "a 3-13, b 1-7", "a 1-1, b 3-19"
	)
	// limitedAt6 limits a after the window.
	limitedAt6 := []step{{1, cordoned, "4-20", whole}, {5, cordoned, "4-20", whole}, {6, cordoned, "4-20", without}}
	then := func(steps ...step) []step { return append(slices.Clone(limitedAt6), steps...) }
	for story, steps := range map[string][]step{
		"nothing changed":      {{1, roomy, "4-20", whole}, {60, roomy, "4-20", whole}},
		"the load shifts":      {{60, "a 1/40, b 7/40", "4-20", whole}},
		"the room is unknown":  {{1, "a 8/?, b 4/?", "4-20", whole}, {60, "a 8/?, b 4/?", "4-20", whole}},
		"all nodes cordoned":   limitedAt6,
		"cordoned for long":    then(step{7, limited, "4-20", without}, step{70, limited, "4-20", without}),
		"cordoned, unknown":    then(step{60, "a 1/?, b 11/?", "4-20", without}, step{90, "a 1/?, b 11/?", "4-20", without}),
		"cordoned, then lost":  then(step{60, lost, "4-20", without}, step{90, lost, "4-20", without}),
		"cordoned, new bounds": {{1, cordoned, "8-40", "a 1-1, b 7-39"}},
		"cordoned for a moment": {{1, cordoned, "4-20", whole}, {5, roomy, "4-20", whole}, {6, cordoned, "4-20", whole},
			{10, cordoned, "4-20", whole}},
		"pods run on cordoned nodes": {{1, running, "4-20", whole}, {6, running, "4-20", "a 3-4, b 1-16"}},
		"new bounds while limited, then uncordoned": then(step{7, limited, "8-40", "a 1-1, b 7-39"},
			step{8, "a 1/40, b 11/40", "8-40", "a 1-1, b 7-39"}, step{13, "a 1/40, b 11/40", "8-40", "a 5-27, b 3-13"}),
		"others fill up, too": then(step{7, "a 1/0, b 14/12", "4-20", without},
			step{12, "a 1/0, b 14/12", "4-20", "a 1-8, b 3-12"}, step{60, "a 1/0, b 12/12", "4-20", "a 1-8, b 3-12"}),
		"no cluster has room":  {{1, nowhere, "4-20", whole}, {6, nowhere, "4-20", whole}},
		"lost":                 {{1, lost, "4-20", whole}, {60, lost, "4-20", whole}},
		"lost, new bounds":     {{1, lost, "8-40", "a 3-13, b 5-27"}},
		"lost, lower bounds":   {{1, lost, "2-6", "a 1-4, b 1-2"}},
		"a cluster joins":      {{1, "a 8/40, b 4/40, c 8/40", "5-20", "a 2-8, b 1-4, c 2-8"}},
		"the workload leaves":  {{1, "b 4/40", "4-20", "b 4-20"}},
		"nodes scaled up":      then(step{7, back, "4-20", without}, step{12, back, "4-20", whole}),
		"some nodes come back": then(step{7, partlyBack, "4-20", without}, step{12, partlyBack, "4-20", "a 3-8, b 1-12"}),
		"lost, while another is full": {{0, "a 8/40, b 4/40, c 4/40", "6-24", "a 3-12, b 2-6, c 1-6"},
			{1, "a 8/lost, b 4/0, c 4/40", "6-24", "a 3-12, b 2-6, c 1-6"},
			{6, "a 8/lost, b 4/0, c 4/40", "6-24", "a 3-12, b 1-1, c 2-11"}},
		"little more room": {{0, "a 50/40, b 4/400", "4-200", "a 3-40, b 1-160"},
			{1, "a 40/43, b 4/400", "4-200", "a 3-40, b 1-160"}, {60, "a 40/43, b 4/400", "4-200", "a 3-40, b 1-160"},
			{61, "a 40/50, b 4/400", "4-200", "a 3-40, b 1-160"}, {66, "a 40/50, b 4/400", "4-200", "a 3-50, b 1-150"}},
		"what it shifts does not fit": {{0, "a 8/0, b 2/2, c 2/40", "12-60", "a 1-1, b 2-2, c 9-57"}},
	} {
		t.Run(story, func(t *testing.T) {
			f := newFleetHPA(t, 4, 20)
			if steps[0].minute > 0 {
				f.divide(parseHoldings(t, roomy), noon)
			}
			for _, s := range steps {
				if _, err := fmt.Sscanf(s.of, "%d-%d", f.spec.MinReplicas, &f.spec.MaxReplicas); err != nil {
					t.Fatal(err)
				}
				got := described(f.divide(parseHoldings(t, s.clusters), noon.Add(time.Duration(s.minute)*time.Minute)))
				if got != s.want {
					t.Errorf("after %d minutes the bounds are %s, want %s", s.minute, got, s.want)
				}
			}
		})
	}
}

func TestNoPingPongWhileRoomChangesByOne(t *testing.T) {
	f := newFleetHPA(t, 4, 20)
	full := map[string]Holding{"a": {Replicas: 8, Room: 4}, "b": {Replicas: 4, Room: 40}}
	f.divide(full, noon)
	wrote := f.wrote
	for minute := range 120 {
		room := int32(4 + minute%2)
		f.divide(map[string]Holding{"a": {Replicas: 4, Room: room}, "b": {Replicas: 8, Room: 40}},
			noon.Add(time.Duration(minute)*time.Minute))
	}
	if f.wrote > wrote {
		t.Errorf("%d autoscalers were written", f.wrote-wrote)
	}
}

// Whatever happens, the shares add up, and without a change nothing is written twice.
func TestDividedSharesAddUpAndSettle(t *testing.T) {
	for seed := range int64(100) {
		r := rand.New(rand.NewSource(seed))
		n := 1 + r.Intn(4)
		f := newFleetHPA(t, int32(1+r.Intn(10)), int32(10+r.Intn(30)))
		now := noon
		for range 5 {
			in := map[string]Holding{}
			for i := range n {
				h := Holding{Replicas: int32(1 + r.Intn(10)), Room: int32(r.Intn(20) - 1)}
				h.Lost = r.Intn(5) == 0
				in[string(rune('a'+i))] = h
			}
			for _, minutes := range []time.Duration{0, 1, 6} {
				f.divide(in, now.Add(minutes*time.Minute))
			}
			wrote := f.wrote
			f.divide(in, now.Add(20*time.Minute))
			f.divide(in, now.Add(30*time.Minute))
			if f.wrote > wrote {
				t.Fatalf("seed %d: %v is divided again without a change", seed, in)
			}
			now = now.Add(time.Hour)
		}
	}
}

func TestAutoscalersOfOlderHubsKeepTheirBounds(t *testing.T) {
	f := newFleetHPA(t, 4, 20)
	in := map[string]Holding{"a": {Replicas: 8, Room: 40}, "b": {Replicas: 4, Room: 40}}
	f.divide(in, noon)
	for _, w := range f.works {
		s, _ := ShareOf(w)
		s.Weights, s.Min = nil, map[int32]int32{3: 2, 1: 2}[s.Min] // rounded otherwise
		hpa := &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: f.spec}
		old, err := Work(hpa, "a", s, "id")
		if err != nil {
			t.Fatal(err)
		}
		w.Annotations = old.Annotations
	}
	for minute := range 20 {
		window := Window{Since: noon, Now: noon.Add(time.Duration(minute) * time.Minute)}
		shares, _, err := Shares(&f.spec, in, f.works, window)
		if err != nil || shares["a"].Min != 2 || shares["b"].Min != 2 {
			t.Fatalf("after %d minutes: %v, %v", minute, shares, err)
		}
	}
}

func TestRoomOfAClusterForAWorkload(t *testing.T) {
	cluster := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
			Status: metav1.ConditionTrue})
		if change != nil {
			change(c)
		}
		return c
	}
	taint := func(effect corev1.TaintEffect) func(*clusterv1alpha1.Cluster) {
		return func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "offline", Effect: effect}} }
	}
	for story, tc := range map[string]struct {
		change        func(*clusterv1alpha1.Cluster)
		unschedulable int
		ready, kind   string
		room          map[string]int32
		tolerations   []corev1.Toleration
		want          Holding
	}{
		"free room":      {room: map[string]int32{"a": 30}, want: Holding{Replicas: 8, Room: 38}},
		"no limit":       {room: map[string]int32{"a": 1<<31 - 1}, want: Holding{Replicas: 8, Room: 1<<31 - 1}},
		"unknown":        {want: unknown(8)},
		"cordoned nodes": {room: map[string]int32{"a": 0}, want: Holding{Replicas: 8, Room: 8}},
		"pending pods":   {unschedulable: 6, want: Holding{Replicas: 8, Room: 2}},
		"pending, by its status": {unschedulable: 1, ready: `{"replicas": 1}`, kind: "StatefulSet",
			want: Holding{Replicas: 8}},
		"not ready, and one pending": {unschedulable: 1, ready: `{"replicas": 8, "readyReplicas": 1}`,
			want: Holding{Replicas: 8, Room: 7}},
		"more pending pods": {unschedulable: 9, want: Holding{Replicas: 8}},
		"a taint": {change: taint(corev1.TaintEffectNoSchedule), room: map[string]int32{"a": 30},
			want: Holding{Replicas: 8, Room: 8}},
		"a tolerated taint": {change: taint(corev1.TaintEffectNoSchedule), room: map[string]int32{"a": 30},
			tolerations: []corev1.Toleration{{Key: "offline", Operator: corev1.TolerationOpExists}},
			want:        Holding{Replicas: 8, Room: 38}},
		"a preference": {change: taint(corev1.TaintEffectPreferNoSchedule), room: map[string]int32{"a": 30},
			want: Holding{Replicas: 8, Room: 38}},
		"not ready": {change: func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse },
			unschedulable: 8, want: Holding{Replicas: 8, Room: -1, Lost: true}},
	} {
		t.Run(story, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.Placement = &policyv1alpha1.Placement{ClusterTolerations: tc.tolerations}
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "apps/v1", tc.kind
			if tc.ready != "" {
				b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Applied: true,
					Status: &runtime.RawExtension{Raw: []byte(tc.ready)}}}
			}
			if got := HoldingOf(b, cluster(tc.change), 8, tc.unschedulable, schedule.Answers(tc.room)); got != tc.want {
				t.Errorf("it is %+v, want %+v", got, tc.want)
			}
		})
	}
}
