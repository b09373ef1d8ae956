package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// cloneSet is OpenKruise's CloneSet, v1alpha1 (its strategy flat in updateStrategy) and v1beta1 (in rollingUpdate).
//
// Revise sets the replicas alone: partition, maxUnavailable, maxSurge and podsToDelete go to each cluster as they are
// written, and are not yet shares of the whole.
func cloneSet() *interpret.Hooks {
	counters := []string{
		"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas",
		"updatedAvailableReplicas", "expectedUpdatedReplicas",
	}
	return &interpret.Hooks{
		Replicas: replicas,
		Revise:   revise,
		Retain: func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			retained, err := retainReplicas(ctx, desired, observed)
			if err != nil {
				return nil, err
			}
			if retained, err = retainPodsToDelete(retained, observed); err != nil {
				return nil, err
			}
			return retainRollout(ctx, retained, observed)
		},
		Reflect: reflectWhole,
		Health:  cloneSetHealth,
		Aggregate: func(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			rs, err := reports(items)
			if err != nil {
				return nil, err
			}
			status := sums(rs, counters...)
			if err := kruiseStatus(status, template, rs); err != nil {
				return nil, err
			}
			status["observedGeneration"] = observedGeneration(template, rs, reach(template, status, "updatedAvailableReplicas"))
			return settled(template, status), nil
		},
	}
}

// kruiseStatus folds what CloneSet and Advanced StatefulSet have beside counters.
func kruiseStatus(status map[string]any, template *unstructured.Unstructured, rs []report) error {
	revisions(status, rs)
	if n, ok := most(rs, "collisionCount"); ok {
		status["collisionCount"] = n
	}
	failure := func(kind string) bool { return strings.HasPrefix(kind, "Failed") }
	if c := conditions(rs, failure, "lastUpdateTime", "lastTransitionTime"); c != nil {
		status["conditions"] = c
	}
	// Autoscalers select pods by it; it is the same everywhere, so it needs no cluster to say it.
	raw := object(template.Object, "spec", "selector")
	if raw == nil {
		return nil
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return fmt.Errorf("decode spec.selector: %w", err)
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return fmt.Errorf("read spec.selector: %w", err)
	}
	setText(status, "labelSelector", s.String())
	return nil
}

// strategy is a field of the update strategy, of either version; nil when neither has it.
func strategy(obj *unstructured.Unstructured, name string) any {
	s := object(obj.Object, "spec", "updateStrategy")
	if v := field(s, "rollingUpdate", name); v != nil {
		return v
	}
	return s[name]
}

// partitionOf is how many of total pods a CloneSet keeps on the old revision. A percentage rounds up, but only 100% keeps all.
func partitionOf(v any, total int64) (int64, error) {
	n, err := share(v, total, true, int64(0))
	if err != nil {
		return 0, fmt.Errorf("partition: %w", err)
	}
	if s, percent := v.(string); percent && s != "100%" && total > 1 && n == total {
		n--
	}
	return min(max(n, 0), total), nil
}

// budget is how many of total pods may be unavailable while a CloneSet updates.
func budget(obj *unstructured.Unstructured, total int64) (int64, error) {
	surge, err := share(strategy(obj, "maxSurge"), total, true, int64(0))
	if err != nil {
		return 0, fmt.Errorf("maxSurge: %w", err)
	}
	if strategy(obj, "paused") == true {
		surge = 0
	}
	n, err := share(strategy(obj, "maxUnavailable"), total, surge == 0, "20%")
	if err != nil {
		return 0, fmt.Errorf("maxUnavailable: %w", err)
	}
	return n, nil
}

// cloneSetHealth believes FailedScale and FailedUpdate only while the counters fall short as well: after one transient
// conflict the controller leaves them True on a CloneSet that is ready and updated.
func cloneSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	wanted, err := specNumber(observed, 1, "replicas")
	if err != nil {
		return interpret.Unknown, err
	}
	held, err := partitionOf(strategy(observed, "partition"), wanted)
	if err != nil {
		return interpret.Unknown, err
	}
	unavailable, err := budget(observed, wanted)
	if err != nil {
		return interpret.Unknown, err
	}
	status := object(observed.Object, "status")
	if !fresh(observed) {
		return interpret.Progressing, nil
	}
	if overdue(status) {
		return interpret.Degraded, nil
	}
	paused := strategy(observed, "paused") == true
	onDelete := text(observed.Object, "spec", "updateStrategy", "type") == "OnDelete"
	short := number(status, "replicas") != wanted || number(status, "availableReplicas") < wanted-unavailable
	if !paused && !onDelete {
		short = short || updatedAvailable(status) < wanted-held
	}
	switch {
	case short && (isTrue(status, "FailedScale") || isTrue(status, "FailedUpdate")):
		return interpret.Degraded, nil
	case short:
		return interpret.Progressing, nil
	case paused, held > 0 && number(status, "updatedReplicas") < wanted:
		return interpret.Suspended, nil
	}
	return interpret.Healthy, nil
}

// updatedAvailable are the pods of the new revision that are available. OpenKruise leaves the field out at zero, and its
// older versions do not have it: then at most as many as are ready of the new revision, and available of any.
func updatedAvailable(status map[string]any) int64 {
	if n, ok := whole(status["updatedAvailableReplicas"]); ok {
		return n
	}
	return min(number(status, "updatedReadyReplicas"), number(status, "availableReplicas"))
}

// retainPodsToDelete drops the names that the member's controller has removed from its list because the pods are gone;
// giving them back would be refused, or never end. A template of another generation may name anew what it likes.
func retainPodsToDelete(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	path := []string{"spec", "scaleStrategy", "podsToDelete"}
	names, left := list(desired.Object, path...), list(observed.Object, path...)
	const made = workv1alpha2.TemplateGenerationAnnotation
	if len(names) == 0 || desired.GetAnnotations()[made] != observed.GetAnnotations()[made] {
		return desired, nil
	}
	kept := slices.DeleteFunc(slices.Clone(names), func(name any) bool { return !slices.Contains(left, name) })
	if len(kept) == len(names) {
		return desired, nil
	}
	retained := desired.DeepCopy()
	return retained, unstructured.SetNestedSlice(retained.Object, kept, path...)
}

// rolloutAnnotations are on a workload that Kruise Rollouts is rolling out.
var rolloutAnnotations = []string{"rollouts.kruise.io/in-progressing", "batchrelease.rollouts.kruise.io/control-info"}

// retainRollout leaves a workload that Kruise Rollouts drives in the member to it: the template's partition, most of all,
// would release in one go what is being released step by step.
func retainRollout(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	driven := func(key string) bool { return observed.GetAnnotations()[key] != "" }
	if !slices.ContainsFunc(rolloutAnnotations, driven) {
		return desired, nil
	}
	paths := [][]string{{"spec", "minReadySeconds"}}
	for _, f := range []string{"partition", "paused", "maxSurge", "maxUnavailable", "minReadySeconds"} {
		paths = append(paths, []string{"spec", "updateStrategy", f}, []string{"spec", "updateStrategy", "rollingUpdate", f})
	}
	for _, key := range rolloutAnnotations {
		paths = append(paths, []string{"metadata", "annotations", key})
	}
	return retainFields(paths...)(ctx, desired, observed)
}
