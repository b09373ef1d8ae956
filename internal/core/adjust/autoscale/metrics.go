package autoscale

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// proposal is the number of pods that one metric asks for, with its current value.
type proposal struct {
	replicas int32
	name     string
	status   autoscalingv2.MetricStatus
}

// failure is the reason why a metric gives no proposal, with the reason of the condition.
type failure struct {
	reason string
	error
}

func (in Input) propose(i int, m autoscalingv2.MetricSpec) (p proposal, failed *failure) {
	var err error
	p.status.Type = m.Type
	switch {
	case m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil:
		p.name = fmt.Sprintf("%s of pods", m.Resource.Name)
		s := &autoscalingv2.ResourceMetricStatus{Name: m.Resource.Name}
		p.replicas, s.Current, err = in.byResource(i, m.Resource.Name, "", m.Resource.Target)
		p.status.Resource = s
	case m.Type == autoscalingv2.ContainerResourceMetricSourceType && m.ContainerResource != nil:
		of := m.ContainerResource
		p.name = fmt.Sprintf("%s of container %s", of.Name, of.Container)
		s := &autoscalingv2.ContainerResourceMetricStatus{Name: of.Name, Container: of.Container}
		p.replicas, s.Current, err = in.byResource(i, of.Name, of.Container, of.Target)
		p.status.ContainerResource = s
	case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
		p.name = fmt.Sprintf("metric %s of pods", m.Pods.Metric.Name)
		s := &autoscalingv2.PodsMetricStatus{Metric: m.Pods.Metric}
		p.replicas, s.Current, err = in.byAverage(in.group(i, ""), m.Pods.Target)
		p.status.Pods = s
	case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
		of := m.Object
		p.name = fmt.Sprintf("metric %s of %s %s", of.Metric.Name, of.DescribedObject.Kind, of.DescribedObject.Name)
		s := &autoscalingv2.ObjectMetricStatus{Metric: of.Metric, DescribedObject: of.DescribedObject}
		p.replicas, s.Current, err = in.byObject(i, of.Target)
		p.status.Object = s
	default:
		return p, &failure{"InvalidMetricSourceType",
			fmt.Errorf("metric %d has the type %q; supported types are Resource, ContainerResource, Pods and Object", i, m.Type)}
	}
	if err != nil {
		return p, &failure{fmt.Sprintf("FailedGet%sMetric", m.Type), fmt.Errorf("%s: %w", p.name, err)}
	}
	return p, nil
}

func milli(n int64) *resource.Quantity { return resource.NewMilliQuantity(n, resource.DecimalSI) }

// group classifies the pods of all clusters for one metric.
type group struct {
	// known have a value. missing have none. unready have a value that must be ignored. Each includes the request of the
	// pod.
	known            []measured
	missing, unready []measured
	clusters         []string // reasons for missing values
}

type measured struct {
	// pod is nil for the replicas of a cluster without data. Then replicas is their number, otherwise 1. One entry for all
	// keeps memory bounded, because users choose the number.
	pod      *corev1.Pod
	replicas int64
	// value and request are per pod.
	value, request int64
}

// count returns the number of pods.
func count(all []measured) (n int64) {
	for _, m := range all {
		n += m.replicas
	}
	return n
}

// group classifies the pods. CPU values of starting pods and other values of pods that do not run yet are ignored.
func (in Input) group(i int, resource corev1.ResourceName) group {
	var g group
	for _, c := range in.Clusters {
		var r Reading
		if i < len(c.Readings) {
			r = c.Readings[i]
		}
		if why := c.Unknown; why != "" {
			if c.Replicas > 0 {
				g.missing = append(g.missing, measured{replicas: int64(c.Replicas)})
			}
			g.clusters = append(g.clusters, fmt.Sprintf("cluster %s: %s", c.Name, why))
			continue
		}
		if r.Unknown != "" {
			g.clusters = append(g.clusters, fmt.Sprintf("cluster %s: %s", c.Name, r.Unknown))
		}
		for p := range c.Pods {
			pod := &c.Pods[p]
			if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
				continue
			}
			v, found := r.Pods[pod.Name]
			switch {
			case pod.Status.Phase == corev1.PodPending:
				g.unready = append(g.unready, measured{pod: pod, replicas: 1})
			case !found:
				g.missing = append(g.missing, measured{pod: pod, replicas: 1})
			case resource == corev1.ResourceCPU && in.misleads(pod, v):
				g.unready = append(g.unready, measured{pod: pod, replicas: 1})
			default:
				g.known = append(g.known, measured{pod: pod, replicas: 1, value: max(v.Milli, 0)})
			}
		}
	}
	slices.Sort(g.clusters)
	return g
}

// misleads reports whether a CPU value must be ignored: the pod was never ready, is not ready early in its life, or the
// value is from before it was ready.
func (in Input) misleads(pod *corev1.Pod, v Value) bool {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if i < 0 || pod.Status.StartTime == nil {
		return true
	}
	ready, start := pod.Status.Conditions[i], pod.Status.StartTime.Time
	if start.Add(in.Settings.CPUInitialization).After(in.Now) {
		return ready.Status == corev1.ConditionFalse || v.At.Before(ready.LastTransitionTime.Add(v.Window))
	}
	return ready.Status == corev1.ConditionFalse &&
		start.Add(in.Settings.InitialReadiness).After(ready.LastTransitionTime.Time)
}

// noneError explains why no value is known.
func (g group) noneError() error {
	switch {
	case len(g.clusters) > 0:
		return fmt.Errorf("no cluster reports this metric: %s", g.clusters[0])
	case len(g.missing)+len(g.unready) == 0:
		return fmt.Errorf("there are no pods")
	}
	return fmt.Errorf("no ready pod has a value yet")
}

func (in Input) byResource(i int, name corev1.ResourceName, container string,
	target autoscalingv2.MetricTarget) (replicas int32, status autoscalingv2.MetricValueStatus, err error) {
	g := in.group(i, name)
	if target.AverageUtilization == nil {
		return in.byAverage(g, target)
	}
	if err := g.request(name, container); err != nil {
		return 0, status, err
	}
	wanted := int64(*target.AverageUtilization)
	if len(g.known) == 0 {
		return 0, status, g.noneError()
	}
	used, requested := g.sums(g.known)
	if requested <= 0 || wanted <= 0 {
		return 0, status, errors.New("the pods have no resource requests, so the utilization cannot be calculated")
	}
	ratio := func(all []measured) float64 {
		used, requested := g.sums(all)
		return float64(percent(used, requested)) / float64(wanted)
	}
	busy := func(m measured) int64 { return times(m.request, max(100, wanted)) / 100 }
	return in.scale(g, ratio(g.known), busy, ratio), autoscalingv2.MetricValueStatus{
		AverageUtilization: new(percent(used, requested)), AverageValue: milli(used / int64(len(g.known)))}, nil
}

// percent returns used as a percentage of requested, which is above 0. For memory this needs more than 64 bits.
func percent(used, requested int64) int32 {
	if used > math.MaxInt64/100 && requested >= 100 {
		return clamp(used / (requested / 100))
	}
	return clamp(times(used, 100) / requested)
}

// plus and times saturate at the maximum. Arguments are 0 or more. Values from members and users are not bounded.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// Milli returns a quantity in thousandths: 0 if negative, the maximum on overflow.
func Milli(q resource.Quantity) int64 {
	if q.CmpInt64(math.MaxInt64/1000) > 0 {
		return math.MaxInt64
	}
	return max(q.MilliValue(), 0)
}

// byAverage computes the replicas for a target average.
func (in Input) byAverage(g group, target autoscalingv2.MetricTarget) (replicas int32,
	status autoscalingv2.MetricValueStatus, err error) {
	if target.AverageValue == nil {
		return 0, status, errors.New("its target has no averageValue")
	}
	wanted := Milli(*target.AverageValue)
	if wanted <= 0 {
		return 0, status, errors.New("its target must be greater than 0")
	}
	if len(g.known) == 0 {
		return 0, status, g.noneError()
	}
	used, _ := g.sums(g.known)
	ratio := func(all []measured) float64 {
		used, _ := g.sums(all)
		return float64(used/count(all)) / float64(wanted)
	}
	status.AverageValue = milli(used / int64(len(g.known)))
	return in.scale(g, ratio(g.known), func(measured) int64 { return wanted }, ratio), status, nil
}

// scale returns the number of pods for a ratio of load to target. Pods without a value count as idle when scaling up
// and busy when scaling down. If that reverses the direction, nothing changes. Nothing changes either if the load is
// above target but fewer pods exist than desired.
func (in Input) scale(g group, ratio float64, busy func(measured) int64, of func([]measured) float64) int32 {
	current := in.total()
	up := ratio > 1 && len(g.unready) > 0
	if !up && len(g.missing) == 0 {
		return in.along(ratio, ceil(ratio*float64(len(g.known))))
	}
	all := slices.Clone(g.known)
	for _, m := range g.missing {
		switch {
		case ratio < 1:
			m.value = busy(m)
		case ratio > 1:
			m.value = 0
		default:
			continue
		}
		all = append(all, m)
	}
	if up {
		all = append(all, g.unready...)
	}
	is := of(all)
	if ratio < 1 && is > 1 || ratio > 1 && is < 1 {
		return current
	}
	return in.along(is, ceil(is*float64(count(all))))
}

// along returns replicas if they change the current number in the direction of the ratio and the ratio is outside the
// tolerance. Otherwise it returns the current number.
func (in Input) along(ratio float64, replicas int32) int32 {
	current := in.total()
	if in.tolerates(ratio) || ratio < 1 && replicas > current || ratio > 1 && replicas < current {
		return current
	}
	return replicas
}

func (in Input) byObject(i int, target autoscalingv2.MetricTarget) (int32, autoscalingv2.MetricValueStatus, error) {
	var sum, ready int64
	answers, unknown, absent := 0, "", ""
	for _, c := range in.Clusters {
		why := c.Unknown
		if why == "" && i < len(c.Readings) {
			why = c.Readings[i].Unknown
		}
		if why != "" {
			unknown = max(unknown, fmt.Sprintf("cluster %s: %s", c.Name, why))
		} else if i < len(c.Readings) && c.Readings[i].Absent != "" {
			absent = max(absent, fmt.Sprintf("cluster %s: %s", c.Name, c.Readings[i].Absent))
		} else if i < len(c.Readings) {
			answers++
			sum = plus(sum, max(c.Readings[i].Object, 0))
		}
		if c.Unknown != "" {
			ready += int64(c.Replicas)
		}
		for p := range c.Pods {
			if isReady(&c.Pods[p]) {
				ready++
			}
		}
	}
	if answers == 0 {
		return 0, autoscalingv2.MetricValueStatus{}, fmt.Errorf("no cluster reports this metric: %s", cmp.Or(unknown, absent))
	}
	current := in.total()
	var replicas int32
	var status autoscalingv2.MetricValueStatus
	switch {
	case target.Value != nil && Milli(*target.Value) > 0:
		ratio := float64(sum) / float64(Milli(*target.Value))
		replicas = in.along(ratio, ceil(ratio*float64(ready)))
		status.Value = milli(sum)
	case target.AverageValue != nil && Milli(*target.AverageValue) > 0:
		each := Milli(*target.AverageValue)
		if replicas = current; !in.tolerates(float64(sum) / (float64(each) * float64(current))) {
			replicas = ceil(float64(sum) / float64(each))
		}
		status.AverageValue = milli(plus(sum, int64(current)-1) / int64(current))
	default:
		return 0, status, fmt.Errorf("the target must have a value or an averageValue greater than 0")
	}
	if unknown != "" && replicas < current {
		replicas = current // the missing values may be high
	}
	return replicas, status, nil
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
}

// tolerates reports whether the ratio is within the tolerance.
func (in Input) tolerates(ratio float64) bool {
	down, up := in.Settings.Tolerance, in.Settings.Tolerance
	if b := in.Spec.Behavior; b != nil {
		if b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
			down = b.ScaleDown.Tolerance.AsApproximateFloat64()
		}
		if b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
			up = b.ScaleUp.Tolerance.AsApproximateFloat64()
		}
	}
	return 1-down <= ratio && ratio <= 1+up
}

func (g group) sums(all []measured) (used, requested int64) {
	for _, m := range all {
		used, requested = plus(used, times(m.value, m.replicas)), plus(requested, times(m.request, m.replicas))
	}
	return used, requested
}

// request fills in the requests of the pods. Replicas without data get the average of the others.
func (g group) request(name corev1.ResourceName, container string) error {
	var sum, seen int64
	for _, list := range [][]measured{g.known, g.missing, g.unready} {
		for i := range list {
			if list[i].pod == nil {
				continue
			}
			n, err := requestOf(list[i].pod, name, container)
			if err != nil {
				return err
			}
			list[i].request = n
			sum = plus(sum, n)
			seen++
		}
	}
	for i := range g.missing {
		if g.missing[i].pod == nil && seen > 0 {
			g.missing[i].request = sum / seen
		}
	}
	return nil
}

// requestOf returns the request of a pod or container in thousandths. A container without a request is an error,
// because then there is no utilization.
func requestOf(pod *corev1.Pod, name corev1.ResourceName, container string) (int64, error) {
	if container == "" && pod.Spec.Resources != nil {
		if q, ok := pod.Spec.Resources.Requests[name]; ok {
			return Milli(q), nil
		}
	}
	var sum int64
	found := false
	add := func(c corev1.Container) error {
		if container != "" && c.Name != container {
			return nil
		}
		q, ok := c.Resources.Requests[name]
		if !ok {
			return fmt.Errorf("container %s of the pods has no %s request, so the utilization cannot be calculated: add it to resources.requests", c.Name, name)
		}
		sum, found = plus(sum, Milli(q)), true
		return nil
	}
	for _, c := range pod.Spec.Containers {
		if err := add(c); err != nil {
			return 0, err
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways { // sidecars count
			if err := add(c); err != nil {
				return 0, err
			}
		}
	}
	if container != "" && !found {
		return 0, fmt.Errorf("the pods have no container %s", container)
	}
	return sum, nil
}

// Usage is the usage of one pod by container, over a window that ended at a time.
type Usage struct {
	Pod        string
	At         time.Time
	Window     time.Duration
	Containers map[string]corev1.ResourceList
}

// Read computes a Resource or ContainerResource metric from the usage of the pods of a cluster.
func Read(m autoscalingv2.MetricSpec, all []Usage) Reading {
	r := Reading{Pods: map[string]Value{}}
	var name corev1.ResourceName
	container := ""
	switch {
	case m.Resource != nil:
		name = m.Resource.Name
	case m.ContainerResource != nil:
		name, container = m.ContainerResource.Name, m.ContainerResource.Container
	default:
		return r
	}
	for _, u := range all {
		v, complete := Value{At: u.At, Window: u.Window}, len(u.Containers) > 0
		if container != "" {
			_, complete = u.Containers[container]
		}
		for c, used := range u.Containers {
			if container != "" && c != container {
				continue
			}
			q, ok := used[name]
			complete = complete && ok
			v.Milli = plus(v.Milli, Milli(q))
		}
		if complete {
			r.Pods[u.Pod] = v
		}
	}
	return r
}
