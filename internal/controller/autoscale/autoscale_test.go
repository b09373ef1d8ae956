package autoscale

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/template"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// world is a hub with autoscaling and the workload web, which has two replicas in each of the members a and b. The
// members serve metrics.
type world struct {
	*controllertest.Hub
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	members map[string]*cluster
	kind    membertest.Kind
	stop    func()
	// measures lets the hub know nodes and pods of its members from its next start.
	measures bool
	// connections are the hub's clients of its members.
	connections *member.Members
}

// cluster is a member that serves metrics.
type cluster struct {
	*membertest.Server
	clock *clocktesting.FakePassiveClock

	mu     sync.Mutex
	used   map[string]string // CPU by pod; nil: no metrics-server
	rounds int               // how often it was asked
	custom map[string]string // values by the end of the address
}

func (c *cluster) customValue(path string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for end, value := range c.custom {
		if strings.HasPrefix(path, "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/") && strings.HasSuffix(path, end) {
			return value
		}
	}
	return ""
}

func newWorld(t *testing.T, kind membertest.Kind) *world {
	return newWorldBound(t, kind, names.Binding(kind.Kind, "web"))
}

// newWorldBound returns a world whose workload has a binding of that name, and whose hub has other objects, too.
func newWorldBound(t *testing.T, kind membertest.Kind, binding string, others ...client.Object) *world {
	w := &world{Hub: controllertest.New(t), t: t,
		clock:   clocktesting.NewFakePassiveClock(time.Date(2027, 1, 11, 7, 59, 0, 0, time.UTC)),
		members: map[string]*cluster{}, kind: kind}
	var targets []workv1alpha2.TargetCluster
	for _, name := range []string{"a", "b"} {
		c := &cluster{Server: w.Join(name, kind), clock: w.clock, used: map[string]string{}}
		c.Server.Behave(c.metrics)
		w.members[name] = c
		w.use(name, "50m", "50m")
		targets = append(targets, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(4), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}}}}
	u.SetGroupVersionKind(kind.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	w.Make(u)
	apiVersion, name := kind.ToAPIVersionAndKind()
	for _, other := range others {
		w.Make(other)
	}
	w.Make(&workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: binding},
		Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: name,
			Namespace: "shop", Name: "web", UID: u.GetUID()},
			Replicas: 4, Clusters: targets,
			Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}}})
	w.run()
	return w
}

func (w *world) run() {
	w.t.Helper()
	w.stop = w.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		templates := template.New(dynamic.NewForConfigOrDie(w.Config), discovery.NewDiscoveryClientForConfigOrDie(w.Config))
		members := member.New(member.Options{Clusters: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Dial: membertest.Dial})
		w.connections = members
		if err := mgr.Add(templates); err != nil {
			return err
		}
		if err := mgr.Add(members); err != nil {
			return err
		}
		var fleet *capacity.Fleet
		if w.measures {
			var err error
			if fleet, err = capacity.NewFleet(ctx, mgr.GetCache()); err != nil {
				return err
			}
			if err = fleet.Measure(ctx, mgr.GetCache(), members); err != nil {
				return err
			}
		}
		return Setup(ctx, mgr, Options{Members: members, Fleet: fleet, Templates: templates,
			Interpreter: interpret.New(builtin.Tier()), Interval: 20 * time.Millisecond, Clock: w.clock})
	})
}

// metrics serves metrics.k8s.io and the test's values for custom.metrics.k8s.io.
func (c *cluster) metrics(rw http.ResponseWriter, r *http.Request) bool {
	if value := c.customValue(r.URL.Path); value != "" {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"items": [{"describedObject": {"name": "web-0"}, "value": %q}, {"describedObject": {"name": "web-1"}, "value": %q}]}`, value, value)
		return true
	}
	if !strings.HasPrefix(r.URL.Path, "/apis/metrics.k8s.io/") {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rounds++
	if c.used == nil {
		http.NotFound(rw, r)
		return true
	}
	items := []any{}
	for pod, cpu := range c.used {
		items = append(items, map[string]any{"metadata": map[string]any{"name": pod},
			"timestamp": metav1.NewTime(c.clock.Now()), "window": "1s",
			"containers": []any{map[string]any{"name": "app", "usage": map[string]any{"cpu": cpu}}}})
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]any{"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1",
		"items": items})
	return true
}

// use sets the number of pods in a cluster and the CPU usage of each. Each requests 100m.
func (w *world) use(name string, cpu ...string) {
	c := w.members[name]
	c.mu.Lock()
	defer c.mu.Unlock()
	for pod := range c.used {
		c.Remove(membertest.Pod, "shop", pod)
	}
	c.used = map[string]string{}
	if c.Object(membertest.Namespace, "", "shop") == nil {
		c.Put(&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	}
	started := metav1.NewTime(w.clock.Now().Add(-time.Hour))
	for i, used := range cpu {
		pod := fmt.Sprint("web-", i)
		c.Put(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod, Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(
					"100m")}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started,
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
					LastTransitionTime: started}}}})
		c.used[pod] = used
	}
}

// looks waits for enough evaluations of a cluster that pending actions are done.
func (w *world) looks(name string) {
	w.t.Helper()
	c := w.members[name]
	asked := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.rounds
	}
	enough := asked() + 4
	w.Eventually("cluster "+name+" is asked", func() string {
		if n := asked(); n < enough {
			return fmt.Sprintf("%d times, want %d", n, enough)
		}
		return ""
	})
}

// scaler returns a FederatedHPA for web with a target of 50% CPU.
func (w *world) scaler(name string) *autoscalingv1alpha1.FederatedHPA {
	half, two := int32(50), int32(2)
	apiVersion, kind := w.kind.ToAPIVersionAndKind()
	return &autoscalingv1alpha1.FederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: autoscalingv1alpha1.FederatedHPASpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: "web"},
			MinReplicas:    &two, MaxReplicas: 12,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &half}}}}}}
}

func (w *world) replicas() int64 {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.kind.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	if !w.HasObject(u) {
		return -1
	}
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	return n
}

func (w *world) becomes(want int64) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("the workload has %d replicas", want), func() string {
		if n := w.replicas(); n != want {
			return fmt.Sprintf("it has %d; %s", n, w.conditions("web"))
		}
		return ""
	})
}

// conditions returns the conditions of a FederatedHPA as lines of "Type=Status/Reason: message".
func (w *world) conditions(name string) string {
	f := w.scaler(name)
	if !w.HasObject(f) {
		return "there is no such FederatedHPA"
	}
	var out []string
	for _, c := range f.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, "\n")
}

func (w *world) expectConditions(name string, want ...string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("FederatedHPA %s has the conditions %q", name, want), func() string {
		got := w.conditions(name)
		for _, text := range want {
			if !strings.Contains(got, text) {
				return "got " + got
			}
		}
		return ""
	})
}

func (w *world) expectEvent(want string) {
	w.t.Helper()
	w.Eventually("event "+want, func() string {
		if all := w.Events(); !slices.ContainsFunc(all, func(e string) bool { return strings.HasPrefix(e, want) }) {
			return fmt.Sprintf("events are %q", all)
		}
		return ""
	})
}

func TestReplicasFollowLoadOfAllClusters(t *testing.T) {
	for _, kind := range []membertest.Kind{controllertest.Deployment, controllertest.CloneSet,
		controllertest.StatefulSet} {
		t.Run(kind.Group+" "+kind.Kind, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, kind)
				w.Make(w.scaler("web"))
				w.expectConditions("web", "AbleToScale=True/ReadyForNewScale", "ScalingActive=True/ValidMetricFound",
					"ScalingLimited=False/DesiredWithinRange")
				w.looks("a")
				if n := w.replicas(); n != 4 {
					t.Fatalf("on target it has %d replicas", n)
				}
				w.Quiet()
				w.looks("b")
				if wrote := w.Quiet(); len(wrote) > 0 {
					t.Errorf("nothing changed, and it writes %v", wrote)
				}

				w.use("a", "100m", "100m")
				w.becomes(6)
				w.expectEvent("FederatedHPA SuccessfulRescale: New size: 6; reason: cpu of pods above target")
				f := w.scaler("web")
				w.Eventually("status is updated", func() string {
					if w.HasObject(f); f.Status.LastScaleTime == nil || f.Status.CurrentReplicas != 6 ||
						f.Status.DesiredReplicas != 6 || len(f.Status.CurrentMetrics) != 1 {
						return fmt.Sprintf("%+v", f.Status)
					}
					return ""
				})
				if *f.Status.CurrentMetrics[0].Resource.Current.AverageUtilization != 75 ||
					*f.Status.ObservedGeneration != f.Generation {
					t.Errorf("the status is %+v", f.Status)
				}

				// Down it goes when five minutes have been idle.
				w.use("a", "10m", "10m", "10m")
				w.use("b", "10m", "10m", "10m")
				w.expectConditions("web", "AbleToScale=True/ScaleDownStabilized")
				w.clock.SetTime(w.clock.Now().Add(4 * time.Minute))
				w.looks("a")
				if n := w.replicas(); n != 6 {
					t.Errorf("after four minutes it has %d replicas", n)
				}
				w.clock.SetTime(w.clock.Now().Add(61 * time.Second))
				w.becomes(2)
				w.expectEvent("FederatedHPA SuccessfulRescale: New size: 2; reason: All metrics below target")
			})
		})
	}
}

func TestCustomMetricsCount(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		for _, c := range w.members {
			c.Serve(membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "custom.metrics.k8s.io", Version: "v1beta2",
				Kind: "MetricValueList"}, Plural: "values", Namespaced: true})
		}
		custom := func(end, value string) {
			for _, c := range w.members {
				c.mu.Lock()
				c.custom = map[string]string{"/requests": "10", "/deployments.apps/web/hits": "20", end: value}
				c.mu.Unlock()
			}
		}
		custom("/requests", "10")
		ten := resource.MustParse("10")
		f := w.scaler("web")
		f.Spec.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.PodsMetricSourceType,
			Pods: &autoscalingv2.PodsMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "requests"},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &ten}}},
			{Type: autoscalingv2.ObjectMetricSourceType,
				Object: &autoscalingv2.ObjectMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "hits"},
					DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
					Target:          autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &ten}}}}
		w.Make(f)
		w.expectConditions("web", "ScalingActive=True/ValidMetricFound", "ScalingLimited=False/DesiredWithinRange")
		if n := w.replicas(); n != 4 {
			t.Fatalf("on target it has %d replicas", n)
		}
		custom("/requests", "15")
		w.becomes(6)
		w.expectEvent("FederatedHPA SuccessfulRescale: New size: 6; reason: metric requests of pods above target")
		// The hits of both clusters count together.
		custom("/deployments.apps/web/hits", "35")
		w.becomes(7)
		w.expectEvent("FederatedHPA SuccessfulRescale: New size: 7; reason: metric hits of Deployment web above target")
	})
}

func TestClusterWithoutAnswerIsReportedAndRemovesNothing(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		f := w.scaler("web")
		zero := int32(0)
		f.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: &zero}}
		w.Make(f)
		w.expectConditions("web", "ScalingActive=True")
		w.members["b"].Down(true)
		w.expectConditions("web", "MetricsComplete=False/ClustersUnknown", "cluster b: ")
		w.use("a", "20m", "20m")
		w.looks("a")
		if n := w.replicas(); n != 4 {
			t.Errorf("a is idle and b silent, and the workload has %d replicas", n)
		}
		w.use("a", "150m", "150m")
		w.becomes(6)
		w.use("a", "20m", "20m")
		w.use("b", "20m", "20m")
		w.members["b"].Down(false)
		w.becomes(2)
		w.Eventually("all answer, and nothing is said of that", func() string {
			if got := w.conditions("web"); strings.Contains(got, "MetricsComplete") {
				return "got " + got
			}
			return ""
		})
	})
}

// moves moves all four replicas from b to a. kept is suppressDeletion of the eviction task.
func (w *world) moves(kept *bool) {
	controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 4}}
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "b", SuppressDeletion: kept}}
	})
}

func TestNoScaleDownWhileLeavingClusterWithoutAnswer(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		f := w.scaler("web")
		zero := int32(0)
		f.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
			StabilizationWindowSeconds: &zero}}
		w.Make(f)
		w.expectConditions("web", "ScalingActive=True")
		w.members["b"].Down(true)
		w.moves(nil)
		w.use("a", "20m", "20m", "20m", "20m")
		w.looks("a")
		w.expectConditions("web", "MetricsComplete=False/ClustersUnknown", "cluster b: ")
		if n := w.replicas(); n != 4 {
			t.Errorf("a is idle, b is silent and may still serve, and the workload has %d replicas", n)
		}
		// A copy that a user keeps may be there for ever.
		w.moves(new(true))
		w.becomes(2)
	})
}

func TestPodsInFormerClusterCountWhileTheyRun(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.moves(nil)
		w.use("a", "50m", "50m", "50m", "50m")
		w.use("b", "200m", "200m")
		w.Make(w.scaler("web"))
		w.becomes(8) // 600m of load ask for 12, of which behavior allows 8 at first
	})
}

func TestClusterWithoutMetricsIsReported(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		set := func(c *cluster) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.used = nil
		}
		set(w.members["b"])
		w.Make(w.scaler("web"))
		w.expectConditions("web", "MetricsComplete=False/ClustersUnknown",
			"cluster b: metrics.k8s.io: the API is not served: install metrics-server there", "ScalingActive=True")
		set(w.members["a"])
		w.expectConditions("web", "ScalingActive=False/FailedGetResourceMetric",
			"no cluster reports this metric: cluster a: metrics.k8s.io")
		w.expectEvent("FederatedHPA FailedComputeMetricsReplicas")
		if n := w.replicas(); n != 4 {
			t.Errorf("without metrics it has %d replicas", n)
		}
		w.Quiet()
		w.looks("a")
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("the trouble is the same, and it writes %v", wrote)
		}
	})
}

func TestUnscalableTargetHasReason(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		none := w.scaler("none")
		none.Spec.ScaleTargetRef.Name = "missing"
		w.Make(none)
		w.expectConditions("none", "AbleToScale=False/FailedGetScaleTargetRef: there is no Deployment.apps missing in namespace shop on the hub")

		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1)}}}
		u.SetGroupVersionKind(controllertest.Deployment.GroupVersionKind)
		u.SetNamespace("shop")
		u.SetName("missing")
		w.Make(u)
		w.expectConditions("none", "AbleToScale=False/FailedGetBinding: no policy propagates Deployment missing")

		spread := w.scaler("spread")
		spread.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "policy/v1",
			Kind: "PodDisruptionBudget", Name: "budget"}
		b := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		b.SetGroupVersionKind(controllertest.PodDisruptionBudget.GroupVersionKind)
		b.SetNamespace("shop")
		b.SetName("budget")
		w.Make(b)
		w.Make(spread)
		w.expectConditions("spread", "AbleToScale=False/FailedGetScale: a PodDisruptionBudget.policy has no replicas to scale")
	})
}

func TestAFederatedHPAWarnsOnlyOfWhatAUserMustChange(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1)}}}
		u.SetGroupVersionKind(controllertest.Deployment.GroupVersionKind)
		u.SetNamespace("shop")
		u.SetName("new")
		u.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
		propagate.Claim(u, p)
		w.Make(u)
		f := w.scaler("first")
		f.Spec.ScaleTargetRef.Name = "new"
		w.Make(f)
		w.expectConditions("first", "AbleToScale=False/FailedGetBinding: Deployment new has no binding yet, though a policy has claimed it")
		b := w.binding()
		w.HasObject(b)
		b.ResourceVersion, b.UID, b.Name = "", "", "new-deployment"
		b.Spec.Resource.Name, b.Spec.Resource.UID, b.Spec.Clusters = "new", u.GetUID(), nil
		w.Make(b)
		w.expectConditions("first", "AbleToScale=False/FailedGetTargetClusters: Deployment new is not scheduled to any cluster")
		w.Quiet()
		if all := w.Events(); len(all) > 0 {
			t.Errorf("events before the first placement: %q", all)
		}
		w.clock.SetTime(w.clock.Now().Add(2 * time.Minute))
		w.expectEvent("FederatedHPA FailedGetTargetClusters: Deployment new is not scheduled to any cluster")
		b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse,
			Reason: workv1alpha2.ReasonNoClusterFit, LastTransitionTime: metav1.Now()}}
		if err := w.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		w.expectEvent("FederatedHPA FailedGetTargetClusters: Deployment new is not scheduled to any cluster")
	})
}

func TestImpossibleReplicasAreTriedOnce(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.Hub.Server.Serve(membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "batch", Version: "v1",
			Kind: "Job"}, Plural: "jobs", Namespaced: true})
		job := w.Hub.Server.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job",
			"metadata": map[string]any{"namespace": "shop", "name": "sums"},
			"spec": map[string]any{"parallelism": int64(2), "completions": int64(2),
				"selector": map[string]any{"matchLabels": map[string]any{"app": "sums"}}}}})
		w.Make(&workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: names.Binding("Job", "sums")},
			Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "batch/v1", Kind: "Job",
				Namespace: "shop", Name: "sums", UID: job.GetUID()},
				Replicas: 2, Clusters: []workv1alpha2.TargetCluster{{Name: "a", Replicas: 2}},
				Placement: &policyv1alpha1.Placement{}}})
		f := w.scaler("sums")
		three := int32(3)
		f.Spec.ScaleTargetRef, f.Spec.MinReplicas = autoscalingv2.CrossVersionObjectReference{APIVersion: "batch/v1",
			Kind: "Job", Name: "sums"}, &three
		w.Make(f)
		w.expectConditions("sums", "AbleToScale=False/FailedUpdateScale: the replicas of the workload cannot be set: the replicas cannot be set to 3: they are still 2")
		w.Quiet()
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.looks("a")
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("nothing changed, and it writes %v", wrote)
		}
	})
}

func TestOldestOfTwoAutoscalersScales(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.Make(w.scaler("web"))
		second := w.scaler("zweb")
		second.Spec.MaxReplicas = 100
		w.Make(second)
		w.expectConditions("zweb", "ScalingActive=False/AmbiguousSelector: FederatedHPA web, which is older, also scales Deployment web: delete one of them")
		w.expectConditions("web", "ScalingActive=True")
		w.Gone(w.scaler("web"))
		w.expectConditions("zweb", "ScalingActive=True")
	})
}

func TestAutoscalerFollowsABindingWithANameApart(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		// The StatefulSet of Kubernetes has the same name, so its binding has Karmada's name. It is in a alone.
		other := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: names.Binding("StatefulSet", "web")},
			Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1",
				Kind: "StatefulSet", Namespace: "shop", Name: "web"}, Replicas: 1,
				Clusters: []workv1alpha2.TargetCluster{{Name: "a", Replicas: 1}}}}
		kind := controllertest.StatefulSet
		apart := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop",
			Name: names.BindingApart(kind.GroupKind(), "web")}}
		w := newWorldBound(t, kind, apart.Name, other)
		w.use("b", "100m", "100m")
		w.Make(w.scaler("web"))
		w.becomes(6) // 75% of the requests in both clusters, and 50% in a alone

		controllertest.Change(w.Hub, apart, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Replicas = 6
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 3}, {Name: "b", Replicas: 3}}
		})
		controllertest.Change(w.Hub, w.scaler("web"), func(f *autoscalingv1alpha1.FederatedHPA) {
			f.Annotations = map[string]string{wellknown.AutoscalingModeAnnotation: autoscalingv1alpha1.ModeDistributed}
		})
		w.bounds("a 1-6, b 1-6")
		w.Eventually("the binding of the workload is scaled by it", func() string {
			if w.HasObject(apart); apart.Annotations[wellknown.ScaledByAnnotation] != "web" {
				return fmt.Sprint(apart.Annotations)
			}
			return ""
		})
		w.Quiet()
		if w.HasObject(other); len(other.Annotations) > 0 {
			t.Errorf("the binding of the other workload has the annotations %v", other.Annotations)
		}
	})
}
