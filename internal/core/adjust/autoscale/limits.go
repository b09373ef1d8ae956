package autoscale

import (
	"cmp"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// History has the earlier sizes that decisions depend on. It is in memory. After a restart the current size counts as
// the recommended one.
type History struct {
	// proposals are the recommendations. ups and downs are the numbers of replicas added and removed.
	proposals, ups, downs []at
	// Deviates is when the clusters of a FederatedHPA in mode Distributed began to need another division; see Window.
	Deviates time.Time
}

type at struct {
	time     time.Time
	replicas int32
}

// longest is the longest period of a policy or stabilization window.
const longest = time.Hour

// Scaled returns the history after a change of the replicas.
func (h History) Scaled(from, to int32, now time.Time) History {
	if to > from {
		h.ups = append(slices.Clone(h.ups), at{now, to - from})
	} else if to < from {
		h.downs = append(slices.Clone(h.downs), at{now, from - to})
	}
	return h
}

func recent(all []at, since time.Time) []at {
	return slices.DeleteFunc(slices.Clone(all), func(a at) bool { return !a.time.After(since) })
}

func sum(all []at, since time.Time) (n int64) {
	for _, a := range all {
		if a.time.After(since) {
			n += int64(a.replicas)
		}
	}
	return n
}

func (in Input) rules(up bool) *autoscalingv2.HPAScalingRules {
	d := Behavior(in.Spec.Behavior)
	if up {
		return d.ScaleUp
	}
	return d.ScaleDown
}

// Behavior returns b with the defaults of the HorizontalPodAutoscaler. The downscale stabilization window comes from
// the hub's settings.
func Behavior(b *autoscalingv2.HorizontalPodAutoscalerBehavior) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	out := &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	if b != nil {
		out = b.DeepCopy()
	}
	atOnce, fastest := int32(0), autoscalingv2.MaxChangePolicySelect
	fill := func(r **autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
		*r = cmp.Or(*r, &autoscalingv2.HPAScalingRules{})
		(*r).SelectPolicy = cmp.Or((*r).SelectPolicy, &fastest)
		if len((*r).Policies) == 0 {
			(*r).Policies = policies
		}
	}
	fill(&out.ScaleUp, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
		autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
	out.ScaleUp.StabilizationWindowSeconds = cmp.Or(out.ScaleUp.StabilizationWindowSeconds, &atOnce)
	fill(&out.ScaleDown, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100,
		PeriodSeconds: 15})
	return out
}

// stabilised applies the stabilization window to the proposal and records it.
func (in Input) stabilised(proposal int32, h *History) (replicas int32, reason, message string) {
	window := func(r *autoscalingv2.HPAScalingRules, otherwise time.Duration) time.Duration {
		if r.StabilizationWindowSeconds == nil {
			return otherwise
		}
		return time.Duration(*r.StabilizationWindowSeconds) * time.Second
	}
	if len(h.proposals) == 0 {
		h.proposals = []at{{in.Now, in.Current}}
	}
	lowest, highest := proposal, proposal
	for _, p := range h.proposals {
		if p.time.After(in.Now.Add(-window(in.rules(true), 0))) {
			lowest = min(lowest, p.replicas)
		}
		if p.time.After(in.Now.Add(-window(in.rules(false), in.Settings.DownscaleStabilization))) {
			highest = max(highest, p.replicas)
		}
	}
	h.proposals = append(recent(h.proposals, in.Now.Add(-longest)), at{in.Now, proposal})
	h.ups, h.downs = recent(h.ups, in.Now.Add(-longest)), recent(h.downs, in.Now.Add(-longest))
	replicas = min(max(in.Current, lowest), highest)
	switch {
	case replicas == proposal:
		return replicas, "ReadyForNewScale", "scaling is not limited"
	case proposal >= in.Current:
		return replicas, "ScaleUpStabilized",
			"recent recommendations were lower than current one, applying the lowest recent recommendation"
	}
	return replicas, "ScaleDownStabilized",
		"recent recommendations were higher than current one, applying the highest recent recommendation"
}

// limited applies bounds and scaling policies, with the reason if that changes the result.
func (in Input) limited(asked, lowest, highest int32) (replicas int32, reason, message string) {
	switch {
	case asked > in.Current:
		fastest := in.fastest(true)
		if allowed := min(highest, fastest); asked > allowed {
			if fastest < highest {
				return allowed, "ScaleUpLimit", "the desired replica count is increasing faster than behavior.scaleUp allows"
			}
			return allowed, "TooManyReplicas", "the desired replica count is more than maxReplicas"
		}
	case asked < in.Current:
		fastest := in.fastest(false)
		if allowed := max(lowest, fastest); asked < allowed {
			if fastest > lowest {
				return allowed, "ScaleDownLimit", "the desired replica count is decreasing faster than behavior.scaleDown allows"
			}
			return allowed, "TooFewReplicas", "the desired replica count is less than minReplicas"
		}
	}
	return min(max(asked, lowest), highest), "DesiredWithinRange",
		"the desired replica count is within the acceptable range"
}

// fastest returns the number of replicas that the policies of a direction allow now.
func (in Input) fastest(up bool) int32 {
	rules := in.rules(up)
	if *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect {
		return in.Current
	}
	var all []int32
	for _, p := range rules.Policies {
		since := in.Now.Add(-time.Duration(p.PeriodSeconds) * time.Second)
		start := int64(clamp(int64(in.Current) - sum(in.History.ups, since) + sum(in.History.downs, since)))
		change := int64(p.Value)
		if p.Type == autoscalingv2.PercentScalingPolicy {
			change = (start*change + 99) / 100
		}
		if !up {
			change = -change
		}
		all = append(all, clamp(start+change))
	}
	if len(all) == 0 {
		return in.Current
	}
	limit := slices.Min(all)
	if up == (*rules.SelectPolicy != autoscalingv2.MinChangePolicySelect) {
		limit = slices.Max(all)
	}
	if up {
		return max(limit, in.Current)
	}
	return min(limit, in.Current)
}
