package builtin

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// containerRecreateRequest is OpenKruise's ContainerRecreateRequest, v1alpha1 and v1beta1. It goes only to the cluster
// of the pod (core/workload/fleet). If several clusters have a pod with the name, each restarts its own.
func containerRecreateRequest() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: retainRecreateRequest,
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			status := object(observed.Object, "status")
			failed := slices.ContainsFunc(objects(status, "containerRecreateStates"), func(c map[string]any) bool {
				return text(c, "phase") == "Failed"
			})
			switch phase := text(status, "phase"); {
			case phase == "Failed", failed && phase != "Pending" && phase != "Recreating":
				return interpret.Degraded, nil
			case phase == "Succeeded", phase == "Completed":
				return interpret.Healthy, nil
			}
			return interpret.Progressing, nil
		},
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
