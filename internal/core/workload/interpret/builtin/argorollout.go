package builtin

import (
	"cmp"
	"context"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// argoRollout is the Rollout of Argo Rollouts, which is like a Deployment. The weights of its steps are relative and
// need no division. Its status has the generation as a string.
func argoRollout() *interpret.Hooks {
	counters := []string{"replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "HPAReplicas"}
	return &interpret.Hooks{
		Replicas: replicas,
		Revise:   revise,
		Retain:   retainReplicas,
		Reflect: reflectFields(append(counters, "observedGeneration", "phase", "message", "conditions", "selector",
			"currentStepIndex", "currentPodHash", "stableRS", "abort", "workloadObservedGeneration")...),
		Health: judgedFresh(argoRolloutHealth),
		Aggregate: folding(func(template *unstructured.Unstructured, rs []report) map[string]any {
			status := sumsOf(template, rs, counters...)
			setPhase(status, []string{"Degraded", "Progressing", "Paused", "Healthy"}, "Progressing", rs)
			setMessages(status, rs)
			for _, name := range []string{"selector", "currentPodHash", "stableRS"} {
				setText(status, name, common(rs, name))
			}
			if lowest, _, ok := least(rs, "currentStepIndex"); ok {
				status["currentStepIndex"] = lowest
			}
			bad := func(kind string) bool {
				return kind == "Paused" || kind == "InvalidSpec" || kind == "ReplicaFailure"
			}
			if c := conditions(rs, bad, "lastUpdateTime", "lastTransitionTime"); c != nil {
				status["conditions"] = c
			}
			status["observedGeneration"] = strconv.FormatInt(observedGeneration(template, rs,
				reach(template, status, "updatedReplicas", "availableReplicas")), 10)
			return status
		}),
		Dependencies: argoRolloutDependencies,
	}
}

func argoRolloutHealth(obj, status map[string]any) interpret.Health {
	switch phase := text(status, "phase"); {
	case phase == "Healthy":
		return interpret.Healthy
	case phase == "Degraded":
		return interpret.Degraded
	case phase == "Paused", yes(obj, "spec", "paused"):
		return interpret.Suspended
	}
	return interpret.Progressing
}

// argoRolloutDependencies returns the dependencies of its pods, the referenced workload, and the Services and analyses
// of its strategy. Without these Argo rejects it as invalid.
func argoRolloutDependencies(ctx context.Context,
	obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	deps, err := podDependencies(ctx, obj)
	if err != nil {
		return nil, err
	}
	need := func(apiVersion, kind, name string) {
		if name != "" && kind != "" {
			deps = append(deps, configv1alpha1.DependentObjectReference{APIVersion: apiVersion, Kind: kind,
				Namespace: obj.GetNamespace(), Name: name})
		}
	}
	if ref := object(obj.Object, "spec", "workloadRef"); ref != nil {
		need(cmp.Or(text(ref, "apiVersion"), "apps/v1"), text(ref, "kind"), text(ref, "name"))
	}
	strategy := object(obj.Object, "spec", "strategy")
	for _, path := range [][]string{
		{"canary", "canaryService"}, {"canary", "stableService"}, {"blueGreen", "activeService"},
		{"blueGreen", "previewService"},
	} {
		need("v1", "Service", text(strategy, path...))
	}
	analyses := []map[string]any{
		object(strategy, "canary", "analysis"), object(strategy, "blueGreen", "prePromotionAnalysis"),
		object(strategy, "blueGreen", "postPromotionAnalysis"),
	}
	for _, step := range objects(strategy, "canary", "steps") {
		analyses = append(analyses, object(step, "analysis"))
	}
	for _, analysis := range analyses {
		for _, t := range objects(analysis, "templates") {
			if name := text(t, "templateName"); !yes(t, "clusterScope") {
				need("argoproj.io/v1alpha1", "AnalysisTemplate", name)
			} else if name != "" {
				deps = append(deps, configv1alpha1.DependentObjectReference{APIVersion: "argoproj.io/v1alpha1",
					Kind: "ClusterAnalysisTemplate", Name: name})
			}
		}
	}
	return interpret.SortDependencies(deps), nil
}
