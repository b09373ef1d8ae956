// Package autoscale decides how many replicas a workload needs across clusters, like a HorizontalPodAutoscaler does in
// one cluster; how to split the bounds between the autoscalers of members; and which cron rules are due. It does no
// I/O.
package autoscale

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
)

// Settings apply to all FederatedHPAs. Zero values mean the defaults of the HorizontalPodAutoscaler.
type Settings struct {
	// Tolerance is the relative deviation from the target that causes no change. The default is 0.1.
	Tolerance float64
	// DownscaleStabilization is the stabilization window for scaling down if the behavior has none. The default is 5
	// minutes.
	DownscaleStabilization time.Duration
	// CPUInitialization is the period after pod start when CPU samples might be skipped. InitialReadiness is the period in
	// which readiness changes count as initial readiness. The defaults are 5 minutes and 30 seconds.
	CPUInitialization, InitialReadiness time.Duration
}

func (s Settings) WithDefaults() Settings {
	return Settings{Tolerance: cmp.Or(s.Tolerance, 0.1),
		DownscaleStabilization: cmp.Or(s.DownscaleStabilization, 5*time.Minute),
		CPUInitialization:      cmp.Or(s.CPUInitialization, 5*time.Minute),
		InitialReadiness:       cmp.Or(s.InitialReadiness, 30*time.Second)}
}

type Cluster struct {
	Name string
	// Replicas is the desired number of replicas in the cluster.
	Replicas int32
	// Left is true if the workload is leaving the cluster. Its pods count as long as they run.
	Left bool
	// Pods are the pods of the workload. Unknown is the reason if they could not be read.
	Pods    []corev1.Pod
	Unknown string
	// Readings has one entry per metric of the spec, in the same order.
	Readings []Reading
}

// Reading is the value of one metric in one cluster.
type Reading struct {
	// Unknown is the reason if the metric could not be read.
	Unknown string
	// Pods has the values per pod. Object is the value of an object metric. Both are in thousandths.
	Pods   map[string]Value
	Object int64
	// Absent is the reason if the cluster does not have the object. The values of other clusters still count.
	Absent string
}

// Value is a metric of one pod in thousandths, over a window that ended at a time.
type Value struct {
	Milli  int64
	At     time.Time
	Window time.Duration
}

type Input struct {
	Spec *autoscalingv1alpha1.FederatedHPASpec
	// Current is the number of replicas in the template. Each is true if every cluster runs that many instead of a share.
	Current  int32
	Each     bool
	Clusters []Cluster
	History  History
	Settings Settings
	Now      time.Time
}

// Decision is the desired number of replicas, with conditions and metrics for the status.
type Decision struct {
	// Desired equals Current if no change is needed or the metrics are unknown.
	Desired int32
	// Reason explains a change, for the event.
	Reason string
	// Failure is why the metrics gave no result. Then only the bounds can cause a change.
	Failure error
	// Metrics are the metrics that were read.
	Metrics    []autoscalingv2.MetricStatus
	Conditions []autoscalingv2.HorizontalPodAutoscalerCondition
	// History is input of the next decision.
	History History
}

// Decide computes the replicas of a template. The result is within the bounds and does not depend on the order of
// clusters.
//
// Replicas of a cluster without data count as idle when scaling up and as busy when scaling down, so missing data alone
// never removes replicas. There is no scale-down while the workload leaves a cluster without data, because its pods
// there may still serve.
func Decide(in Input) Decision {
	in.Settings = in.Settings.WithDefaults()
	lowest, highest := ptr.Deref(in.Spec.MinReplicas, 1), in.Spec.MaxReplicas
	d := Decision{Desired: in.Current, History: in.History}

	// 1. Enforce the bounds, which need no metrics.
	switch {
	case in.Current == 0:
		d.Conditions = append(d.Conditions, Disabled())
		return d
	case in.Current > highest:
		d.Desired, d.Reason = highest, "there are more replicas than maxReplicas"
		return d
	case in.Current < lowest:
		d.Desired, d.Reason = lowest, "there are fewer replicas than minReplicas"
		return d
	}

	// 2. Take the highest proposal of all metrics. Do not scale down if a metric is missing.
	d.setMetricsComplete(in)
	proposal, valid := int32(0), 0
	var failures []*failure
	var by string
	for i, m := range in.Spec.Metrics {
		p, err := in.propose(i, m)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		valid++
		d.Metrics = append(d.Metrics, p.status)
		if n := in.ofTemplate(p.replicas); valid == 1 || n > proposal {
			proposal, by = n, p.name
		}
	}
	if valid == 0 && len(failures) == 0 {
		failures = append(failures, &failure{"InvalidMetricSourceType", fmt.Errorf("the spec has no metrics")})
	}
	if len(failures) > 0 && (valid == 0 || proposal < in.Current) {
		d.Failure = failures[0].error
		d.setCondition(autoscalingv2.ScalingActive, corev1.ConditionFalse, failures[0].reason,
			"the desired replica count is unknown: "+failures[0].Error())
		return d
	}
	d.setCondition(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound",
		"the desired replica count is calculated from "+by)
	if in.leavesSilent() {
		proposal = max(proposal, in.Current)
	}

	// 3. Apply stabilization, scaling policies and bounds.
	steady, reason, message := in.stabilised(proposal, &d.History)
	d.setCondition(autoscalingv2.AbleToScale, corev1.ConditionTrue, reason, message)
	desired, limit, message := in.limited(steady, lowest, highest)
	limited := corev1.ConditionTrue
	if limit == "DesiredWithinRange" {
		limited = corev1.ConditionFalse
	}
	d.setCondition(autoscalingv2.ScalingLimited, limited, limit, message)
	d.Desired = desired
	switch {
	case desired > in.Current:
		d.Reason = by + " above target"
	case desired < in.Current:
		d.Reason = "All metrics below target"
	}
	return d
}

// Disabled returns the condition of a workload with zero replicas.
func Disabled() autoscalingv2.HorizontalPodAutoscalerCondition {
	return autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse,
		Reason:  "ScalingDisabled",
		Message: "autoscaling is disabled because the workload has zero replicas; scale it to one or more to enable autoscaling"}
}

// Silent returns the clusters with missing data, sorted, with the reasons.
func Silent(clusters []Cluster) []string {
	var out []string
	for _, c := range clusters {
		why := c.Unknown
		for _, r := range c.Readings {
			why = cmp.Or(why, r.Unknown)
		}
		if why != "" {
			out = append(out, fmt.Sprintf("cluster %s: %s", c.Name, why))
		}
	}
	slices.Sort(out)
	return out
}

func (d *Decision) setMetricsComplete(in Input) {
	if silent := Silent(in.Clusters); len(silent) > 0 {
		d.setCondition(autoscalingv1alpha1.MetricsComplete, corev1.ConditionFalse, autoscalingv1alpha1.ReasonClustersUnknown,
			"some metrics are missing; the pods without metrics are counted as idle when scaling up and as busy when scaling down: "+strings.Join(silent, "; "))
	}
}

func (d *Decision) setCondition(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus,
	reason,
	message string) {
	d.Conditions = append(d.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status,
		Reason: reason, Message: message})
}

// SetCondition adds or replaces a condition. The transition time changes only with the status.
func SetCondition(all []autoscalingv2.HorizontalPodAutoscalerCondition,
	c autoscalingv2.HorizontalPodAutoscalerCondition, now time.Time) []autoscalingv2.HorizontalPodAutoscalerCondition {
	all = slices.Clone(all)
	c.LastTransitionTime = metav1.NewTime(now)
	i := slices.IndexFunc(all, func(is autoscalingv2.HorizontalPodAutoscalerCondition) bool { return is.Type == c.Type })
	if i < 0 {
		return append(all, c)
	}
	if all[i].Status == c.Status {
		c.LastTransitionTime = all[i].LastTransitionTime
	}
	all[i] = c
	return all
}

// KeepTransitionTimes returns the conditions with the old transition times where the status is the same. A condition
// may have been set twice in between.
func KeepTransitionTimes(
	all, stood []autoscalingv2.HorizontalPodAutoscalerCondition,
) []autoscalingv2.HorizontalPodAutoscalerCondition {
	all = slices.Clone(all)
	for i := range all {
		for _, was := range stood {
			if was.Type == all[i].Type && was.Status == all[i].Status {
				all[i].LastTransitionTime = was.LastTransitionTime
			}
		}
	}
	return all
}

// leavesSilent reports whether the workload is leaving a cluster without data.
func (in Input) leavesSilent() bool {
	return slices.ContainsFunc(in.Clusters, func(c Cluster) bool { return c.Left && c.Unknown != "" })
}

// copies returns the number of pods per replica of the template.
func (in Input) copies() int32 {
	if !in.Each {
		return 1
	}
	n := int32(0)
	for _, c := range in.Clusters {
		if !c.Left || c.Replicas > 0 {
			n++
		}
	}
	return max(1, n)
}

// total returns the desired number of pods.
func (in Input) total() int32 { return clamp(int64(in.Current) * int64(in.copies())) }

// ofTemplate returns the smallest number of template replicas that gives at least this many pods.
func (in Input) ofTemplate(pods int32) int32 {
	n := int64(in.copies())
	return clamp((int64(pods) + n - 1) / n)
}

func clamp(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// ceil rounds up to a number of replicas. NaN and too large values become the maximum.
func ceil(f float64) int32 {
	if f = math.Ceil(f); f < math.MaxInt32 {
		return int32(max(f, 0))
	}
	return math.MaxInt32
}
