package deschedule

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/controller/schedule"
	coreschedule "github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// world is a hub that schedules and deschedules, with a Deployment of four replicas in m1. The test sets the statuses
// of the members.
type world struct {
	*controllertest.Hub
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	binding *workv1alpha2.ResourceBinding

	mu      sync.Mutex
	waiting map[string][]capacity.Pending
	rounds  int // how often m1 was asked for its pods
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)),
		waiting: map[string][]capacity.Pending{}}
	for _, name := range []string{"m1", "m2"} {
		w.Join(name, controllertest.Deployment)
		w.uses(name, 10, 4)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(4), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
	}}}
	u.SetGroupVersionKind(controllertest.Deployment.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	u.SetLabels(map[string]string{"tier": "front"})
	w.Make(u)

	placement := policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated}}
	w.binding = &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment",
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
			Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: coreschedule.AppliedPlacement(
				&placement)}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
				UID: u.GetUID()},
			Replicas: 4, Placement: &placement, Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 4}},
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1")}},
		},
	}
	w.Make(w.binding)
	return w
}

func (w *world) run() (stop func()) {
	w.t.Helper()
	return w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		fleet, err := capacity.NewFleet(ctx, mgr.GetCache())
		if err != nil {
			return err
		}
		templates := template.New(dynamic.NewForConfigOrDie(w.Config), discovery.NewDiscoveryClientForConfigOrDie(w.Config))
		if err := mgr.Add(templates); err != nil {
			return err
		}
		if err := schedule.Setup(mgr, schedule.Options{Fleet: fleet, Name: policyv1alpha1.DefaultSchedulerName,
			Concurrency: 2, Clock: w.clock}); err != nil {
			return err
		}
		return Setup(mgr, Options{Fleet: fleet, Templates: templates, SchedulerName: policyv1alpha1.DefaultSchedulerName,
			Interval: 10 * time.Millisecond, Unschedulable: 5 * time.Minute, Clock: w.clock, Waiting: w.pods})
	})
}

func (w *world) pods(cluster string) []capacity.Pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cluster == "m1" {
		w.rounds++
	}
	return w.waiting[cluster]
}

// waits makes this many pods of the Deployment unschedulable in a cluster from now on.
func (w *world) waits(cluster string, pods int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[cluster] = nil
	for i := range pods {
		w.waiting[cluster] = append(w.waiting[cluster], capacity.Pending{Namespace: "shop", Name: fmt.Sprint("web-5d4f-", i),
			OwnerKind: "ReplicaSet", OwnerName: "web-5d4f",
			Labels: map[string]string{"app": "web", "pod-template-hash": "5d4f"}, Since: w.clock.Now()})
	}
}

// looks waits for two more rounds, so that pending actions are done.
func (w *world) looks() {
	w.t.Helper()
	w.mu.Lock()
	enough := w.rounds + 3
	w.mu.Unlock()
	w.Eventually("the members are asked", func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.rounds < enough {
			return fmt.Sprintf("%d times, want %d", w.rounds, enough)
		}
		return ""
	})
}

// uses sets the CPUs of a cluster and the requests of its pods.
func (w *world) uses(cluster string, has, requested int64) {
	list := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	w.ClusterStatus(cluster, func(s *clusterv1alpha1.ClusterStatus) {
		s.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: list(has), Allocated: list(requested)}
	})
}

// setPods has the members tell of their pods, as "m1=4/2": there, and ready.
func (w *world) setPods(text string) {
	w.t.Helper()
	for {
		w.HasObject(w.binding)
		w.binding.Status.AggregatedStatus = nil
		for _, f := range strings.Fields(text) {
			name, n, _ := strings.Cut(f, "=")
			there, ready, _ := strings.Cut(n, "/")
			w.binding.Status.AggregatedStatus = append(w.binding.Status.AggregatedStatus,
				workv1alpha2.AggregatedStatusItem{ClusterName: name, Applied: true,
					Status: &runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"replicas":%s,"readyReplicas":%s}`, there, ready))}})
		}
		err := w.Status().Update(w.t.Context(), w.binding)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "has been modified") {
			w.t.Fatal(err)
		}
	}
}

func (w *world) setTime() string {
	w.HasObject(w.binding)
	var out []string
	for _, c := range w.binding.Spec.Clusters {
		out = append(out, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
	}
	return strings.Join(out, " ")
}

// placed waits until the binding has this placement and the scheduler has confirmed it.
func (w *world) placed(want string) {
	w.t.Helper()
	w.Eventually("the binding is at "+want, func() string {
		if got := w.setTime(); got != want || w.binding.Status.SchedulerObservedGeneration != w.binding.Generation ||
			!meta.IsStatusConditionTrue(w.binding.Status.Conditions, workv1alpha2.Scheduled) {
			return fmt.Sprintf("it is at %s, generation %d of %d", got, w.binding.Status.SchedulerObservedGeneration,
				w.binding.Generation)
		}
		return ""
	})
}

func (w *world) stays(want string) {
	w.t.Helper()
	w.looks()
	if got := w.setTime(); got != want {
		w.t.Fatalf("the binding is at %s, want it to stay at %s", got, want)
	}
}

// events returns the events with a reason.
func (w *world) events(reason string) (out []string) {
	for _, e := range w.Events() {
		if strings.Contains(e, " "+reason+": ") {
			out = append(out, e)
		}
	}
	return out
}

func (w *world) hears(reason, text string, times int) {
	w.t.Helper()
	w.Eventually("events with reason "+reason, func() string {
		events := w.events(reason)
		if len(events) != times || times > 0 && !strings.Contains(events[0], text) {
			return fmt.Sprintf("%d times, want %d with %q: %q", len(events), times, text, events)
		}
		return ""
	})
}

func TestUnschedulableReplicasMoveInOneWrite(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.setPods("m1=4/3")
		stop := w.run()
		w.placed("m1:4")
		w.waits("m1", 1)
		w.stays("m1:4") // they wait for too short a time
		generation := w.binding.Generation

		w.clock.SetTime(w.clock.Now().Add(6 * time.Minute))
		w.placed("m1:3 m2:1")
		if w.binding.Generation != generation+1 {
			t.Errorf("generation %d became %d, want one write", generation, w.binding.Generation)
		}
		w.hears("DescheduleBindingSucceed",
			"Replicas of m1: 1 unschedulable for 5m0s and moved to m2: 1. Result: {m1:3, m2:1}", 2)
		if n := testutil.ToFloat64(descheduled.WithLabelValues("m1", noNode)); n < 1 {
			t.Errorf("the metrics tell of %v replicas that left m1", n)
		}
		if n := len(w.events("ScheduleBindingFailed")); n > 0 {
			t.Errorf("the scheduler failed %d times", n)
		}

		// The member takes a while to do it; a pod that is about to go is not moved twice.
		w.stays("m1:3 m2:1")
		w.setPods("m1=3/3 m2=1/0")
		w.waits("m1", 0)
		// The one that moved finds no node either: it stays for the cool-down, and never goes back to where it found none.
		w.waits("m2", 1)
		w.clock.SetTime(w.clock.Now().Add(6 * time.Minute))
		w.stays("m1:3 m2:1")
		stop()
		w.run() // after a restart it knows what was moved
		w.stays("m1:3 m2:1")
		w.clock.SetTime(w.clock.Now().Add(6 * time.Minute))
		w.hears("DescheduleBindingFailed",
			"replicas are unschedulable (m2: 1) and are not moved, because no other cluster has capacity", 2)
		w.stays("m1:3 m2:1")
	})
}

func TestNoRoomIsReportedOnce(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.setPods("m1=4/2")
		w.uses("m2", 10, 10)
		w.run()
		w.placed("m1:4")
		w.waits("m1", 2)
		w.clock.SetTime(w.clock.Now().Add(6 * time.Minute))
		w.hears("DescheduleBindingFailed",
			"replicas are unschedulable (m1: 2) and are not moved, because no other cluster has capacity: Clusters available replicas 0 are not enough to schedule.", 2)
		w.stays("m1:4")
		w.stays("m1:4")
		w.hears("DescheduleBindingFailed", "are not moved", 2)

		w.uses("m2", 10, 9)
		w.placed("m1:2 m2:2") // one after the other
		w.stays("m1:2 m2:2")
	})
}

func TestNothingMovesOutOfUnreachableMember(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.setPods("m1=4/3")
		w.Ready("m1", metav1.ConditionFalse, "ClusterNotReachable")
		w.waits("m1", 1)
		w.clock.SetTime(w.clock.Now().Add(6 * time.Minute))
		w.run()
		w.placed("m1:4")
		if w.Quiet(); w.setTime() != "m1:4" {
			t.Fatalf("it is at %s", w.setTime())
		}
		w.Ready("m1", metav1.ConditionTrue, "ClusterReady")
		w.placed("m1:3 m2:1")
	})
}

// policy returns a policy with a threshold of 80 percent and a short interval.
func policy(change ...func(*configv1alpha1.ReplicaSchedulingPolicySpec)) *configv1alpha1.ReplicaSchedulingPolicy {
	percent := int32(80)
	p := &configv1alpha1.ReplicaSchedulingPolicy{ObjectMeta: metav1.ObjectMeta{Name: "even"},
		Spec: configv1alpha1.ReplicaSchedulingPolicySpec{
			ReschedulePolicy: configv1alpha1.ReschedulePolicy{Interval: &metav1.Duration{Duration: 10 * time.Millisecond},
				Threshold: configv1alpha1.UtilizationThreshold{CPUUtilization: &percent}}}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// balances waits for the policy's condition with this text.
func (w *world) balances(p *configv1alpha1.ReplicaSchedulingPolicy, status metav1.ConditionStatus, reason,
	text string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("the policy has the reason %s", reason), func() string {
		w.HasObject(p)
		c := meta.FindStatusCondition(p.Status.Conditions, configv1alpha1.Balanced)
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) ||
			p.Status.ObservedGeneration != p.Generation {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
}

func TestClusterOverThresholdGivesReplicas(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.setPods("m1=4/4")
		w.uses("m1", 10, 8)
		w.run()
		p := policy()
		w.Make(p)
		w.balances(p, metav1.ConditionTrue, "BelowThreshold", "No cluster is over")
		w.placed("m1:4")

		w.uses("m1", 10, 9)
		w.placed("m1:3 m2:1")
		w.hears("DescheduleBindingSucceed",
			"Replicas of m1: 1 removed, because the cluster is over the cpu threshold of ReplicaSchedulingPolicy even, to m2: 1. Result: {m1:3, m2:1}", 2)
		// Until the pod is gone the cluster seems to be over; what is on its way counts.
		w.balances(p, metav1.ConditionTrue, "BelowThreshold", "")
		w.setPods("m1=3/3 m2=1/0")
		w.uses("m1", 10, 10)
		w.balances(p, metav1.ConditionFalse, "Moving",
			"cluster m1 is over the threshold of cpu, but no replicas move: the workloads in it have replicas that are not ready")
		w.setPods("m1=3/3 m2=1/1")
		w.placed("m1:2 m2:2")
		w.uses("m1", 10, 8)
		w.setPods("m1=2/2 m2=2/2")
		w.balances(p, metav1.ConditionTrue, "BelowThreshold", "")

		// Now the other one is over it: nothing goes back.
		w.uses("m1", 10, 0)
		w.uses("m2", 10, 9)
		w.balances(p, metav1.ConditionFalse, "Moving",
			"cluster m2 is over the threshold of cpu, but no replicas move: the workloads in it have replicas that are not ready, or that moved")
		w.clock.SetTime(w.clock.Now().Add(11 * time.Minute))
		w.balances(p, metav1.ConditionFalse, "NothingToMove", "no other cluster can run more replicas")
		if w.setTime() != "m1:2 m2:2" {
			t.Errorf("it is at %s", w.setTime())
		}
	})
}

func TestPolicyMovesSelectedWorkloadsWhileEnabled(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.setPods("m1=4/4")
		w.uses("m1", 10, 9)
		w.run()
		w.placed("m1:4")
		selects := func(sel policyv1alpha1.ResourceSelector) func(*configv1alpha1.ReplicaSchedulingPolicySpec) {
			return func(s *configv1alpha1.ReplicaSchedulingPolicySpec) {
				sel.APIVersion, sel.Kind = "apps/v1", "Deployment"
				s.ResourceSelectors = []policyv1alpha1.ResourceSelector{sel}
			}
		}
		p := policy(selects(policyv1alpha1.ResourceSelector{Namespace: "other"}))
		w.Make(p)
		w.balances(p, metav1.ConditionFalse, "NothingToMove", "no replicas that this policy may move request any of its cpu")

		off := false
		controllertest.Change(w.Hub, p, func(p *configv1alpha1.ReplicaSchedulingPolicy) {
			selects(policyv1alpha1.ResourceSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"tier": "front"}}})(&p.Spec)
			p.Spec.ReschedulePolicy.Enabled = &off
		})
		w.balances(p, metav1.ConditionUnknown, "Disabled", "enabled: false")
		w.stays("m1:4")
		controllertest.Change(w.Hub, p,
			func(p *configv1alpha1.ReplicaSchedulingPolicy) { p.Spec.ReschedulePolicy.Enabled = nil })
		w.placed("m1:3 m2:1")
	})
}
