package autoscale

import (
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
)

var now = time.Unix(1_800_000_000, 0)

// cluster parses the CPU usage of pods that request 100m each, "100 50 ? new -": ? has no metrics, new is not ready,
// - is terminating. "silent:3" is a cluster without data that has three replicas. "left" means that the workload is
// leaving the cluster.
func cluster(name, pods string) Cluster {
	c := Cluster{Name: name, Readings: []Reading{{Pods: map[string]Value{}}}}
	pods, c.Left = strings.CutPrefix(pods, "left ")
	if n, silent := strings.CutPrefix(pods, "silent:"); silent {
		_, _ = fmt.Sscan(n, &c.Replicas)
		c.Unknown = "no answer in time"
		return c
	}
	for i, use := range strings.Fields(pods) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}}}
		started, ready := metav1.NewTime(now.Add(-time.Hour)), corev1.ConditionTrue
		if use == "new" {
			started, ready = metav1.NewTime(now.Add(-time.Second)), corev1.ConditionFalse
		}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: started}}}
		c.Replicas++
		switch use {
		case "?":
		case "-":
			pod.DeletionTimestamp = &started
			c.Replicas--
		case "new":
			c.Readings[0].Pods[pod.Name] = Value{Milli: 1000, At: now, Window: time.Second}
		default:
			var m int64
			_, _ = fmt.Sscan(use, &m)
			c.Readings[0].Pods[pod.Name] = Value{Milli: m, At: now, Window: time.Second}
		}
		c.Pods = append(c.Pods, pod)
	}
	return c
}

func clusters(all map[string]string) []Cluster {
	var out []Cluster
	for name, pods := range all {
		out = append(out, cluster(name, pods))
	}
	slices.SortFunc(out, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// spec has a target of 50% CPU utilization and 1 to 20 replicas.
func spec() *autoscalingv1alpha1.FederatedHPASpec {
	half, one := int32(50), int32(1)
	return &autoscalingv1alpha1.FederatedHPASpec{MinReplicas: &one, MaxReplicas: 20,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &half}}}}}
}

// atOnce disables the downscale stabilization window.
func atOnce(s *autoscalingv1alpha1.FederatedHPASpec) *autoscalingv1alpha1.FederatedHPASpec {
	zero := int32(0)
	s.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: &zero}}
	return s
}

func condition(d Decision, kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	for _, c := range d.Conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

func TestLoadOfAllClustersDecides(t *testing.T) {
	for _, c := range []struct {
		name     string
		current  int32
		each     bool
		clusters map[string]string
		want     int32
	}{
		{"on target", 4, false, map[string]string{"a": "50 50", "b": "50 50"}, 4},
		{"within the tolerance", 4, false, map[string]string{"a": "54 54", "b": "54 54"}, 4},
		{"twice the target", 4, false, map[string]string{"a": "100 100", "b": "100 100"}, 8},
		{"one cluster is busy and the other idle", 4, false, map[string]string{"a": "100 100", "b": "0 0"}, 4},
		{"a tenth more than the tolerance, rounded up", 4, false, map[string]string{"a": "60 60", "b": "60 60"}, 5},
		{"half the target", 4, false, map[string]string{"a": "25 25", "b": "25 25"}, 2},
		{"never below the minimum", 4, false, map[string]string{"a": "0 0", "b": "0 0"}, 1},
		{"each cluster has all replicas: twice the load of all is twice the template", 2, true,
			map[string]string{"a": "100 100", "b": "100 100"}, 4},
		{"each cluster has all replicas: rounded up", 2, true, map[string]string{"a": "60 60", "b": "60 70"}, 3},
		{"pods that go do not count", 2, false, map[string]string{"a": "100 100 - -"}, 4},
		{"pods that are not ready are idle when more are asked for", 4, false,
			map[string]string{"a": "100 100", "b": "new new"}, 4},
		{"pods that are not ready are left out when fewer are", 4, false, map[string]string{"a": "20 20", "b": "new new"}, 1},
		{"pods without metrics are idle when more are asked for", 4, false, map[string]string{"a": "150 150", "b": "? ?"}, 6},
		{"and busy when fewer are", 4, false, map[string]string{"a": "10 10", "b": "? ?"}, 4},
		{"a silent cluster holds no scale up", 4, false, map[string]string{"a": "150 150", "b": "silent:2"}, 6},
		{"a silent cluster takes nothing away", 4, false, map[string]string{"a": "20 20", "b": "silent:2"}, 4},
		{"a silent cluster of one in ten lets idle ones go", 10, false,
			map[string]string{"a": "10 10 10 10 10 10 10 10 10", "b": "silent:1"}, 4},
		{"a silent cluster that it leaves takes nothing away", 4, false,
			map[string]string{"a": "20 20 20 20", "b": "left silent:0"}, 4},
		{"a silent cluster that it leaves holds no scale up", 4, false,
			map[string]string{"a": "100 100 100 100", "b": "left silent:0"}, 8},
		{"a silent cluster that it leaves is no copy", 2, true, map[string]string{"a": "100 100", "b": "left silent:0"}, 4},
		{"the rest of a silent cluster that it leaves counts as busy", 4, false,
			map[string]string{"a": "20 20 20", "b": "left silent:1"}, 4},
		{"pods in a cluster that it leaves serve", 4, false, map[string]string{"a": "33 33 33 33", "b": "left 33 33"}, 4},
		{"and let idle ones go", 4, false, map[string]string{"a": "10 10 10 10", "b": "left 10 10"}, 2},
		{"there are more than the maximum", 30, false, map[string]string{"a": "50"}, 20},
	} {
		d := Decide(Input{Spec: atOnce(spec()), Current: c.current, Each: c.each, Clusters: clusters(c.clusters), Now: now})
		if d.Desired != c.want {
			t.Errorf("%s: %d replicas become %d, want %d; %v %v", c.name, c.current, d.Desired, c.want, d.Conditions, d.Failure)
		}
	}
}

func TestHugeMetricValuesDoNotOverflow(t *testing.T) {
	fleet := func(value int64, request string) []Cluster {
		all := clusters(map[string]string{"a": "0 0", "b": "0 0"})
		for i := range all {
			for p := range all[i].Pods {
				pod := &all[i].Pods[p]
				if request != "" {
					pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(request)
				}
				all[i].Readings[0].Pods[pod.Name] = Value{Milli: value, At: now, Window: time.Second}
			}
			all[i].Readings[0].Object = value
		}
		return all
	}
	value := resource.MustParse("10")
	average := spec().Metrics[0].DeepCopy()
	average.Resource.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &value}
	object := autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType,
		Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Ingress", Name: "web"},
			Metric:          autoscalingv2.MetricIdentifier{Name: "hits"},
			Target:          autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &value}}}
	for _, c := range []struct {
		name    string
		metric  autoscalingv2.MetricSpec
		value   int64
		request string
		want    int32
	}{
		{"a share of a use without bounds", spec().Metrics[0], math.MaxInt64, "", 8},
		{"a share of a use and a request without bounds", spec().Metrics[0], math.MaxInt64, "9E", 8},
		{"a share of a request below 0", spec().Metrics[0], 100, "-100m", 4}, // no percentage
		{"a use below 0", spec().Metrics[0], math.MinInt64, "", 1},
		{"an average without bounds", *average, math.MaxInt64, "", 8},
		{"an object without bounds", object, math.MaxInt64, "", 8},
		{"an object below 0", object, math.MinInt64, "", 1},
		{"a metric without its source", autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType}, 1, "", 4},
	} {
		s := atOnce(spec())
		s.Metrics = []autoscalingv2.MetricSpec{c.metric}
		// The policies let four become eight.
		if d := Decide(Input{Spec: s, Current: 4, Clusters: fleet(c.value, c.request), Now: now}); d.Desired != c.want {
			t.Errorf("%s: 4 replicas become %d, want %d; %v", c.name, d.Desired, c.want, d.Conditions)
		}
	}
	if got := Milli(resource.MustParse("9E")); got != math.MaxInt64 {
		t.Errorf("9E in thousandths is %d", got)
	}
	// Changes without bounds add up, too.
	history := History{}.Scaled(1, math.MaxInt32, now).Scaled(1, math.MaxInt32, now)
	if got := sum(history.ups, now.Add(-time.Minute)); got != 2*(math.MaxInt32-1) {
		t.Errorf("they make %d", got)
	}
}

func TestReplicasWithoutDataUseConstantMemory(t *testing.T) {
	const silent = 3_000_000
	s := atOnce(spec())
	s.MaxReplicas = silent + 20
	in := Input{Spec: s, Current: silent + 2,
		Clusters: clusters(map[string]string{"a": "20 20", "b": fmt.Sprint("silent:", silent)}), Now: now}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d := Decide(in)
	runtime.ReadMemStats(&after)
	if d.Desired != silent+2 {
		t.Errorf("a is idle and b silent, and %d replicas become %d", silent+2, d.Desired)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("to decide on %d replicas took %d bytes", silent, took)
	}
}

func TestMissingMetricsAreReportedPerCluster(t *testing.T) {
	all := clusters(map[string]string{"a": "50 50", "b": "silent:2", "c": "?"})
	all[2].Readings[0] = Reading{Unknown: "metrics.k8s.io: the API is not served: install metrics-server there"}
	d := Decide(Input{Spec: spec(), Current: 5, Clusters: all, Now: now})
	got := condition(d, autoscalingv1alpha1.MetricsComplete)
	for _, want := range []string{"False ClustersUnknown", "cluster b: no answer in time",
		"cluster c: metrics.k8s.io: the API is not served"} {
		if !strings.Contains(got, want) {
			t.Errorf("the condition is %q, want it to contain %q", got, want)
		}
	}
	if strings.Contains(got, "cluster a") {
		t.Errorf("a has data, but the condition is %q", got)
	}
}

func TestNoMetricsMeansNoChange(t *testing.T) {
	noRequest := clusters(map[string]string{"a": "50"})
	noRequest[0].Pods[0].Spec.Containers[0].Resources.Requests = nil
	for name, c := range map[string]struct {
		clusters []Cluster
		want     string
	}{
		"no cluster answers": {clusters(map[string]string{"a": "silent:2", "b": "silent:1"}),
			"False FailedGetResourceMetric: the desired replica count is unknown: cpu of pods: no cluster reports this metric: cluster a: no answer in time"},
		"no pods":            {clusters(map[string]string{"a": ""}), "there are no pods"},
		"pods without value": {clusters(map[string]string{"a": "? ?"}), "no ready pod has a value yet"},
		"no request":         {noRequest, "container app of the pods has no cpu request"},
	} {
		d := Decide(Input{Spec: spec(), Current: 3, Clusters: c.clusters, Now: now})
		if got := condition(d, autoscalingv2.ScalingActive); d.Desired != 3 || d.Failure == nil ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s: %d replicas, condition %q, want %q", name, d.Desired, got, c.want)
		}
	}
	d := Decide(Input{Spec: spec(), Current: 0, Clusters: clusters(map[string]string{"a": "90"}), Now: now})
	if got := condition(d, autoscalingv2.ScalingActive); d.Desired != 0 || !strings.Contains(got, "ScalingDisabled") {
		t.Errorf("a workload of no replicas becomes %d: %s", d.Desired, got)
	}
}

func TestHighestMetricWinsAndMissingBlocksScaleDown(t *testing.T) {
	s := atOnce(spec())
	value := resource.MustParse("10")
	s.Metrics = append(s.Metrics, autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType,
		Pods: &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "requests"},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &value}}},
		autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Ingress", Name: "web"},
			Metric:          autoscalingv2.MetricIdentifier{Name: "hits"},
			Target:          autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &value}}})
	decide := func(cpu string, requests, hits int64, change func(*Reading)) Decision {
		all := clusters(map[string]string{"a": cpu, "b": cpu})
		for i := range all {
			r := Reading{Pods: map[string]Value{}}
			for _, p := range all[i].Pods {
				r.Pods[p.Name] = Value{Milli: requests * 1000, At: now}
			}
			object := Reading{Object: hits * 1000}
			if change != nil && i == 0 {
				change(&object)
			}
			all[i].Readings = append(all[i].Readings, r, object)
		}
		return Decide(Input{Spec: s, Current: 4, Clusters: all, Now: now})
	}
	for name, c := range map[string]struct {
		d    Decision
		want int32
		by   string
	}{
		"all on target": {decide("50 50", 10, 20, nil), 4, ""},
		"CPU":           {decide("100 100", 10, 20, nil), 8, "cpu of pods above target"},
		"requests":      {decide("50 50", 15, 20, nil), 6, "metric requests of pods above target"},
		"hits of both":  {decide("50 50", 10, 35, nil), 7, "metric hits of Ingress web above target"},
		"all below":     {decide("25 25", 5, 10, nil), 2, "All metrics below target"},
		"one has no object": {decide("25 25", 5, 70, func(r *Reading) { *r = Reading{Absent: "there is no Ingress web"} }),
			7, "metric hits of Ingress web above target"},
		"and all go down": {decide("25 25", 5, 10, func(r *Reading) { *r = Reading{Absent: "there is no Ingress web"} }),
			2, "All metrics below target"},
		"a metric is silent": {decide("25 25", 5, 10, func(r *Reading) { *r = Reading{Unknown: "no answer"} }), 4, ""},
	} {
		if c.d.Desired != c.want || c.d.Reason != c.by {
			t.Errorf("%s: %d because %q, want %d because %q", name, c.d.Desired, c.d.Reason, c.want, c.by)
		}
	}
}

func TestContainerResourceCountsOneContainer(t *testing.T) {
	percent := int32(50)
	m := autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType,
		ContainerResource: &autoscalingv2.ContainerResourceMetricSource{Name: corev1.ResourceCPU,
			Container: "app", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType,
				AverageUtilization: &percent}}}
	used := func(m string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(m)}
	}
	usage := []Usage{{Pod: "a-0", At: now, Containers: map[string]corev1.ResourceList{"app": used("100m"),
		"proxy": used("1")}}, {Pod: "a-1", At: now, Containers: map[string]corev1.ResourceList{"proxy": used("1")}}}
	all := clusters(map[string]string{"a": "0 0"})
	all[0].Readings = []Reading{Read(m, usage)}
	for i := range all[0].Pods {
		all[0].Pods[i].Spec.Containers = append(all[0].Pods[i].Spec.Containers, corev1.Container{Name: "proxy"})
	}
	s := spec()
	s.Metrics = []autoscalingv2.MetricSpec{m}
	// One at 100 %, one not known and taken as idle: 50 %.
	if d := Decide(Input{Spec: s, Current: 2, Clusters: all, Now: now}); d.Desired != 2 || d.Failure != nil {
		t.Errorf("2 replicas become %d: %v", d.Desired, d.Failure)
	}
	s.Metrics = []autoscalingv2.MetricSpec{spec().Metrics[0]}
	all[0].Readings = []Reading{Read(s.Metrics[0], usage[:1])}
	if got := all[0].Readings[0].Pods["a-0"].Milli; got != 1100 {
		t.Errorf("the pod uses %dm, want 1100m", got)
	}
}

func TestScaleDownWaitsForStabilizationWindow(t *testing.T) {
	in := Input{Spec: spec(), Current: 8, Now: now}
	step := func(after time.Duration, pods string) Decision {
		in.Now = in.Now.Add(after)
		in.Clusters = clusters(map[string]string{"a": pods})
		for i := range in.Clusters[0].Pods { // the values are of now
			name := in.Clusters[0].Pods[i].Name
			v := in.Clusters[0].Readings[0].Pods[name]
			v.At = in.Now
			in.Clusters[0].Readings[0].Pods[name] = v
		}
		d := Decide(in)
		in.History = d.History.Scaled(in.Current, d.Desired, in.Now)
		in.Current = d.Desired
		return d
	}
	idle := "25 25 25 25 25 25 25 25"
	if d := step(0, "50 50 50 50 50 50 50 50"); d.Desired != 8 {
		t.Fatalf("on target it becomes %d", d.Desired)
	}
	d := step(15*time.Second, idle)
	if got := condition(d, autoscalingv2.AbleToScale); d.Desired != 8 || !strings.Contains(got, "ScaleDownStabilized") {
		t.Fatalf("a scale down at once to %d: %s", d.Desired, got)
	}
	if d = step(4*time.Minute, idle); d.Desired != 8 {
		t.Fatalf("a scale down after 4 minutes to %d", d.Desired)
	}
	if d = step(time.Minute, idle); d.Desired != 4 || d.Reason != "All metrics below target" {
		t.Fatalf("after 5 minutes it becomes %d, because %q", d.Desired, d.Reason)
	}
	// Up again at once.
	if d = step(15*time.Second, "100 100 100 100"); d.Desired != 8 {
		t.Fatalf("up again it becomes %d", d.Desired)
	}
}

func TestScalingPoliciesLimitTheRate(t *testing.T) {
	busy, idle := strings.Repeat("500 ", 10), strings.Repeat("1 ", 10)
	least := autoscalingv2.MinChangePolicySelect
	off := autoscalingv2.DisabledPolicySelect
	zero := int32(0)
	rules := func(choose *autoscalingv2.ScalingPolicySelect,
		policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
		return &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &zero, SelectPolicy: choose, Policies: policies}
	}
	pods, percent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 3, PeriodSeconds: 60},
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 15, PeriodSeconds: 60}
	for _, c := range []struct {
		name     string
		behavior autoscalingv2.HorizontalPodAutoscalerBehavior
		load     string
		history  History
		want     int32
		reason   string
	}{
		{"by default it doubles", autoscalingv2.HorizontalPodAutoscalerBehavior{}, busy, History{}, 20, "ScaleUpLimit"},
		{"up by pods", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(nil, pods)}, busy, History{}, 13,
			"ScaleUpLimit"},
		{"up by the larger", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(nil, pods, percent)}, busy,
			History{}, 13, "ScaleUpLimit"},
		{"up by the smaller, rounded up",
			autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(&least, pods, percent)}, busy, History{}, 12,
			"ScaleUpLimit"},
		{"up by what is left of the period", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(nil, pods)}, busy,
			History{}.Scaled(8, 10, now.Add(-30*time.Second)), 11, "ScaleUpLimit"},
		{"up when the period is over", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(nil, pods)}, busy,
			History{}.Scaled(8, 10, now.Add(-61*time.Second)), 13, "ScaleUpLimit"},
		{"never up", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules(&off, pods)}, busy, History{}, 10,
			"ScaleUpLimit"},
		{"down by pods", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(nil, pods)}, idle, History{}, 7,
			"ScaleDownLimit"},
		{"down by the larger", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(nil, pods, percent)}, idle,
			History{}, 7, "ScaleDownLimit"},
		{"down by the smaller", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(&least, pods, percent)}, idle,
			History{}, 8, "ScaleDownLimit"},
		{"down by what is left of the period", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(nil, pods)},
			idle, History{}.Scaled(12, 10, now.Add(-30*time.Second)), 9, "ScaleDownLimit"},
		{"never down", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(&off, pods)}, idle, History{}, 10,
			"ScaleDownLimit"},
		{"down all the way", autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: rules(nil)}, idle, History{}, 2,
			"TooFewReplicas"},
	} {
		s := spec()
		two := int32(2)
		s.MinReplicas, s.MaxReplicas, s.Behavior = &two, 1000, &c.behavior
		d := Decide(Input{Spec: s, Current: 10, Clusters: clusters(map[string]string{"a": c.load}), History: c.history,
			Now: now})
		if got := condition(d, autoscalingv2.ScalingLimited); d.Desired != c.want ||
			!strings.HasPrefix(got, "True "+c.reason) {
			t.Errorf("%s: 10 become %d, want %d; %s, want %s", c.name, d.Desired, c.want, got, c.reason)
		}
	}
	s := spec()
	s.MaxReplicas = 12
	d := Decide(Input{Spec: s, Current: 10, Clusters: clusters(map[string]string{"a": busy}), Now: now})
	if got := condition(d, autoscalingv2.ScalingLimited); d.Desired != 12 ||
		!strings.HasPrefix(got, "True TooManyReplicas") {
		t.Errorf("10 become %d, want the maximum of 12; %s", d.Desired, got)
	}
}

// fleets returns random clusters from a fixed seed.
func fleets(t *testing.T, each func(in Input, r *rand.Rand)) {
	t.Helper()
	for seed := range int64(3000) {
		r := rand.New(rand.NewSource(seed))
		in := Input{Spec: atOnce(spec()), Now: now, Each: r.Intn(3) == 0}
		lowest := int32(1 + r.Intn(4))
		in.Spec.MinReplicas, in.Spec.MaxReplicas = &lowest, lowest+int32(r.Intn(30))
		in.Current = 1 + int32(r.Intn(30))
		for i := range 1 + r.Intn(4) {
			pods := fmt.Sprintf("silent:%d", 1+r.Intn(4))
			if r.Intn(4) > 0 {
				var all []string
				for range r.Intn(6) {
					all = append(all, []string{fmt.Sprint(r.Intn(200)), fmt.Sprint(r.Intn(60)), "?", "new", "-"}[r.Intn(5)])
				}
				pods = strings.Join(all, " ")
			}
			in.Clusters = append(in.Clusters, cluster(fmt.Sprint("c", i), pods))
		}
		each(in, r)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestDecisionIsInBoundsAndIndependentOfOrder(t *testing.T) {
	fleets(t, func(in Input, r *rand.Rand) {
		d := Decide(in)
		if d.Failure == nil && (d.Desired < *in.Spec.MinReplicas || d.Desired > in.Spec.MaxReplicas) {
			t.Errorf("%d is not within %d and %d", d.Desired, *in.Spec.MinReplicas, in.Spec.MaxReplicas)
		}
		other := in
		other.Clusters = slices.Clone(in.Clusters)
		r.Shuffle(len(other.Clusters), func(i, j int) {
			other.Clusters[i], other.Clusters[j] = other.Clusters[j],
				other.Clusters[i]
		})
		if again := Decide(other); again.Desired != d.Desired || fmt.Sprint(again.Conditions) != fmt.Sprint(d.Conditions) {
			t.Errorf("%d %v in one order, %d %v in another", d.Desired, d.Conditions, again.Desired, again.Conditions)
		}
	})
}

func TestMoreLoadNeverRemovesReplicas(t *testing.T) {
	fleets(t, func(in Input, r *rand.Rand) {
		before := Decide(in)
		in.Clusters = slices.Clone(in.Clusters)
		i := r.Intn(len(in.Clusters))
		if len(in.Clusters[i].Readings[0].Pods) == 0 {
			return
		}
		more := map[string]Value{}
		for name, v := range in.Clusters[i].Readings[0].Pods {
			v.Milli += int64(r.Intn(100))
			more[name] = v
		}
		in.Clusters[i].Readings = []Reading{{Pods: more}}
		if after := Decide(in); after.Failure == nil && before.Failure == nil && after.Desired < before.Desired {
			t.Errorf("with more load %d become %d", before.Desired, after.Desired)
		}
	})
}

func TestClusterWithoutDataNeverRemovesReplicas(t *testing.T) {
	fleets(t, func(in Input, r *rand.Rand) {
		lowest := int32(1)
		in.Spec.MinReplicas, in.Spec.MaxReplicas = &lowest, 1000
		others := in
		others.Clusters = in.Clusters[1:]
		without := Decide(others)
		in.Clusters = slices.Clone(in.Clusters)
		in.Clusters[0] = Cluster{Name: in.Clusters[0].Name, Replicas: 1 + int32(r.Intn(5)), Unknown: "no answer in time",
			Readings: []Reading{{}}}
		if with := Decide(in); !in.Each && without.Desired >= in.Current && with.Desired < in.Current {
			t.Errorf("without the cluster %d would stay or grow, and with it they become %d", in.Current, with.Desired)
		}
	})
}
