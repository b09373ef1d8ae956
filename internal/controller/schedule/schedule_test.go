package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// world is a hub that schedules.
type world struct {
	*controllertest.Hub
	t     *testing.T
	fleet *capacity.Fleet
	// embedded places the server in the process of the scheduler.
	embedded bool
	// measured is a member whose nodes and quotas the fleet knows; empty for none.
	measured string
	// askAgain and refreshAfter are the options of these names.
	askAgain, refreshAfter time.Duration
	clock                  *clocktesting.FakePassiveClock
	templates              *template.Store
	stop                   func()
	// binding is of the scope of the test, and not there yet.
	binding workv1alpha2.Binding
}

// forBothScopes runs a test for a ResourceBinding and a ClusterResourceBinding, in a fleet of these clusters.
func forBothScopes(t *testing.T, clusters []string, test func(*world)) {
	t.Parallel()
	for name, s := range map[string]struct {
		kind      membertest.Kind
		namespace string
		embedded  bool
	}{
		"namespaced":                    {membertest.ConfigMap, "shop", true},
		"cluster-scoped":                {controllertest.ClusterRole, "", true},
		"with the API server elsewhere": {membertest.ConfigMap, "shop", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := &world{Hub: controllertest.New(t), t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)),
					embedded: s.embedded}
				if s.embedded {
					w.Embed()
				}
				for _, c := range clusters {
					w.Join(c, controllertest.ClusterRole)
				}
				w.binding = scope.Bindings.New(s.namespace)
				w.binding.SetName("b")
				w.binding.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "some-id"})
				w.binding.BindingSpec().Resource = workv1alpha2.ObjectReference{APIVersion: s.kind.GroupVersion().String(),
					Kind: s.kind.Kind, Namespace: s.namespace, Name: "b"}
				w.binding.BindingSpec().Placement = &policyv1alpha1.Placement{}
				w.run()
				test(w)
			})
		})
	}
}

func (w *world) run() {
	w.t.Helper()
	var members *member.Members
	w.stop = w.Run(func(ctx context.Context, mgr ctrl.Manager) (err error) {
		if w.fleet, err = capacity.NewFleet(ctx, mgr.GetCache()); err != nil {
			return err
		}
		if err := scope.IndexWorks(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		if w.measured != "" {
			members = member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(),
				Dial: membertest.Dial})
			if err := w.fleet.Measure(ctx, mgr.GetCache(), members); err != nil {
				return err
			}
			if err := mgr.Add(members); err != nil {
				return err
			}
		}
		return Setup(mgr, Options{Fleet: w.fleet, Name: policyv1alpha1.DefaultSchedulerName, Concurrency: 2, Clock: w.clock,
			AskAgain: w.askAgain, RefreshAfter: w.refreshAfter, Templates: w.templates})
	})
	if err := w.fleet.WaitForSync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if w.measured != "" {
		m, err := members.Get(w.measured)
		if err != nil {
			w.t.Fatal(err)
		}
		<-m.Load()
	}
}

// scheduled waits until the binding is scheduled to exactly these clusters, as "m1 m2", and the status confirms it.
func (w *world) scheduled(want string) {
	w.t.Helper()
	w.Eventually("it is scheduled to "+want, func() string {
		w.HasObject(w.binding)
		status := w.binding.BindingStatus()
		if got := placed(w.binding); got != want || !meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.Scheduled) ||
			status.SchedulerObservedGeneration != w.binding.GetGeneration() {
			return fmt.Sprintf("it is at %q, generation %d of %d, conditions %+v", got, status.SchedulerObservedGeneration,
				w.binding.GetGeneration(), status.Conditions)
		}
		return ""
	})
}

func placed(b workv1alpha2.Binding) string {
	var names []string
	for _, c := range b.BindingSpec().Clusters {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

func (w *world) change(change func(workv1alpha2.Binding)) {
	w.t.Helper()
	controllertest.Change(w.Hub, w.binding, change)
}

// written returns what was written to the binding since the last call.
func (w *world) written() (out []string) {
	w.t.Helper()
	for _, s := range w.Quiet() {
		if verb, of, _ := strings.Cut(s, " "); strings.Contains(of, "bindings") {
			resource, _, _ := strings.Cut(of, " ")
			_, sub, _ := strings.Cut(resource, "/")
			out = append(out, strings.TrimSuffix(verb+" "+sub, " "))
		}
	}
	return out
}

func (w *world) countEvents(reason string) (n int) {
	for _, e := range w.Events() {
		if strings.Contains(e, reason) {
			n++
		}
	}
	return n
}

// expectEvents waits until there are this many events with the reason.
func (w *world) expectEvents(reason string, times int) {
	w.t.Helper()
	w.Eventually("an event "+reason, func() string {
		if n := w.countEvents(reason); n != times {
			return fmt.Sprintf("there are %d events, want %d", n, times)
		}
		return ""
	})
}

func TestEventReportsDuplicatedReplicas(t *testing.T) {
	forBothScopes(t, []string{"m1", "m2"}, func(w *world) {
		w.binding.BindingSpec().Replicas = 3
		w.Make(w.binding)
		w.scheduled("m1 m2")
		w.expectEvents("Binding has been scheduled successfully. Result: {m1:3, m2:3} Duplicated: 3×2, each of the 2 clusters runs all 3 replicas, 6 in all;", 1)
	})
}

func TestPlacedBindingIsCreatedWithItsConfirmation(t *testing.T) {
	forBothScopes(t, []string{"m1", "m2"}, func(w *world) {
		w.Quiet()
		if !Placer(w.fleet, policyv1alpha1.DefaultSchedulerName)(w.binding) {
			w.t.Fatal("it could not be placed")
		}
		c, err := client.New(w.Config, client.Options{Scheme: controllertest.Scheme(), Mapper: w.RESTMapper()})
		if err != nil {
			w.t.Fatal(err)
		}
		if err := commit.Create(w.t.Context(), c, w.binding); err != nil {
			w.t.Fatal(err)
		}
		w.scheduled("m1 m2")
		want := []string{"create"}
		if !w.embedded {
			want = append(want, "update status")
		}
		if got := w.written(); !slices.Equal(got, want) {
			w.t.Errorf("written: %q, want %q", got, want)
		}
		w.expectEvents(workv1alpha2.EventScheduleBindingSucceed, 1)
		w.stop()
		w.run()
		if got := w.written(); len(got) != 0 {
			w.t.Errorf("a restart wrote %q", got)
		}
	})
}

// A binding is created with its confirmation, before the scheduler looks for the first time.
func TestBindingConfirmedAtFirstReconcileIsReported(t *testing.T) {
	forBothScopes(t, []string{"m1"}, func(w *world) {
		w.Make(w.binding)
		w.scheduled("m1")
		w.HasObject(w.binding)
		heard := record.NewFakeRecorder(9)
		r := &reconciler{Options: Options{Fleet: w.fleet, Name: policyv1alpha1.DefaultSchedulerName, Clock: w.clock},
			client: w.Client, events: commit.Events{EventRecorder: heard},
			index:   newIndex(policyv1alpha1.DefaultSchedulerName, w.fleet.Snapshot().Settings().Plugins),
			limiter: rate.NewLimiter(eventRate, 9)}
		look := func(e event.CreateEvent, want int) {
			w.t.Helper()
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			r.bindings().Create(w.t.Context(), e, queue)
			for range 2 {
				if _, err := r.schedule(w.t.Context(), client.ObjectKeyFromObject(w.binding)); err != nil {
					w.t.Fatal(err)
				}
			}
			if len(heard.Events) != want {
				w.t.Errorf("in the initial list %t: %d events, want %d", e.IsInInitialList, len(heard.Events), want)
			}
		}
		look(event.CreateEvent{Object: w.binding, IsInInitialList: true}, 0)
		look(event.CreateEvent{Object: w.binding}, 1)
	})
}

func TestPlacerSkipsBindingsOfOtherSchedulersAndWithoutRoom(t *testing.T) {
	forBothScopes(t, nil, func(w *world) {
		place := Placer(w.fleet, policyv1alpha1.DefaultSchedulerName)
		before := w.binding.DeepCopyObject()
		if place(w.binding) {
			w.t.Error("it was placed in a fleet without clusters")
		}
		w.binding.BindingSpec().SchedulerName = "another"
		if place(w.binding) {
			w.t.Error("it was placed for another scheduler")
		}
		w.binding.BindingSpec().SchedulerName = ""
		if !equality.Semantic.DeepEqual(before, w.binding) {
			w.t.Errorf("it changed:\n%v\n%v", before, w.binding)
		}
	})
}

func TestPlacementOfANewBindingIsOneWrite(t *testing.T) {
	forBothScopes(t, []string{"m1"}, func(w *world) {
		w.Quiet()
		w.Make(w.binding)
		w.scheduled("m1")
		want := []string{"create", "update"}
		if !w.embedded {
			want = append(want, "update status")
		}
		if got := w.written(); !slices.Equal(got, want) {
			w.t.Errorf("written: %q, want %q", got, want)
		}
	})
}

func TestUnschedulableBindingIsScheduledAfterAJoin(t *testing.T) {
	forBothScopes(t, nil, func(w *world) {
		w.Quiet()
		w.Make(w.binding)
		w.Eventually("it says why", func() string {
			w.HasObject(w.binding)
			c := meta.FindStatusCondition(w.binding.BindingStatus().Conditions, workv1alpha2.Scheduled)
			if c == nil || c.Reason != workv1alpha2.ReasonNoClusterFit ||
				c.Message != "0/0 clusters are available: no clusters available to schedule. To fit: join a member cluster." {
				return fmt.Sprintf("%+v", c)
			}
			return ""
		})
		if got := w.written(); len(got) != 2 {
			w.t.Errorf("written: %q, want the binding and one status", got)
		}
		w.expectEvents(workv1alpha2.EventScheduleBindingFailed, 2) // once on the binding and once on the template
		w.Join("m1", controllertest.ClusterRole)
		w.scheduled("m1")
	})
}

func TestANewClusterThatHasNotReportedItsAPIsCausesNoWarning(t *testing.T) {
	forBothScopes(t, nil, func(w *world) {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		w.Make(c)
		w.Quiet()
		w.Make(w.binding)
		reports := func(want string) {
			w.t.Helper()
			w.Eventually("the condition has "+want, func() string {
				w.HasObject(w.binding)
				c := meta.FindStatusCondition(w.binding.BindingStatus().Conditions, workv1alpha2.Scheduled)
				if c == nil || !strings.Contains(c.Message, want) {
					return fmt.Sprintf("%+v", c)
				}
				return ""
			})
		}
		reports("To fit: for new: wait, the cluster has not reported its APIs yet.")
		w.Quiet()
		w.expectEvents(workv1alpha2.EventScheduleBindingFailed, 0)
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
			Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ReasonComplete, LastTransitionTime: metav1.Now()}}
		if err := w.Status().Update(w.t.Context(), c); err != nil {
			w.t.Fatal(err)
		}
		reports("To fit: for new: install the API that has ")
		w.expectEvents(workv1alpha2.EventScheduleBindingFailed, 2)
	})
}

func TestABindingFollowsTheFleet(t *testing.T) {
	forBothScopes(t, []string{"m1", "m2"}, func(w *world) {
		w.binding.BindingSpec().Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "out",
				Operator: metav1.LabelSelectorOpDoesNotExist}}}}
		w.Make(w.binding)
		w.scheduled("m1 m2")
		w.Quiet()

		m2 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}
		controllertest.Change(w.Hub, m2, func(c *clusterv1alpha1.Cluster) {
			c.Labels = map[string]string{
				"unrelated": "label"}
		})
		if got := w.written(); len(got) != 0 {
			w.t.Errorf("a label that nobody asks for wrote %q", got)
		}
		controllertest.Change(w.Hub, m2, func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"out": "now"} })
		w.scheduled("m1")
		w.Join("m3", controllertest.ClusterRole)
		w.scheduled("m1 m3")
		w.Gone(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
		w.scheduled("m3")
		w.expectEvents(workv1alpha2.EventScheduleBindingSucceed, 4)
	})
}

func TestBindingFollowsAutoscalersOfMembers(t *testing.T) {
	forBothScopes(t, []string{"m1", "m2"}, func(w *world) {
		spec := w.binding.BindingSpec()
		spec.Replicas, spec.ReplicaRequirements = 6, &workv1alpha2.ReplicaRequirements{}
		spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}
		w.Make(w.binding)
		clusters := func() string { return workv1alpha2.DescribeTargets(w.binding.BindingSpec().Clusters) }
		has := func(want string) {
			w.t.Helper()
			w.Eventually("the replicas are "+want, func() string {
				w.HasObject(w.binding)
				if got := clusters(); got != want {
					return "they are " + got
				}
				return ""
			})
		}
		has("m1:3, m2:3")
		w.scheduled("m1 m2")
		w.change(func(b workv1alpha2.Binding) { schedule.SetScaled(b, "web", map[string]int32{"m1": 5, "m2": 1}) })
		has("m1:5, m2:1")
		w.scheduled("m1 m2")
		w.Quiet()
		w.change(func(b workv1alpha2.Binding) { schedule.SetScaled(b, "", nil) })
		if got := w.written(); len(got) != 1 { // the change itself
			w.t.Errorf("nobody scales it any more, and that wrote %q", got)
		}
		if w.HasObject(w.binding); clusters() != "m1:5, m2:1" {
			w.t.Errorf("nobody scales it any more, and its replicas moved to %s", clusters())
		}

		// One that joins gets some, once.
		w.Join("m3", controllertest.ClusterRole)
		w.Eventually("the scheduler knows m3 and what it serves", func() string {
			if m3 := w.fleet.Snapshot().Cluster("m3"); m3 == nil || len(m3.Status.APIEnablements) == 0 {
				return "it does not"
			}
			return ""
		})
		w.change(func(b workv1alpha2.Binding) {
			schedule.SetScaled(b, "web", map[string]int32{"m1": 2, "m2": 1})
			b.BindingSpec().Replicas = 3
		})
		has("m1:1, m2:1, m3:1")
		w.scheduled("m1 m2 m3")
		if got := w.binding.GetAnnotations()[wellknown.ScaledByMembersAnnotation]; got != `{"m1":2,"m2":1,"m3":1}` {
			w.t.Errorf("the annotation says %s", got)
		}
	})
}

func TestReclaimedBindingIsScheduled(t *testing.T) {
	forBothScopes(t, []string{"m1"}, func(w *world) {
		claim := w.binding.GetLabels()
		w.Make(w.binding)
		w.scheduled("m1")
		w.change(func(b workv1alpha2.Binding) { b.SetLabels(nil) }) // its policy is gone
		w.Join("m2", controllertest.ClusterRole)
		w.Quiet()
		if w.HasObject(w.binding); placed(w.binding) != "m1" {
			w.t.Errorf("what no policy claims moved to %q", placed(w.binding))
		}
		w.change(func(b workv1alpha2.Binding) { b.SetLabels(claim) })
		w.scheduled("m1 m2")
	})
}

func TestOnlyTheSchedulersRunsDateTheScheduling(t *testing.T) {
	forBothScopes(t, []string{"m1"}, func(w *world) {
		w.Make(w.binding)
		w.scheduled("m1")
		first := w.clock.Now()
		w.clock.SetTime(first.Add(time.Hour))

		w.change(func(b workv1alpha2.Binding) { b.BindingSpec().Resource.ResourceVersion = "2" }) // the template changed
		w.scheduled("m1")
		if last := w.binding.BindingStatus().LastScheduledTime; !last.Time.Equal(first) {
			w.t.Errorf("a change that places nothing is dated %s as a scheduling", last)
		}
		asked := metav1.NewTime(first.Add(30 * time.Minute))
		w.change(func(b workv1alpha2.Binding) { b.BindingSpec().RescheduleTriggeredAt = &asked })
		w.scheduled("m1")
		w.Quiet()
		if w.HasObject(w.binding); !w.binding.BindingStatus().LastScheduledTime.Time.Equal(w.clock.Now()) {
			w.t.Errorf("what was asked for is dated %s, want %s", w.binding.BindingStatus().LastScheduledTime, w.clock.Now())
		}
	})
}

func TestSuspendedSchedulingWaits(t *testing.T) {
	forBothScopes(t, []string{"m1"}, func(w *world) {
		w.binding.BindingSpec().Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		w.Make(w.binding)
		w.Quiet()
		if w.HasObject(w.binding); placed(w.binding) != "" {
			w.t.Errorf("it was placed at %q", placed(w.binding))
		}
		w.change(func(b workv1alpha2.Binding) { b.BindingSpec().Suspension = nil })
		w.scheduled("m1")
	})
}

func TestABurstOfPlacementsIsNotABurstOfEvents(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	events := record.NewFakeRecorder(10 * maxEvents)
	r := &reconciler{Options: Options{Clock: clock}, events: commit.Events{EventRecorder: events},
		limiter: rate.NewLimiter(eventRate, maxEvents)}
	recorded := func(bindings int) int {
		for range bindings {
			r.scheduled(&workv1alpha2.ResourceBinding{})
		}
		n := len(events.Events)
		for range n {
			<-events.Events
		}
		return n
	}
	if n := recorded(3 * maxEvents); n != maxEvents {
		t.Errorf("%d placements at once recorded %d events, want %d", 3*maxEvents, n, maxEvents)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if n := recorded(maxEvents); n != eventRate {
		t.Errorf("a second later there are %d events, want %d", n, eventRate)
	}
	clock.SetTime(clock.Now().Add(time.Hour))
	if n := recorded(10); n != 10 {
		t.Errorf("after the burst, %d of 10 are recorded", n)
	}
}

func TestClusterEventReplacesEventsOfManyBindings(t *testing.T) {
	events := record.NewFakeRecorder(10)
	r := &reconciler{events: commit.Events{EventRecorder: events}, limiter: rate.NewLimiter(eventRate, maxEvents)}
	is := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	r.follows(capacity.Change{Old: is, New: is}, maxEvents)
	r.follows(capacity.Change{Old: is}, 10_000) // the cluster is gone: no event can be recorded on it
	if n := len(events.Events); n != 0 {
		t.Fatalf("%d events, want none for bindings with their own events or for a removed cluster: %s", n, <-events.Events)
	}
	r.follows(capacity.Change{Old: is, New: is}, 10_000)
	select {
	case got := <-events.Events:
		if want := "Normal RescheduleBindings A change of the cluster caused 10000 bindings to be rescheduled; the condition Scheduled of each shows the result"; got != want {
			t.Errorf("got: %s\nwant: %s", got, want)
		}
	default:
		t.Error("no event for 10,000 bindings")
	}
}
