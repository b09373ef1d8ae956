package failover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/controller/schedule"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	coreschedule "github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// world is a hub that schedules and fails over, with a Deployment of two replicas in m1. The test sets what members
// report.
type world struct {
	*controllertest.Hub
	t       *testing.T
	policy  *policyv1alpha1.PropagationPolicy
	binding *workv1alpha2.ResourceBinding
	options failover.Options
}

func newWorld(t *testing.T, volumes ...any) *world {
	w := &world{Hub: controllertest.New(t), t: t, options: failover.Defaults}
	for _, name := range []string{"m1", "m2", "m3"} {
		w.Join(name, controllertest.Deployment)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2),
		"template": map[string]any{"spec": map[string]any{"volumes": volumes}}}}}
	u.SetGroupVersionKind(controllertest.Deployment.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	w.Make(u)

	placement := policyv1alpha1.Placement{
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster,
			MinGroups: 1, MaxGroups: 1}},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated}}
	w.policy = &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
		Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}}}
	w.policy.Spec.Placement = placement
	w.Make(w.policy)
	w.binding = &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment",
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
			Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: coreschedule.AppliedPlacement(&placement),
				policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop",
				policyv1alpha1.PropagationPolicyNameAnnotation:      "web"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
				UID: u.GetUID()},
			Replicas: 2, Placement: &placement, Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}},
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
			Failover: &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
				PurgeMode: policyv1alpha1.PurgeModeGracefully}},
		},
	}
	return w
}

func (w *world) run() (stop func()) {
	w.t.Helper()
	return w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		fleet, err := capacity.NewFleet(ctx, mgr.GetCache())
		if err != nil {
			return err
		}
		if err := scope.IndexWorks(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		templates := template.New(dynamic.NewForConfigOrDie(w.Config), discovery.NewDiscoveryClientForConfigOrDie(w.Config))
		if err := mgr.Add(templates); err != nil {
			return err
		}
		if err := schedule.Setup(mgr, schedule.Options{Fleet: fleet, Name: policyv1alpha1.DefaultSchedulerName,
			Concurrency: 2}); err != nil {
			return err
		}
		return Setup(mgr, Options{Options: w.options, Fleet: fleet, Templates: templates, Gather: time.Millisecond})
	})
}

// lose has a cluster cease to respond, as the cluster controller reports it.
func (w *world) lose(name string) {
	w.Ready(name, metav1.ConditionFalse, "ClusterNotReachable")
	w.taint(name, clusterv1alpha1.TaintNotReady)
}

func (w *world) taint(name, key string) {
	at := metav1.NewTime(time.Now())
	controllertest.Change(w.Hub, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
		func(c *clusterv1alpha1.Cluster) {
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: &at})
		})
}

func (w *world) back(name string) {
	w.Ready(name, metav1.ConditionTrue, "ClusterReady")
	controllertest.Change(w.Hub, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
		func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
}

// reports has the members report, as "m1=Healthy m2=Unhealthy". What is Unhealthy is so since now.
func (w *world) reports(text string) {
	w.t.Helper()
	for {
		w.HasObject(w.binding)
		w.binding.Status.AggregatedStatus = nil
		for _, f := range strings.Fields(text) {
			name, health, _ := strings.Cut(f, "=")
			item := workv1alpha2.AggregatedStatusItem{ClusterName: name, Applied: true,
				Health: workv1alpha1.ResourceHealth(health),
				Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2,"readyReplicas":2}`)}}
			if item.Health == workv1alpha1.ResourceUnhealthy {
				item.UnhealthySince = new(metav1.Now())
			}
			w.binding.Status.AggregatedStatus = append(w.binding.Status.AggregatedStatus, item)
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

// eventually waits until the binding is placed and leaves clusters as "m2:2 leaves m1", confirmed by the scheduler.
func (w *world) eventually(want string) {
	w.t.Helper()
	w.Eventually("the binding is at "+want, func() string {
		w.HasObject(w.binding)
		var out []string
		for _, c := range w.binding.Spec.Clusters {
			out = append(out, fmt.Sprintf("%s:%d", c.Name, c.Replicas))
		}
		for _, t := range w.binding.Spec.GracefulEvictionTasks {
			out = append(out, "leaves "+t.FromCluster)
		}
		if got := strings.Join(out, " "); got != want ||
			w.binding.Status.SchedulerObservedGeneration != w.binding.Generation ||
			!meta.IsStatusConditionTrue(w.binding.Status.Conditions, workv1alpha2.Scheduled) {
			return fmt.Sprintf("it is at %s, generation %d of %d", got, w.binding.Status.SchedulerObservedGeneration,
				w.binding.Generation)
		}
		return ""
	})
}

// expectEvent waits for an event with this reason and text on objects of these kinds.
func (w *world) expectEvent(reason, text string, kinds ...string) {
	w.t.Helper()
	w.Eventually("an event "+reason, func() string {
		for _, kind := range kinds {
			if !slices.ContainsFunc(w.Events(), func(e string) bool {
				return strings.HasPrefix(e, kind+" "+reason+": ") && strings.Contains(e, text)
			}) {
				return fmt.Sprintf("no %s is reported: %q: %q", kind, text, w.Events())
			}
		}
		return ""
	})
}

// durations returns how many failovers argosy_failover_duration_seconds has observed, and their sum in seconds.
func durations(t *testing.T) (count uint64, sum float64) {
	t.Helper()
	m := &dto.Metric{}
	if err := duration.Write(m); err != nil {
		t.Fatal(err)
	}
	return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
}

func TestLostClusterIsReplacedInOneWrite(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(w.binding)
		w.reports("m1=Healthy")
		stop := w.run()
		w.eventually("m1:2")
		generation := w.binding.Generation
		before := testutil.ToFloat64(evicted.WithLabelValues(failover.ReasonTaintUntolerated, "Evicted"))
		countBefore, sumBefore := durations(t)

		w.lose("m1")
		lostAt := time.Now()
		w.Advance(4 * time.Minute)
		w.eventually("m1:2")
		w.Advance(time.Minute)
		w.eventually("m2:2 leaves m1")
		if w.binding.Generation != generation+1 {
			t.Errorf("generation %d became %d, want one write", generation, w.binding.Generation)
		}
		w.expectEvent("EvictWorkloadFromClusterSucceed", "Evicted from cluster m1", "ResourceBinding", "Deployment")
		w.expectEvent("EvictWorkloadFromClusterSucceed", "Evicted 1 workload from the cluster.", "Cluster")
		if got := testutil.ToFloat64(evicted.WithLabelValues(failover.ReasonTaintUntolerated, "Evicted")); got <= before {
			t.Errorf("the metric is %v, and was %v", got, before)
		}
		stop()
		w.run() // a restart continues
		w.back("m1")
		w.eventually("m2:2 leaves m1")
		w.Advance(time.Minute)
		if count, _ := durations(t); count != countBefore {
			t.Errorf("%d durations are observed before the replacement is healthy", count-countBefore)
		}
		w.reports("m1=Healthy m2=Healthy")
		w.eventually("m2:2")
		w.Eventually("the duration since the loss is observed, across the restart", func() string {
			count, sum := durations(t)
			seconds, latest := sum-sumBefore, time.Since(lostAt).Seconds()
			if count != countBefore+1 || seconds < (6*time.Minute).Seconds()-1 || seconds > latest+1 {
				return fmt.Sprintf("%d observations of %.0f s in total, want one of 359 to %.0f s", count-countBefore, seconds,
					latest+1)
			}
			return ""
		})
		w.expectEvent("EvictWorkloadFromClusterSucceed", "The copy in cluster m1 is removed", "ResourceBinding", "Deployment")
		if record := failover.RecordOf(w.binding); record["m1"].Ended == nil {
			t.Errorf("the failover has not ended: %+v", record)
		}
	})
}

func TestGracePeriodIsReportedAndRemovesNothing(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.taint("m1", "maintenance")
		w.eventually("m2:2 leaves m1")
		w.reports("m1=Healthy m2=Unknown")
		w.Advance(time.Hour)
		w.expectEvent("EvictWorkloadFromClusterFailed", "The grace period is over", "ResourceBinding", "Deployment")
		w.eventually("m2:2 leaves m1")
		// A user lets the old copy go.
		controllertest.Change(w.Hub, w.binding, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks[0].SuppressDeletion = new(false)
		})
		w.eventually("m2:2")
	})
}

func TestLossLimitSetsAConditionOnLostClusters(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.eventually("m1:2")
		w.lose("m1")
		w.lose("m2")
		paused := func(name string) bool {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
			w.HasObject(c)
			return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionFailoverPaused)
		}
		w.Eventually("m1, which alone has a workload, is paused", func() string {
			if !paused("m1") || paused("m2") || paused("m3") {
				return fmt.Sprint(paused("m1"), paused("m2"), paused("m3"))
			}
			return ""
		})
		w.expectEvent("FailoverPaused", "2 of 3 clusters were lost", "Cluster")
		w.Advance(time.Hour)
		w.eventually("m1:2")
		w.back("m2")
		w.Advance(time.Minute)
		w.eventually("m1:2") // m1 may become ready, too
		w.Advance(time.Minute)
		w.eventually("m2:2 leaves m1")
		w.Eventually("no cluster is paused", func() string {
			if paused("m1") || paused("m2") {
				return "one is"
			}
			return ""
		})
		w.expectEvent("FailoverResumed", "", "Cluster")
	})
}

func TestUnhealthyApplicationMovesWithItsState(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		seconds := int32(60)
		w.binding.Spec.PropagateDeps = true
		w.binding.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			PurgeMode:          policyv1alpha1.PurgeModeGracefully,
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &seconds},
			StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{
				AliasLabelName: "ready", JSONPath: "{.readyReplicas}"}, {AliasLabelName: "none", JSONPath: "{.none}"}}}}}
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.eventually("m1:2")
		w.reports("m1=Unhealthy")
		w.Advance(59 * time.Second)
		w.eventually("m1:2")
		w.Advance(2 * time.Second)
		w.eventually("m2:2 leaves m1")
		if got := w.binding.Spec.GracefulEvictionTasks[0].PreservedLabelState; len(got) != 1 || got["ready"] != "2" {
			t.Errorf("the preserved state is %v", got)
		}
		w.expectEvent("PreserveStateFailed", "{.none}", "ResourceBinding", "Deployment")
	})
}

// Nothing but the room changes, and no cluster has a taint.
func TestUnhealthyApplicationMovesWhenRoomAppears(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		room := func(cluster, cpu string) {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
			w.HasObject(c)
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("9")}}
			if err := w.Status().Update(w.t.Context(), c); err != nil {
				w.t.Fatal(err)
			}
		}
		room("m1", "4")
		room("m2", "1")
		room("m3", "1")
		seconds := int32(60)
		w.binding.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1")}}
		w.binding.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &seconds}}}
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.eventually("m1:2")
		w.reports("m1=Unhealthy")
		w.Advance(2 * time.Minute)
		w.expectEvent("EvictWorkloadFromClusterFailed", "no other cluster takes it", "ResourceBinding")
		w.eventually("m1:2")
		room("m2", "4")
		w.Advance(time.Minute)
		w.eventually("m2:2 leaves m1")
		if got := testutil.ToFloat64(waiting.WithLabelValues(string(failover.NothingFits))); got != 0 {
			t.Errorf("%v workloads still wait for room", got)
		}
	})
}

func TestUnhealthyTimeOutlivesTheReconciler(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		seconds := int32(300)
		w.binding.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &seconds}}}
		w.Make(w.binding)
		w.reports("m1=Healthy")
		stop := w.run()
		w.eventually("m1:2")
		w.reports("m1=Unhealthy")
		w.Advance(4 * time.Minute)
		w.eventually("m1:2")
		stop() // another hub leads
		w.run()
		w.eventually("m1:2")
		w.Advance(time.Minute)
		w.eventually("m2:2 leaves m1")
	})
}

func TestVolumesMoveIfThePolicyAllowsIt(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data"}})
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.eventually("m1:2")
		w.taint("m1", "maintenance")
		w.expectEvent("EvictWorkloadFromClusterFailed", "it has persistent volumes", "ResourceBinding", "Deployment")
		w.eventually("m1:2")
		controllertest.Change(w.Hub, w.policy, func(p *policyv1alpha1.PropagationPolicy) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, wellknown.MoveVolumesAnnotation, "true")
		})
		w.eventually("m2:2 leaves m1")
	})
}

func TestWarningEndsWithItsReason(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.binding.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}
		w.binding.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = coreschedule.AppliedPlacement(
			w.binding.Spec.Placement)
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.eventually("m1:2")
		notNeeded := func() (n int) {
			for _, e := range w.Events() {
				if strings.Contains(e, " EvictionNotNeeded: ") {
					n++
				}
			}
			return n
		}
		w.taint("m1", "maintenance")
		w.expectEvent("EvictWorkloadFromClusterFailed", "no other cluster takes it", "ResourceBinding", "Deployment")
		w.Advance(time.Hour)
		if n := notNeeded(); n != 0 {
			t.Errorf("while it has to leave, %d events say that it has not", n)
		}
		w.back("m1")
		w.expectEvent("EvictionNotNeeded", "Stays in cluster m1, and no longer has to leave it.", "ResourceBinding",
			"Deployment")
		w.Advance(time.Hour)
		if n := notNeeded(); n != 2 {
			t.Errorf("%d events say that it stays, want one each on the binding and the template", n)
		}
	})
}

func TestNoEventSaysThatAWorkloadStaysWhichLeft(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data"}})
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.eventually("m1:2")
		w.taint("m1", "maintenance")
		w.expectEvent("EvictWorkloadFromClusterFailed", "it has persistent volumes", "ResourceBinding", "Deployment")
		controllertest.Change(w.Hub, w.policy, func(p *policyv1alpha1.PropagationPolicy) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, wellknown.MoveVolumesAnnotation, "true")
		})
		w.eventually("m2:2 leaves m1")
		w.reports("m1=Healthy m2=Healthy")
		w.eventually("m2:2")
		w.back("m1")
		w.Advance(time.Hour)
		for _, e := range w.Events() {
			if strings.Contains(e, "EvictionNotNeeded") {
				t.Errorf("an event says %q", e)
			}
		}
	})
}

func TestReplicasMoveWhenTheReleaseReachesTheirStage(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		plan := &fleet.Plan{Release: "web-2", Revision: "R2", From: "R1", At: 1, SameRevision: true,
			Stages: []fleet.PlanStage{{Name: "canary", Clusters: []string{"m2", "m3"}, Part: [2]int64{1, 1}},
				{Name: "production", Clusters: []string{"m1"}, Part: [2]int64{1, 1}}}}
		w.binding.Annotations[fleet.PlanAnnotation] = plan.String()
		w.binding.Annotations[fleet.EffectiveRevisionAnnotation] = plan.Revision
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.eventually("m1:2")
		w.taint("m1", "maintenance")
		w.expectEvent("EvictWorkloadFromClusterFailed", "failover: SameRevision keeps the replicas", "ResourceBinding",
			"Deployment")
		w.eventually("m1:2")
		plan.At = 2
		controllertest.Change(w.Hub, w.binding, func(b *workv1alpha2.ResourceBinding) {
			b.Annotations[fleet.PlanAnnotation] = plan.String()
		})
		w.eventually("m2:2 leaves m1")
	})
}

func TestFailbackReturnsAfterTheWindow(t *testing.T) {
	t.Run("divided", func(t *testing.T) { failsBack(t, false) })
	t.Run("copied", func(t *testing.T) { failsBack(t, true) })
}

// failsBack has a workload leave its first affinity term and return to it. copied is without replicaScheduling.
func failsBack(t *testing.T, copied bool) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		if copied {
			w.binding.Spec.Placement.ReplicaScheduling = nil
		}
		metav1.SetMetaDataAnnotation(&w.policy.ObjectMeta, wellknown.FailbackAfterAnnotation, "10m")
		if err := w.Update(t.Context(), w.policy); err != nil {
			t.Fatal(err)
		}
		w.binding.Spec.Placement.SpreadConstraints = nil
		w.binding.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}},
			{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}}}
		w.binding.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = coreschedule.AppliedPlacement(
			w.binding.Spec.Placement)
		w.Make(w.binding)
		w.reports("m1=Healthy")
		w.run()
		w.eventually("m1:2")
		w.lose("m1")
		w.Advance(5 * time.Minute)
		w.eventually("m2:2 leaves m1")
		if w.binding.Status.SchedulerObservedAffinityName != "second" || w.binding.Generation != 2 {
			t.Errorf("the affinity term is %s after %d writes, want the second after one",
				w.binding.Status.SchedulerObservedAffinityName, w.binding.Generation-1)
		}
		w.reports("m2=Healthy")
		w.eventually("m2:2")
		at := metav1.NewTime(time.Now())
		w.ClusterStatus("m1", func(s *clusterv1alpha1.ClusterStatus) {
			ready := meta.FindStatusCondition(s.Conditions, clusterv1alpha1.ClusterConditionReady)
			ready.Status, ready.LastTransitionTime = metav1.ConditionTrue, at
		})
		w.back("m1")
		w.Advance(9 * time.Minute)
		w.eventually("m2:2")
		w.Advance(time.Minute)
		w.eventually("m1:2 leaves m2")
		w.reports("m1=Healthy m2=Healthy")
		w.eventually("m1:2")
		if w.binding.Status.SchedulerObservedAffinityName != "first" {
			t.Errorf("the affinity term is %s", w.binding.Status.SchedulerObservedAffinityName)
		}
	})
}

func TestSettleTimeStartsWithTheFirstPlan(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		r := newReconciler(nil, Options{Settle: time.Minute})
		membertest.Advance(time.Hour) // the hub was on standby
		for _, want := range []time.Duration{time.Minute, 40 * time.Second} {
			if result, err := r.Reconcile(t.Context(), plan); err != nil || result.RequeueAfter != want {
				t.Errorf("got %v (%v), want to wait for %s", result, err, want)
			}
			membertest.Advance(20 * time.Second)
		}
	})
}

// The second of two evictions has no room any more when it is reserved. Nothing is reported about it.
func TestDroppedEvictionsLeaveNoWarning(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*clusterv1alpha1.Cluster
		for name, cpu := range map[string]string{"m2": "1", "m3": "4"} {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
			w.HasObject(c)
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu)}}
			if err := w.Status().Update(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			planned := c.DeepCopy()
			planned.Status.ResourceSummary.Allocatable[corev1.ResourceCPU] = resource.MustParse("4")
			all = append(all, planned)
		}
		var fleet *capacity.Fleet
		w.Run(func(ctx context.Context, mgr ctrl.Manager) (err error) {
			fleet, err = capacity.NewFleet(ctx, mgr.GetCache())
			return err
		})
		if err := fleet.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		room := fleet.PlanRoom(coreschedule.NewSnapshot(all))
		var plan failover.Plan
		for _, to := range []string{"m3", "m2", "m3"} {
			b := w.binding.DeepCopy()
			b.Name = fmt.Sprint("b", len(plan.Evictions))
			b.Spec.ReplicaRequirements.ResourceRequest = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			e := failover.Eviction{Binding: b, Placement: []workv1alpha2.TargetCluster{{Name: to, Replicas: 2}}}
			room.Free(b)(to)
			room.Take(b, e.Placement)
			plan.Evictions = append(plan.Evictions, e)
			plan.Waiting = append(plan.Waiting, failover.Waiting{Code: failover.NothingFits,
				Binding: types.NamespacedName{Namespace: b.Namespace, Name: b.Name}})
		}
		plan.Waiting = append(plan.Waiting, failover.Waiting{Binding: types.NamespacedName{Namespace: "shop", Name: "stays"}})
		now := time.Now()
		reserve(room, &plan, now)
		var waits []string
		for _, w := range plan.Waiting {
			waits = append(waits, w.Binding.Name)
		}
		if got := strings.Join(waits, " "); len(plan.Evictions) != 1 || got != "b0 stays" || !plan.Next.Equal(now) {
			t.Errorf("%d evictions are left, %s wait, and the next plan is at %s", len(plan.Evictions), got, plan.Next)
		}
	})
}

func TestPlanUsesPendingWrites(t *testing.T) {
	cached, written := &workv1alpha2.ResourceBinding{}, &workv1alpha2.ResourceBinding{}
	cached.ResourceVersion, written.ResourceVersion = "1", "2"
	var r reconciler
	r.pending.Add(types.NamespacedName{}, written)
	for _, want := range []string{"2", "3"} {
		if got := r.current([]workv1alpha2.Binding{cached}); got[0].GetResourceVersion() != want {
			t.Errorf("the plan is made of version %s, want %s", got[0].GetResourceVersion(), want)
		}
		cached.ResourceVersion = "3" // the cache catches up
	}
	if r.pending.Len() != 0 {
		t.Error("a write that the cache shows is kept")
	}
	r.pending.Add(types.NamespacedName{}, written)
	if r.current(nil); r.pending.Len() != 0 {
		t.Error("a write of a binding that is gone is kept")
	}
}

// A plan by a binding as it was before the write would evict it again.
func TestPendingWriteStaysUntilTheCacheShowsIt(t *testing.T) {
	cached, written := &workv1alpha2.ResourceBinding{}, &workv1alpha2.ResourceBinding{}
	cached.ResourceVersion, written.ResourceVersion = "1", "2"
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	r := newReconciler(nil, Options{})
	r.pending.Clock = clock
	r.pending.Add(types.NamespacedName{}, written)
	clock.SetTime(clock.Now().Add(time.Hour))
	if got := r.current([]workv1alpha2.Binding{cached}); got[0].GetResourceVersion() != "2" {
		t.Errorf("the plan is made of version %s, want 2", got[0].GetResourceVersion())
	}
}

func TestAClusterThatBecomesLostWithAnotherReasonMakesAPlan(t *testing.T) {
	with := func(reason string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoExecute,
			TimeAdded: new(metav1.Now())}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady,
			Status: metav1.ConditionFalse, Reason: reason}}
		return c
	}
	another, unread, down := with(clusterv1alpha1.ReasonHeldByAnotherHub),
		with(clusterv1alpha1.ReasonStatusCollectionFailed), with("ClusterNotReachable")
	if readiness(another) == readiness(down) || readiness(unread) == readiness(down) {
		t.Error("a cluster that is lost now looks as before")
	}
	if readiness(another) != readiness(unread) {
		t.Error("clusters that are not lost differ by the reason")
	}
}
