package builtin

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// rolloutStates are the fields with the progress of a Kruise Rollout: at the top level, and per strategy.
var rolloutStates = [][]string{{}, {"canaryStatus"}, {"blueGreenStatus"}}

// kruiseRollout is the Rollout of Kruise Rollouts, v1alpha1 and v1beta1. Each cluster rolls out its own workload. The
// template shows the cluster that is furthest behind.
func kruiseRollout() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: reflectWhole,
		Health:  judgedFresh(kruiseRolloutHealth),
		Aggregate: folding(func(template *unstructured.Unstructured, rs []report) map[string]any {
			status := map[string]any{"observedGeneration": observedGeneration(template, rs, false)}
			setPhase(status, []string{"Terminating", "Progressing", "Disabling", "Initial", "Healthy", "Disabled"}, "Initial",
				rs)
			setMessages(status, rs)
			step(status, rs)
			for _, part := range []string{"canaryStatus", "blueGreenStatus"} {
				if folded := rolloutPart(rs, part); folded != nil {
					status[part] = folded
				}
			}
			// A rollout counts as running or ended if that is so in any cluster, and as succeeded only if it is so in all.
			bad := func(kind string) bool { return kind != "Succeeded" }
			setConditions(status, rs, bad, "lastUpdateTime", "lastTransitionTime")
			return dropNew(status, template, "blueGreenStatus", "currentStepIndex", "currentStepState")
		}),
	}
}

// step sets the state of the cluster with the lowest step.
func step(status map[string]any, rs []report) {
	lowest, of, ok := least(rs, "currentStepIndex")
	if !ok {
		return
	}
	status["currentStepIndex"] = lowest
	setText(status, "currentStepState", text(of.status, "currentStepState"))
}

// rolloutPart aggregates the strategy part of the clusters' statuses; nil if none has it.
func rolloutPart(rs []report, part string) map[string]any {
	var parts []report
	for _, r := range rs {
		if p := object(r.status, part); p != nil {
			parts = append(parts, report{cluster: r.cluster, status: p})
		}
	}
	if parts == nil {
		return nil
	}
	counters := []string{"canaryReplicas", "canaryReadyReplicas"}
	if part == "blueGreenStatus" {
		counters = []string{"updatedReplicas", "updatedReadyReplicas"}
	}
	status := sums(parts, counters...)
	step(status, parts)
	if _, of, ok := least(parts, "currentStepIndex"); ok {
		if next, ok := of.status["nextStepIndex"]; ok {
			status["nextStepIndex"] = runtime.DeepCopyJSONValue(next)
		}
	}
	for _, name := range []string{
		"observedRolloutID", "rolloutHash", "stableRevision", "canaryRevision", "updatedRevision", "podTemplateHash",
		"finalisingStep",
	} {
		setText(status, name, common(parts, name))
	}
	setMessages(status, parts)
	setText(status, "lastUpdateTime", latest(textsOf(parts, "lastUpdateTime")...))
	return status
}

func kruiseRolloutHealth(obj, status map[string]any) interpret.Health {
	progressing := conditionText(status, "Progressing", "reason")
	switch phase := text(status, "phase"); {
	case phase == "Terminating", phase == "Disabling":
		return interpret.Progressing
	case progressing == "Cancelling", conditionText(status, "Succeeded", "status") == "False":
		return interpret.Degraded
	case phase == "Healthy", phase == "Disabled":
		return interpret.Healthy
	case yes(obj, "spec", "strategy", "paused"), progressing == "Paused":
		return interpret.Suspended
	}
	for _, part := range rolloutStates {
		if text(object(status, part...), "currentStepState") == "StepPaused" {
			return interpret.Suspended
		}
	}
	return interpret.Progressing
}

// batchRelease is created by Kruise Rollouts in the member. It is no template.
func batchRelease() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: reflectWhole,
		Health: judgedFresh(func(obj, status map[string]any) interpret.Health {
			switch {
			case text(status, "phase") == "Completed":
				return interpret.Healthy
			case yes(obj, "spec", "releasePlan", "paused"):
				return interpret.Suspended
			}
			return interpret.Progressing
		}),
	}
}

// trafficRouting is the TrafficRouting of Kruise Rollouts.
func trafficRouting() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: reflectWhole,
		Health: judgedFresh(func(_, status map[string]any) interpret.Health {
			if phase := text(status, "phase"); phase == "Healthy" || phase == "Progressing" {
				return interpret.Healthy // Progressing is its normal state while it routes
			}
			return interpret.Progressing
		}),
		Aggregate: folding(func(template *unstructured.Unstructured, rs []report) map[string]any {
			status := map[string]any{"observedGeneration": observedGeneration(template, rs, false)}
			setPhase(status, []string{"Terminating", "Finalizing", "Initial", "Progressing", "Healthy"}, "Initial", rs)
			setMessages(status, rs)
			return status
		}),
	}
}
