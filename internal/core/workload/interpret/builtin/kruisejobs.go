package builtin

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// broadcastJob is OpenKruise's BroadcastJob, v1alpha1 and v1beta1, with equal fields here. It runs a pod on every
// matching node, so there is nothing to divide. Parallelism is per cluster.
func broadcastJob() *interpret.Hooks {
	return &interpret.Hooks{
		Health: judged(broadcastJobHealth),
		Aggregate: folding(func(_ *unstructured.Unstructured, rs []report) map[string]any {
			status := sums(rs, "active", "succeeded", "failed", "desired")
			setPhase(status, []string{"failed", "running", "paused", "completed"}, "running", rs)
			span(status, rs, "startTime", "completionTime")
			var conditions []any
			if trueInAll(rs, "Complete") {
				conditions = append(conditions, jobCondition("Complete", rs, latest))
			}
			if failed := whereTrue(rs, "Failed"); len(failed) > 0 {
				conditions = append(conditions, jobCondition("Failed", failed, earliest))
			}
			if conditions != nil {
				status["conditions"] = conditions
			}
			return status
		}),
	}
}

// jobCondition returns a condition that is True in the named clusters, with a time from them.
func jobCondition(kind string, rs []report, when func(times ...string) string) map[string]any {
	clusters, reason := make([]string, len(rs)), ""
	for i, r := range rs {
		clusters[i] = r.cluster
		if reason == "" {
			reason = conditionText(r.status, kind, "reason")
		}
	}
	c := map[string]any{"type": kind, "status": "True", "message": kind + " in " + words.Names(clusters, maxMessages)}
	setText(c, "reason", reason)
	for _, t := range []string{"lastProbeTime", "lastTransitionTime"} {
		var times []string
		for _, r := range rs {
			times = append(times, conditionText(r.status, kind, t))
		}
		setText(c, t, when(times...))
	}
	return c
}

// broadcastJobHealth uses the phase, which depends on the failure policy: with Continue a failed pod is only counted. A
// job that never completes is healthy while no pod has failed.
func broadcastJobHealth(obj, status map[string]any) interpret.Health {
	spec := object(obj, "spec")
	phase := text(status, "phase")
	lasting := text(spec, "completionPolicy", "type") == "Never"
	tolerant := text(spec, "failurePolicy", "type") == "Continue"
	switch {
	case phase == "failed", isTrue(status, "Failed"):
		return interpret.Degraded
	case phase == "completed", isTrue(status, "Complete"):
		return interpret.Healthy
	case text(spec, "failurePolicy", "type") == "Pause" && phase == "paused" && number(status, "failed") > 0:
		return interpret.Degraded // the controller paused it because of the failure
	case yes(spec, "paused"), phase == "paused":
		return interpret.Suspended
	case status == nil:
		return interpret.Progressing
	case lasting && (tolerant || number(status, "failed") == 0):
		return interpret.Healthy
	case text(status, "startTime") != "" && number(status, "desired") == 0:
		return interpret.Healthy // no node matches
	}
	return interpret.Progressing
}

// advancedCronJob is OpenKruise's AdvancedCronJob, v1alpha1 and v1beta1. It runs in every cluster that has it. The
// template's status lists active jobs without clusters, because the schema has no field for them; the binding has them
// per cluster.
func advancedCronJob() *interpret.Hooks {
	return &interpret.Hooks{
		Health: pausedOrHealthy("paused"),
		Aggregate: folding(func(_ *unstructured.Unstructured, rs []report) map[string]any {
			status := map[string]any{}
			setText(status, "type", common(rs, "type"))
			gather(status, rs, "active", asIs)
			setText(status, "lastScheduleTime", latest(textsOf(rs, "lastScheduleTime")...))
			return status
		}),
		Dependencies: func(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference,
			error) {
			deps, err := podDependencies(ctx, obj)
			if err != nil {
				return nil, err
			}
			pull := list(obj.Object, "spec", "template", "imageListPullJobTemplate", "spec", "pullSecrets")
			return interpret.SortDependencies(append(deps, secretsNamed(obj, pull)...)), nil
		},
	}
}

// pausedOrHealthy returns the health of kinds without failures: Suspended if the spec's field pauses it, otherwise
// Healthy.
func pausedOrHealthy(pausedBy string) healthHook {
	return judged(func(obj, _ map[string]any) interpret.Health {
		if yes(obj, "spec", pausedBy) {
			return interpret.Suspended
		}
		return interpret.Healthy
	})
}

// secretsNamed returns the named Secrets in the namespace of obj.
func secretsNamed(obj *unstructured.Unstructured, secrets []any) []configv1alpha1.DependentObjectReference {
	var deps []configv1alpha1.DependentObjectReference
	for _, s := range secrets {
		if name, _ := s.(string); name != "" {
			deps = append(deps, configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret",
				Namespace: obj.GetNamespace(), Name: name})
		}
	}
	return deps
}

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
		Health: judged(func(obj, status map[string]any) interpret.Health {
			lasting := text(obj, "spec", "completionPolicy", "type") == "Never"
			switch done := text(status, "completionTime") != ""; {
			case status == nil:
				return interpret.Progressing
			case (done || lasting) && failed(status):
				return interpret.Degraded
			case done, lasting:
				return interpret.Healthy
			}
			return interpret.Progressing
		}),
		Dependencies: needing(func(obj *unstructured.Unstructured) []configv1alpha1.DependentObjectReference {
			return secretsNamed(obj, list(obj.Object, "spec", "pullSecrets"))
		}),
	}
}

// ephemeralJob is OpenKruise's EphemeralJob. Each cluster counts the pods that its selector matches. A cluster deletes
// the object half an hour after it finished, also without a TTL.
func ephemeralJob() *interpret.Hooks {
	return &interpret.Hooks{
		Health: judged(ephemeralJobHealth),
		Aggregate: folding(func(_ *unstructured.Unstructured, rs []report) map[string]any {
			status := sums(rs, "match", "running", "succeeded", "waiting", "failed")
			setPhase(status, []string{"Error", "Failed", "Unknown", "Running", "Paused", "Waiting", "Succeeded"}, "Waiting", rs)
			span(status, rs, "startTime", "completionTime")
			bad := func(kind string) bool { return kind != "JobSucceeded" && kind != "Initialized" }
			setConditions(status, rs, bad, "lastProbeTime", "lastTransitionTime")
			return status
		}),
	}
}

func ephemeralJobHealth(obj, status map[string]any) interpret.Health {
	switch phase := text(status, "phase"); {
	case number(status, "failed") > 0, phase == "Failed", phase == "Error":
		return interpret.Degraded
	case phase == "Succeeded":
		return interpret.Healthy
	case yes(obj, "spec", "paused"), phase == "Paused":
		return interpret.Suspended
	}
	return interpret.Progressing
}

// containerRecreateRequest is OpenKruise's ContainerRecreateRequest, v1alpha1 and v1beta1. It goes only to the cluster
// of the pod (core/workload/fleet). If several clusters have a pod with the name, each restarts its own.
func containerRecreateRequest() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: retainRecreateRequest,
		Health: judged(func(_, status map[string]any) interpret.Health {
			failed := slices.ContainsFunc(objects(status, "containerRecreateStates"), func(c map[string]any) bool {
				return text(c, "phase") == "Failed"
			})
			switch phase := text(status, "phase"); {
			case phase == "Failed", failed && phase != "Pending" && phase != "Recreating":
				return interpret.Degraded
			case phase == "Succeeded", phase == "Completed":
				return interpret.Healthy
			}
			return interpret.Progressing
		}),
		Aggregate: folding(func(template *unstructured.Unstructured, rs []report) map[string]any {
			answered := slices.DeleteFunc(slices.Clone(rs), func(r report) bool { return r.status == nil })
			if len(answered) == 1 {
				return dropNew(copied(answered[0]), template, "conditions", "containerStatusSnapshot")
			}
			status := map[string]any{}
			setPhase(status, []string{"Failed", "Recreating", "Pending", "Completed", "Succeeded"}, "Pending", answered)
			setEnd(status, answered, "completionTime")
			setMessages(status, answered)
			gather(status, answered, "containerRecreateStates", attributed("message"))
			return status
		}),
	}
}

// retainRecreateRequest keeps the member's spec, which its webhook completes and makes immutable, and the labels that
// its agents use to find the request.
func retainRecreateRequest(_ context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	retained := desired
	if spec := object(observed.Object, "spec"); spec != nil {
		retained = desired.DeepCopy()
		retained.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	return retainKeys(retained, observed, "labels", func(key string) bool {
		return strings.HasPrefix(key, "crr.apps.kruise.io/")
	}), nil
}

// retainKeys sets the labels or annotations that belong to the member to the observed values. It returns desired itself
// if nothing changes.
func retainKeys(desired, observed *unstructured.Unstructured, in string,
	theirs func(key string) bool) *unstructured.Unstructured {
	have, want := object(observed.Object, "metadata", in), object(desired.Object, "metadata", in)
	changes := map[string]any{}
	for key := range want {
		if theirs(key) && have[key] != want[key] {
			changes[key] = nil
		}
	}
	for key, value := range have {
		if _, ok := value.(string); ok && theirs(key) && value != want[key] {
			changes[key] = value
		}
	}
	if len(changes) == 0 {
		return desired
	}
	retained := desired.DeepCopy()
	values := fields.Ensure(retained.Object, "metadata", in)
	for key, value := range changes {
		if value == nil {
			delete(values, key)
		} else {
			values[key] = value
		}
	}
	fields.DropEmpty(fields.Object(retained.Object, "metadata"), in)
	return retained
}
