package simulate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// TestFailoverIsAsPredicted loses and drains clusters of random fleets, and compares the prediction with what happens
// step by step.
func TestFailoverIsAsPredicted(t *testing.T) {
	rounds := uint64(300)
	if testing.Short() {
		rounds /= 5
	}
	moved, stayed := 0, 0
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 11))
		f, drains := load(t, anyFleet(r)), []Taint{taint(t, "m0=x:NoExecute")}
		change := []Change{
			{Down: []string{"m0"}}, {Taints: drains}, {Down: []string{"m1"}, Taints: drains}, {Down: []string{"m0", "m1"}},
		}[r.IntN(4)]
		predicted := run(t, f, change)
		happened := failsOver(t, f, change)
		for _, w := range predicted.Workloads {
			key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name + "-deployment"}
			if happened.bindings[key] == nil {
				continue
			}
			of := ref{match.GroupKind(w.APIVersion, w.Kind), w.Namespace, w.Name}
			if got := shares(happened.placed(of, key)); got != shares(w.After) {
				t.Errorf("seed %d, %v: %s was at %s; predicted %s, it went to %s",
					seed, predicted.Change, w.Name, shares(w.Before), shares(w.After), got)
			}
			if w.Moved > 0 {
				moved++
			}
			if len(w.Stays) > 0 {
				stayed++
			}
		}
	}
	if t.Logf("%d workloads moved, %d had to stay", moved, stayed); moved < 20 || stayed < 10 {
		t.Errorf("hardly anything happened: %d workloads moved, %d had to stay", moved, stayed)
	}
}

func TestUnhealthyApplicationsMoveByPolicy(t *testing.T) {
	const once = "{spreadConstraints: [{spreadByField: cluster, maxGroups: 1}], clusterAffinity: {clusterNames: [m1, m2]}, " +
		"replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}"
	withFailover := strings.Replace(policy("p", "", once), "spec: {",
		"spec: {propagateDeps: true, failover: {application: {decisionConditions: {}}}, ", 1)
	for _, c := range []struct {
		name, fleet string
		moves       bool
		stays       string
	}{
		{"with application failover", three + withFailover + deployment("web", 4), true, ""},
		{"without", three + policy("p", "", once) + deployment("web", 4), false, ""},
		{"nothing fits", cluster("m1", 10, "") + cluster("m2", 1, "") + withFailover + deployment("web", 4), false,
			"stays in m1: no other cluster takes it"},
	} {
		f := load(t, c.fleet)
		r := run(t, f, Change{Unhealthy: []string{"m1"}})
		w := r.Workloads[0]
		if got := shares(w.Before); got != "m1:4" {
			t.Fatalf("%s: before, it is at %s", c.name, got)
		}
		want := "m1:4"
		if c.moves {
			want = "m2:4"
		}
		if got := shares(w.After); got != want {
			t.Errorf("%s: it goes to %s, want %s", c.name, got, want)
		}
		if got := strings.Join(w.Stays, "\n"); !strings.Contains(got, c.stays) || c.stays == "" && got != "" {
			t.Errorf("%s: it says %q, want %q", c.name, got, c.stays)
		}
		if r.Clusters[0].State != "unhealthy" || !slices.Contains(r.Change, "m1 has unhealthy applications") {
			t.Errorf("%s: the report is about %s, %v", c.name, r.Clusters[0].State, r.Change)
		}
		if again := run(t, f, Change{}); again.Workloads[0].Changed() {
			t.Errorf("%s: without a change it moves to %s", c.name, shares(again.Workloads[0].After))
		}
	}
}

func TestApplicationThatIsUnhealthyOnTheHubIsPredictedToMove(t *testing.T) {
	const once = "{spreadConstraints: [{spreadByField: cluster, maxGroups: 1}], clusterAffinity: {clusterNames: [m1, m2]}, " +
		"replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}"
	with := strings.Replace(policy("p", "", once), "spec: {",
		"spec: {propagateDeps: true, failover: {application: {decisionConditions: {}}}, ", 1)
	key := types.NamespacedName{Namespace: "default", Name: "web-deployment"}
	since := metav1.NewTime(time.Unix(1_800_000_000, 0))
	for since, want := range map[*metav1.Time]string{&since: "m2:4", nil: "m1:4"} {
		f := load(t, three+with+deployment("web", 4))
		before := newState(f.clone(), roomsOf(t, f), f.invented, f.latest())
		before.settle(t.Context())
		b := before.bindings[key].DeepCopyObject().(workv1alpha2.Binding)
		b.BindingStatus().SchedulerObservedGeneration = b.GetGeneration()
		item := readyItem(b.BindingSpec().Clusters[0])
		item.Health, item.UnhealthySince = workv1alpha1.ResourceUnhealthy, since
		b.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{item}
		f = f.clone()
		f.bindings[key] = b
		if got := shares(run(t, f, Change{}).Workloads[0].After); got != want {
			t.Errorf("Unhealthy since %v, it goes to %s, want %s", since, got, want)
		}
	}
}

// What a workload leaves is not free for the next one of the plan, with nodes and without: the hub makes the same plan.
func TestAPlanGivesBackNothing(t *testing.T) {
	for name, fleet := range map[string]string{"summaries": cluster("m1", 10, "") + cluster("m2", 10, ""),
		"nodes": cluster("m1", 10, "") + cluster("m2", 10, "") + nodes(map[string]int{"m1": 10, "m2": 10})} {
		f := load(t, fleet+policy("p", "", packed)+deployment("web", 4)+deployment("db", 1))
		s := newState(f.clone(), roomsOf(t, f), f.invented, f.latest())
		s.settle(t.Context())
		web := s.bindings[types.NamespacedName{Namespace: "default", Name: "web-deployment"}]
		db := s.bindings[types.NamespacedName{Namespace: "default", Name: "db-deployment"}]
		free := func(d *draft, cluster string) int32 {
			n, _ := d.Free(db)(cluster)
			return n
		}
		from := web.BindingSpec().Clusters[0].Name
		to := map[string]string{"m1": "m2", "m2": "m1"}[from]
		moved := []workv1alpha2.TargetCluster{{Name: to, Replicas: 4}}
		d := s.draft()
		left, room := free(d, from), free(d, to)
		d.Take(web, moved)
		if free(d, from) != left || free(d, to) != room-4 {
			t.Errorf("%s: a move of 4 replicas leaves %d of %d in %s, and %d of %d in %s", name, free(d, from), left, from,
				free(d, to), room, to)
		}
		if fresh := s.draft(); free(fresh, from) != left || free(fresh, to) != room {
			t.Errorf("%s: the plan changed the room of the fleet", name)
		}
		huge := web.DeepCopyObject().(workv1alpha2.Binding)
		huge.SetName("huge")
		huge.BindingSpec().ReplicaRequirements.ResourceRequest = corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse("4Ei")} // 4 of them are 2^64
		huge.BindingSpec().Clusters = nil
		d = s.draft()
		if d.Take(huge, moved); name == "summaries" && free(d, to) != 0 || free(d, to) > room {
			t.Errorf("%s: a workload that needs more than a number holds leaves room for %d", name, free(d, to))
		}
	}
}

// failsOver has a hub live through a change: it plans every 20 seconds, its scheduler confirms a placement in the next
// step, and a copy is healthy one minute after it was placed.
func failsOver(t *testing.T, f *Fleet, c Change) *state {
	t.Helper()
	before := newState(f.clone(), roomsOf(t, f), f.invented, f.latest())
	before.past = true
	before.settle(t.Context())
	next, touched, err := before.changed(t.Context(), c, Meaning, f.latest())
	if err != nil {
		t.Fatal(err)
	}
	if err := before.rooms.become(before.Fleet, next); err != nil {
		t.Fatal(err)
	}
	s := newState(next, before.rooms, touched, f.latest())
	order := slices.SortedFunc(func(yield func(types.NamespacedName) bool) {
		for key := range s.bindings {
			if !yield(key) {
				return
			}
		}
	}, compareKeys)
	placed := map[types.NamespacedName]map[string]time.Time{}
	in := failover.Input{Options: s.failover, Registered: map[string]bool{}, Facts: s.facts,
		Fleet: s.snapshot}
	in.SchedulerName = s.scheduler.Scheduler()
	for name := range s.clusters {
		in.Registered[name] = true
	}
	for quiet := 0; quiet < 30; quiet++ {
		s.now = s.now.Add(20 * time.Second)
		s.scheduleAll(order)
		s.follow()
		in.Bindings = nil
		for _, key := range order {
			b := s.bindings[key].DeepCopyObject().(workv1alpha2.Binding)
			s.report(b, placed)
			s.bindings[key] = b
			in.Bindings = append(in.Bindings, b)
		}
		in.Room = s.draft()
		plan := failover.Make(in, s.now)
		apply := func(b workv1alpha2.Binding, change func(workv1alpha2.Binding)) {
			b = b.DeepCopyObject().(workv1alpha2.Binding)
			change(b)
			b.SetGeneration(b.GetGeneration() + 1)
			s.put(types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}, b)
			quiet = 0
		}
		for i := range plan.Evictions {
			apply(plan.Evictions[i].Binding, plan.Evictions[i].Apply)
		}
		for i := range plan.Finishes {
			apply(plan.Finishes[i].Binding, plan.Finishes[i].Apply)
		}
	}
	return s
}

// report has the scheduler confirm the placement of b, and members report their copies.
func (s *state) report(b workv1alpha2.Binding, placed map[types.NamespacedName]map[string]time.Time) {
	key := types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}
	if placed[key] == nil {
		placed[key] = map[string]time.Time{}
	}
	status := b.BindingStatus()
	status.SchedulerObservedGeneration = b.GetGeneration()
	status.AggregatedStatus = nil
	for _, t := range b.BindingSpec().Clusters {
		if membership.KnownNotReady(s.clusters[t.Name]) {
			continue
		}
		if placed[key][t.Name].IsZero() {
			placed[key][t.Name] = s.now
		}
		item := readyItem(t)
		if s.now.Sub(placed[key][t.Name]) < time.Minute {
			item.Health = workv1alpha1.ResourceUnknown
		}
		status.AggregatedStatus = append(status.AggregatedStatus, item)
	}
	status.LastScheduledTime = &metav1.Time{Time: s.now}
}

func TestMoveToAnotherRevisionIsPredicted(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "web-deployment"}
	with := strings.Replace(policy("p", "", byRoom), "spec: {", "spec: {failover: {cluster: {}}, ", 1)
	f := load(t, cluster("canary", 20, "")+cluster("prod1", 10, "")+cluster("prod2", 4, "")+with+deployment("web", 22))
	before := newState(f.clone(), roomsOf(t, f), f.invented, f.latest())
	before.settle(t.Context())
	b := before.bindings[key].DeepCopyObject().(workv1alpha2.Binding)
	plan := &fleet.Plan{Release: "web-2", Revision: "R2", From: "R1", At: 1, Stages: []fleet.PlanStage{
		{Name: "canary", Clusters: []string{"canary"}, Part: [2]int64{1, 1}},
		{Name: "production", Clusters: []string{"prod1", "prod2"}, Part: [2]int64{1, 1}}}}
	annotations := b.GetAnnotations()
	annotations[fleet.EffectiveRevisionAnnotation] = plan.Revision
	f = f.clone()
	f.bindings[key] = b
	for _, c := range []struct {
		same        bool
		after, says string
	}{
		{false, "canary:15 prod2:7", "2 replicas of cluster prod1 moved to canary, which runs revision R2 " +
			"(release web-2 has not started stage production)"},
		{true, "canary:13 prod1:2 prod2:7", "failover: SameRevision keeps the replicas in clusters that run revision R1"},
	} {
		plan.SameRevision = c.same
		annotations[fleet.PlanAnnotation] = plan.String()
		w := run(t, f, Change{Down: []string{"prod1"}}).Workloads[0]
		if got := shares(w.After); got != c.after {
			t.Errorf("it goes from %s to %s, want %s", shares(w.Before), got, c.after)
		}
		if says := w.Reason + w.Problem + strings.Join(w.Stays, ""); !strings.Contains(says, c.says) {
			t.Errorf("it says %q, want %q in it", says, c.says)
		}
	}
}
