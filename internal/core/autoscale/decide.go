// Package autoscale decides how many replicas the load of a workload asks for in all clusters together, as a
// HorizontalPodAutoscaler decides in one; how its bounds are split between the autoscalers of members; and which rules
// of a schedule are due. Reading metrics and writing replicas is left to controllers.
package autoscale

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
)

// Settings are the hub's, for all FederatedHPAs. A zero value means what a HorizontalPodAutoscaler has.
type Settings struct {
	// Tolerance is how far the load may be from its target, as a share of it, without a change; default 0.1.
	Tolerance float64
	// DownscaleStabilization is how long a higher recommendation counts where a behavior does not say; default 5 minutes.
	DownscaleStabilization time.Duration
	// CPUInitialization is the period after pod start when CPU samples might be skipped; InitialReadiness for how long it
	// may not have been ready yet. Defaults 5 minutes and 30 seconds.
	CPUInitialization, InitialReadiness time.Duration
}

// WithDefaults fills in what is not set.
func (s Settings) WithDefaults() Settings {
	if s.Tolerance == 0 {
		s.Tolerance = 0.1
	}
	if s.DownscaleStabilization == 0 {
		s.DownscaleStabilization = 5 * time.Minute
	}
	if s.CPUInitialization == 0 {
		s.CPUInitialization = 5 * time.Minute
	}
	if s.InitialReadiness == 0 {
		s.InitialReadiness = 30 * time.Second
	}
	return s
}

// Cluster is what is known of a workload's pods in one cluster.
type Cluster struct {
	Name string
	// Replicas are those that it shall have.
	Replicas int32
	// Left says that the workload is leaving the cluster. Its pods there count as long as they run.
	Left bool
	// Pods are those that it has. Unknown says why nothing is known of them, and is empty otherwise.
	Pods    []corev1.Pod
	Unknown string
	// Readings are of each metric of the spec, in that order.
	Readings []Reading
}

// Reading is one metric in one cluster.
type Reading struct {
	// Unknown says why there is none; it is empty otherwise.
	Unknown string
	// Pods are the values by pod; Object is that of an object. Both are in thousandths.
	Pods   map[string]Value
	Object int64
	// Absent says that the cluster does not have the object, which adds nothing to what others say of theirs.
	Absent string
}

// Value is a metric of one pod, in thousandths, over a window that ended at a time.
type Value struct {
	Milli  int64
	At     time.Time
	Window time.Duration
}

// Input of a decision.
type Input struct {
	Spec *autoscalingv1alpha1.FederatedHPASpec
	// Current are the replicas of the template; Each says that every cluster has that many, where they are not divided.
	Current  int32
	Each     bool
	Clusters []Cluster
	History  History
	Settings Settings
	Now      time.Time
}

// Decision is how many replicas the template shall have, and what is to be said of that.
type Decision struct {
	// Desired equals Current where nothing is to be done, or nothing can be said.
	Desired int32
	// Reason is why, for the event of a change.
	Reason string
	// Failure is why the metrics do not say how many; then nothing changes unless the bounds ask for it.
	Failure error
	// Metrics are those that were read.
	Metrics    []autoscalingv2.MetricStatus
	Conditions []autoscalingv2.HorizontalPodAutoscalerCondition
	// History is to be given to the next decision.
	History History
}

// Decide works out the replicas of a template. The order of the clusters does not matter, and the result is within the
// bounds.
//
// A cluster of which nothing is known holds nothing up: its replicas count as idle where the rest asks for more, and as
// busy where the rest asks for fewer, so that silence alone never takes replicas away. While the workload is leaving a
// cluster of which nothing is known, it does not scale down: its pods there may still serve, and their load is not
// known.
func Decide(in Input) Decision {
	in.Settings = in.Settings.WithDefaults()
	lowest, highest := int32(1), in.Spec.MaxReplicas
	if in.Spec.MinReplicas != nil {
		lowest = *in.Spec.MinReplicas
	}
	d := Decision{Desired: in.Current, History: in.History}

	// 1. Bounds come first, and need no metrics.
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

	// 2. Each metric proposes a number; the highest counts. With a metric missing, nothing goes down.
	d.unknown(in)
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
		d.say(autoscalingv2.ScalingActive, corev1.ConditionFalse, failures[0].reason,
			"the desired replica count is unknown: "+failures[0].Error())
		return d
	}
	d.say(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound",
		"the desired replica count is calculated from "+by)
	if in.leavesSilent() {
		proposal = max(proposal, in.Current)
	}

	// 3. Not too fast, not too early, and within the bounds.
	steady, reason, message := in.stabilised(proposal, &d.History)
	d.say(autoscalingv2.AbleToScale, corev1.ConditionTrue, reason, message)
	desired, limit, message := in.limited(steady, lowest, highest)
	limited := corev1.ConditionTrue
	if limit == "DesiredWithinRange" {
		limited = corev1.ConditionFalse
	}
	d.say(autoscalingv2.ScalingLimited, limited, limit, message)
	d.Desired = desired
	switch {
	case desired > in.Current:
		d.Reason = by + " above target"
	case desired < in.Current:
		d.Reason = "All metrics below target"
	}
	return d
}

// Disabled is what is said of a workload without replicas, in whatever mode.
func Disabled() autoscalingv2.HorizontalPodAutoscalerCondition {
	return autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse,
		Reason:  "ScalingDisabled",
		Message: "autoscaling is disabled because the workload has zero replicas; scale it to one or more to enable autoscaling"}
}

// Silent are the clusters of which something is not known, sorted, with why.
func Silent(clusters []Cluster) []string {
	var out []string
	for _, c := range clusters {
		why := c.Unknown
		for _, r := range c.Readings {
			if why == "" {
				why = r.Unknown
			}
		}
		if why != "" {
			out = append(out, fmt.Sprintf("cluster %s: %s", c.Name, why))
		}
	}
	slices.Sort(out)
	return out
}

func (d *Decision) unknown(in Input) {
	if silent := Silent(in.Clusters); len(silent) > 0 {
		d.say(autoscalingv1alpha1.MetricsComplete, corev1.ConditionFalse, autoscalingv1alpha1.ReasonClustersUnknown,
			"some metrics are missing; the pods without metrics are counted as idle when scaling up and as busy when scaling down: "+strings.Join(silent, "; "))
	}
}

func (d *Decision) say(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason,
	message string) {
	d.Conditions = append(d.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status,
		Reason: reason, Message: message})
}

// SetCondition puts a condition among the others, in the place of one of its type; its time is that of the last change
// of its status.
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

// Since are the conditions with the times of those that stood, where the status is the same: some are said twice on the
// way.
func Since(all, stood []autoscalingv2.HorizontalPodAutoscalerCondition) []autoscalingv2.HorizontalPodAutoscalerCondition {
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

// leavesSilent reports whether the workload is leaving a cluster of which nothing is known.
func (in Input) leavesSilent() bool {
	return slices.ContainsFunc(in.Clusters, func(c Cluster) bool { return c.Left && c.Unknown != "" })
}

// copies is how many pods there shall be for each replica of the template.
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

// total are the pods that there shall be.
func (in Input) total() int32 { return clamp(int64(in.Current) * int64(in.copies())) }

// ofTemplate are the replicas of the template that make so many pods or more.
func (in Input) ofTemplate(pods int32) int32 {
	n := int64(in.copies())
	return clamp((int64(pods) + n - 1) / n)
}

func clamp(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// ceil is the next whole number of replicas; what is no number, or too large, is as many as there can be.
func ceil(f float64) int32 {
	if f = math.Ceil(f); f < math.MaxInt32 {
		return int32(max(f, 0))
	}
	return math.MaxInt32
}
