package builtin

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// imagePullJob is OpenKruise's ImagePullJob, v1alpha1 and v1beta1. Failed nodes are listed as cluster/node.
func imagePullJob() *interpret.Hooks {
	h := pulling(func(status map[string]any) bool { return number(status, "failed") > 0 })
	h.Aggregate = folding(func(_ *unstructured.Unstructured, rs []report) map[string]any {
		status := sums(rs, "desired", "active", "succeeded", "failed")
		span(status, rs, "startTime", "completionTime")
		setMessages(status, rs)
		gather(status, rs, "failedNodes", func(cluster string, node any) any {
			name, _ := node.(string)
			return cluster + "/" + name
		})
		return status
	})
	return h
}

// imageListPullJob is OpenKruise's ImageListPullJob, which creates an ImagePullJob per image. Its counters count these.
func imageListPullJob() *interpret.Hooks {
	h := pulling(func(status map[string]any) bool { return len(list(status, "failedImageStatuses")) > 0 })
	h.Aggregate = folding(func(_ *unstructured.Unstructured, rs []report) map[string]any {
		status := sums(rs, "desired", "active", "completed", "succeeded")
		span(status, rs, "startTime", "completionTime")
		gather(status, rs, "failedImageStatuses", attributed("message"))
		return status
	})
	return h
}

// immutablePullSecrets keeps the pullSecrets with which the member's object was created, so that other changes arrive.
func immutablePullSecrets(desired, observed map[string]any) []clash {
	path := []string{"spec", "pullSecrets"}
	want, have := list(desired, path...), field(observed, path...)
	if kept, _ := have.([]any); reflect.DeepEqual(want, kept) || len(want)+len(kept) == 0 {
		return nil
	}
	return []clash{{path, have, "pullSecrets are unchanged, but the template has others"}}
}

// pulling has the hooks that both kinds share. Their pullSecrets are immutable. failed reports whether a pull failed.
func pulling(failed func(status map[string]any) bool) *interpret.Hooks {
	return &interpret.Hooks{
		Retain: retainImmutable(immutablePullSecrets),
		Reflect: func(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			status := interpret.WholeStatus(observed)
			if c := keptCondition(observed); c != nil && status != nil {
				status["conditions"] = append(list(status, "conditions"), c)
			}
			return status, nil
		},
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			status := object(observed.Object, "status")
			lasting := text(observed.Object, "spec", "completionPolicy", "type") == "Never"
			switch done := text(status, "completionTime") != ""; {
			case status == nil:
				return interpret.Progressing, nil
			case (done || lasting) && failed(status):
				return interpret.Degraded, nil
			case done, lasting:
				return interpret.Healthy, nil
			}
			return interpret.Progressing, nil
		},
		Dependencies: func(_ context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference,
			error) {
			return interpret.SortDependencies(secretsNamed(obj, list(obj.Object, "spec", "pullSecrets"))), nil
		},
	}
}
