package capacity_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// After a restart room is reserved for recent placements whose pods do not run yet.
func TestRecentPlacementKeepsRoomAfterRestart(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		now := time.Unix(1_800_000_000, 0)
		placed := func(name string, ago time.Duration) *workv1alpha2.ResourceBinding {
			b := wants(name, 2, "1")
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
			b.Status.LastScheduledTime = &metav1.Time{Time: now.Add(-ago)}
			return b
		}
		w := measure(t, map[string][]string{"m1": {"8"}}, placed("new", time.Minute), placed("old", time.Hour))
		one := wants("one", 1, "1")
		w.expectRoom("two are on their way", one, map[string]string{"m1": "6"})
		w.pod("m1", "new", "new-x-1", "n0", "1")
		w.pod("m1", "other", "other-x-1", "n0", "1")
		w.expectRoom("one of them comes, and another pod", one, map[string]string{"m1": "5"})
		w.clock.SetTime(now.Add(4 * time.Minute))
		w.fleet.Sweep()
		w.expectRoom("the other is not waited for longer than without the restart", one, map[string]string{"m1": "6"})
	})
}

// measured is a hub that knows nodes and pods of its members.
type measured struct {
	*controllertest.Hub
	t       *testing.T
	fleet   *capacity.Fleet
	servers map[string]*membertest.Server
	clock   *clocktesting.FakePassiveClock
	room    chan string // clusters in which room appeared
}

// measure creates members with these CPUs per node, as {"m1": {"2", "4"}}.
func measure(t *testing.T, nodes map[string][]string, bindings ...*workv1alpha2.ResourceBinding) *measured {
	t.Helper()
	w := &measured{Hub: controllertest.New(t), t: t, servers: map[string]*membertest.Server{},
		room:  make(chan string, 1000),
		clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
	for name, cpus := range nodes {
		w.servers[name] = w.Join(name, controllertest.Deployment)
		for i, cpu := range cpus {
			w.node(name, fmt.Sprintf("n%d", i), cpu)
		}
	}
	for _, b := range bindings {
		status := b.Status
		if b.Namespace != metav1.NamespaceDefault {
			w.Server.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
				ObjectMeta: metav1.ObjectMeta{Name: b.Namespace}})
		}
		w.Make(b)
		b.Status = status
		if err := w.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	var members *member.Members
	w.Run(func(ctx context.Context, mgr ctrl.Manager) (err error) {
		members = member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Dial: membertest.Dial})
		if w.fleet, err = capacity.NewFleet(ctx, mgr.GetCache()); err != nil {
			return err
		}
		w.fleet.Clock = w.clock
		w.fleet.OnRoom(func(cluster string) { w.room <- cluster })
		if err := w.fleet.Measure(ctx, mgr.GetCache(), members); err != nil {
			return err
		}
		return mgr.Add(members)
	})
	if err := w.fleet.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name := range nodes {
		m, err := members.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		<-m.Load()
	}
	return w
}

func (w *measured) node(cluster, name, cpu string) {
	n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.servers[cluster].Put(n)
}

// pod returns a pod of a Deployment on a node.
func (w *measured) pod(cluster, deployment, name, node, cpu string) {
	yes := true
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			Labels: map[string]string{"pod-template-hash": "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-x",
				Controller: &yes}}}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	w.servers[cluster].Put(p)
}

// wants returns the binding of a Deployment whose replicas are divided by available replicas.
func wants(name string, replicas int32, cpu string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-deployment",
		Generation: 1}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default",
		Name: name}
	b.Spec.Replicas = replicas
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu)}}
	b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}}}
	return b
}

// expectRoom waits until the fleet's room for a replica is that, as {"m1": "3", "m2": "unknown"}.
func (w *measured) expectRoom(what string, b workv1alpha2.Binding, want map[string]string) {
	w.t.Helper()
	w.Eventually(what, func() string {
		room, got := w.fleet.Room(b, w.fleet.Snapshot()), map[string]string{}
		for name := range want {
			got[name] = "unknown"
			if n, known := room(name); known {
				got[name] = fmt.Sprint(n)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("the room is %v, want %v", got, want)
		}
		return ""
	})
}

func TestOnlyUnreachableMemberHasUnknownRoom(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"2", "2"}, "m2": {"4"}, "none": nil, "summed": nil})
		w.ClusterStatus("summed", func(s *clusterv1alpha1.ClusterStatus) {
			s.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("9")}}
		})
		three := wants("web", 1, "3")
		w.expectRoom("by node, else by the summary, else unknown", three,
			map[string]string{"m1": "0", "m2": "1", "none": "unknown", "summed": "3"})

		w.servers["m2"].Down(true)
		w.expectRoom("what was seen last counts until it is decided that the member is silent", three,
			map[string]string{"m1": "0", "m2": "1"})
		w.Ready("m2", metav1.ConditionFalse, "ClusterNotReachable")
		w.expectRoom("then it is unknown, and only it", three, map[string]string{"m1": "0", "m2": "unknown", "summed": "3"})
		w.servers["m2"].Down(false)
		w.Ready("m2", metav1.ConditionTrue, "ClusterReady")
		w.expectRoom("it answers again", three, map[string]string{"m1": "0", "m2": "1"})

		w.fleet.Estimate(func(workv1alpha2.Binding, schedule.Snapshot) schedule.Capacity {
			return schedule.Answers(map[string]int32{"m2": 7, "summed": 2, "none": 5})
		})
		w.expectRoom("the least of what is known", three, map[string]string{"m1": "0", "m2": "1", "none": "5", "summed": "2"})
		_, limits := w.fleet.RoomAndLimits(three, w.fleet.Snapshot())
		if l, known := limits("m2"); !known || l.Estimator || l.Replicas != 1 {
			t.Errorf("an estimator that answers more limits: %+v, %t", l, known)
		}
		w.fleet.Estimate(func(workv1alpha2.Binding, schedule.Snapshot) schedule.Capacity {
			return schedule.Answers(map[string]int32{"m2": 0})
		})
		_, limits = w.fleet.RoomAndLimits(three, w.fleet.Snapshot())
		if l, known := limits("m2"); !known || !l.Estimator || l.Replicas != 1 {
			t.Errorf("an estimator that answers less does not limit: %+v, %t", l, known)
		}
	})
}

// Spread rules of a binding apply to its pods and to the expected ones.
func TestAntiAffinityPlacesOnePodPerNode(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"4", "4", "4"}, "m2": {"4"}})
		web := wants("web", 2, "1")
		w.expectRoom("eight fit by what they request", web, map[string]string{"m1": "12", "m2": "4"})
		web.Annotations = map[string]string{wellknown.PodSpreadAnnotation: `{"apart":["kubernetes.io/hostname"]}`}
		w.expectRoom("each node takes one", web, map[string]string{"m1": "3", "m2": "1"})
		if limit, known := w.fleet.Limit(web, "m1"); !known || !limit.Spread || limit.Replicas != 3 {
			t.Errorf("the limit is %+v, %t", limit, known)
		}
		w.pod("m1", "web", "web-x-1", "n1", "1")
		w.expectRoom("one is there", web, map[string]string{"m1": "2", "m2": "1"})
		web.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}}
		result, err := w.fleet.Schedule(web, w.fleet.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		given := map[string]int32{}
		for _, c := range result.Clusters {
			given[c.Name] = c.Replicas
		}
		if given["m1"]+given["m2"] != 2 {
			t.Errorf("two replicas went to %v", given)
		}
		w.expectRoom("and one more is about to be", web,
			map[string]string{"m1": fmt.Sprint(3 - given["m1"]), "m2": fmt.Sprint(1 - given["m2"])})
		web.Spec.Replicas = 5
		if _, err := w.fleet.Schedule(web, w.fleet.Snapshot()); err == nil {
			t.Error("five replicas were placed on four nodes")
		}
	})
}

// Many bindings are placed at once: no member gets more than fits, and no room is left over.
func TestConcurrentPlacementsNeverShareRoom(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"4", "4"}, "m2": {"3"}})
		s := w.fleet.Snapshot()
		for round := range 50 {
			var mu sync.Mutex
			var placed []*workv1alpha2.ResourceBinding
			given := map[string]int32{}
			var all sync.WaitGroup
			begin := make(chan struct{})
			for i := range 20 {
				all.Go(func() {
					b := wants(fmt.Sprintf("w%d", i), 1, "1")
					<-begin
					result, err := w.fleet.Schedule(b, s)
					if err != nil {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					placed = append(placed, b)
					for _, target := range result.Clusters {
						given[target.Name] += target.Replicas
					}
				})
			}
			close(begin)
			all.Wait()
			if given["m1"] != 8 || given["m2"] != 3 || len(placed) != 11 {
				t.Fatalf("round %d: %d bindings were placed, m1 was given %d of 8 and m2 %d of 3", round, len(placed), given["m1"],
					given["m2"])
			}
			for _, b := range placed {
				w.fleet.Assume(b, nil) // given up
			}
		}
	})
}

// Moved replicas and new bindings never get the same room.
func TestConcurrentMovesAndPlacementsNeverShareRoom(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"4", "4"}, "m2": {"3"}, "old": {"1"}})
		w.pod("old", "other", "other-x-1", "n0", "1")
		w.expectRoom("old is full", wants("one", 1, "1"), map[string]string{"m1": "8", "m2": "3", "old": "0"})
		s := w.fleet.Snapshot()
		for round := range 50 {
			var mu sync.Mutex
			var placed []*workv1alpha2.ResourceBinding
			given := map[string]int32{}
			var all sync.WaitGroup
			begin := make(chan struct{})
			for i := range 20 {
				all.Go(func() {
					b := wants(fmt.Sprintf("w%d", i), 1, "1")
					moves := i%2 == 0
					if moves {
						b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "old", Replicas: 1}}
						b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "old", Applied: true,
							Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}}}
					}
					<-begin
					var to []workv1alpha2.TargetCluster
					for reserved := 0; moves && reserved == 0; {
						room := w.fleet.PlanRoom(s)
						m, ok, err := deschedule.Relieve(b, map[string]int32{"old": 1}, s, room, intstr.FromInt32(1),
							w.clock.Now())
						if err != nil || !ok {
							return
						}
						to = m.Clusters
						reserved = room.Reserve()
					}
					if !moves {
						result, err := w.fleet.Schedule(b, s)
						if err != nil {
							return
						}
						to = result.Clusters
					}
					mu.Lock()
					defer mu.Unlock()
					placed = append(placed, b)
					for _, target := range to {
						given[target.Name] += target.Replicas
					}
				})
			}
			close(begin)
			all.Wait()
			if given["m1"] != 8 || given["m2"] != 3 || len(placed) != 11 {
				t.Fatalf("round %d: %d bindings were placed or moved, m1 was given %d of 8 and m2 %d of 3", round, len(placed),
					given["m1"], given["m2"])
			}
			for _, b := range placed {
				w.fleet.Assume(b, nil) // given up
			}
		}
	})
}

// After a write conflict the binding is placed again and may use its own reservation.
func TestUnwrittenPlacementIsRepeated(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"9"}, "m2": {"9"}})
		s, b := w.fleet.Snapshot(), wants("web", 6, "1")
		b.Spec.Placement.ReplicaScheduling.ReplicaDivisionPreference,
			b.Spec.Placement.ReplicaScheduling.WeightPreference = policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil
		for _, replicas := range []int32{6, 8} {
			b.Spec.Replicas = replicas
			for try := range 3 {
				result, err := w.fleet.Schedule(b, s)
				if err != nil {
					t.Fatal(err)
				}
				if len(result.Clusters) != 1 || result.Clusters[0].Name != "m1" || result.Clusters[0].Replicas != replicas {
					t.Errorf("try %d: %d replicas go to %v, want all in m1", try, replicas, result.Clusters)
				}
				if try == 2 {
					b.Spec.Clusters = result.Clusters
				}
			}
		}
	})
}

func TestFailedPlacementReleasesRoom(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"4"}, "m2": {"4"}})
		one := wants("one", 1, "1")
		place := func(b *workv1alpha2.ResourceBinding, clusters ...workv1alpha2.TargetCluster) {
			w.fleet.Assume(b, clusters)
		}
		full := map[string]string{"m1": "4", "m2": "4"}
		w.expectRoom("at first", one, full)

		web := wants("web", 3, "1")
		web.Generation = 0
		place(web, workv1alpha2.TargetCluster{Name: "m1", Replicas: 3})
		w.expectRoom("placed", one, map[string]string{"m1": "1", "m2": "4"})
		place(web, workv1alpha2.TargetCluster{Name: "m2", Replicas: 2})
		w.expectRoom("placed elsewhere", one, map[string]string{"m1": "4", "m2": "2"})

		web.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}
		w.Make(web)
		controllertest.Change(w.Hub, web, func(b *workv1alpha2.ResourceBinding) { b.Labels = map[string]string{"a": "b"} })
		w.expectRoom("written as placed", one, map[string]string{"m1": "4", "m2": "2"})
		controllertest.Change(w.Hub, web, func(b *workv1alpha2.ResourceBinding) {
			b.Generation++ // as the server counts
			b.Spec.Clusters = nil
		})
		w.expectRoom("taken away by somebody else", one, full)

		api := wants("api", 2, "1")
		w.Make(api)
		place(api, workv1alpha2.TargetCluster{Name: "m1", Replicas: 2})
		w.expectRoom("placed", one, map[string]string{"m1": "2", "m2": "4"})
		w.Gone(api)
		w.expectRoom("the binding goes", one, full)

		place(wants("lost", 2, "1"), workv1alpha2.TargetCluster{Name: "m1", Replicas: 2})
		w.expectRoom("placed", one, map[string]string{"m1": "2", "m2": "4"})
		w.clock.SetTime(w.clock.Now().Add(5*time.Minute - time.Second))
		w.fleet.Sweep()
		w.expectRoom("its pods are late", one, map[string]string{"m1": "2", "m2": "4"})
		w.clock.SetTime(w.clock.Now().Add(time.Second))
		w.fleet.Sweep()
		w.expectRoom("its pods never come", one, full)

		place(wants("good", 2, "1"), workv1alpha2.TargetCluster{Name: "m1", Replicas: 2})
		w.pod("m1", "good", "good-x-1", "n0", "1")
		w.pod("m1", "good", "good-x-2", "n0", "1")
		w.Eventually("its pods are seen", func() string {
			if used := w.fleet.Utilisation("m1")[corev1.ResourceCPU]; used != 0.5 {
				return fmt.Sprintf("%v is used", used)
			}
			return ""
		})
		w.expectRoom("its pods are there", one, map[string]string{"m1": "2", "m2": "4"})
		w.servers["m1"].Remove(membertest.Pod, "default", "good-x-1")
		w.expectRoom("and go", one, map[string]string{"m1": "3", "m2": "4"})
	})
}

func TestSubscribersAreNotifiedOfRoom(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"4"}, "m2": {"4"}})
		w.pod("m1", "web", "web-x-1", "n0", "4")
		one := wants("one", 1, "1")
		w.expectRoom("full", one, map[string]string{"m1": "0", "m2": "4"})
		for len(w.room) > 0 {
			<-w.room
		}
		w.servers["m1"].Remove(membertest.Pod, "default", "web-x-1")
		// The room exists when the subscriber is notified.
		for {
			select {
			case cluster := <-w.room:
				if n, _ := w.fleet.Room(one, w.fleet.Snapshot())(cluster); cluster == "m1" && n == 4 {
					return
				}
			case <-time.After(controllertest.Timeout):
				t.Fatal("no notification after the deletion of a pod")
			}
		}
	})
}

func TestUnschedulablePodsAndUtilisation(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"4"}})
		w.pod("m1", "web", "web-x-1", "n0", "3")
		waiting := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "waits"}}
		waiting.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
		w.servers["m1"].Put(waiting)
		w.Eventually("it is seen", func() string {
			pending, used := w.fleet.Unschedulable("m1"), w.fleet.Utilisation("m1")
			if len(pending) != 1 || pending[0].Name != "waits" || used[corev1.ResourceCPU] != 0.75 {
				return fmt.Sprintf("%+v wait, used are %v", pending, used)
			}
			return ""
		})
		if w.fleet.Unschedulable("nobody") != nil || w.fleet.Utilisation("nobody") != nil {
			t.Error("something is known of a cluster that is not there")
		}
	})
}
