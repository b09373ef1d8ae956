package builtin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func pod() *interpret.Hooks {
	return &interpret.Hooks{
		Replicas: func(_ context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			req, err := interpret.Requirements(obj)
			return 1, req, err
		},
		Retain:    retainPod,
		Health:    judged(podHealth),
		Aggregate: ofReports(aggregatePod),
	}
}

// retainPod keeps the member's spec, which is mostly immutable after defaulting and scheduling. From desired it takes
// only the mutable fields: images, the deadline, added tolerations.
func retainPod(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	have := object(observed.Object, "spec")
	if have == nil {
		return desired, nil
	}
	want := object(desired.Object, "spec")
	spec := runtime.DeepCopyJSON(have)
	for _, containers := range []string{"containers", "initContainers"} {
		images := map[string]string{}
		for _, c := range objects(want, containers) {
			name := text(c, "name")
			if _, twice := images[name]; twice || name == "" { // its counterpart is not known
				images[name] = ""
				continue
			}
			images[name] = text(c, "image")
		}
		for _, c := range objects(spec, containers) {
			setText(c, "image", images[text(c, "name")])
		}
	}
	if v, ok := want["activeDeadlineSeconds"]; ok {
		spec["activeDeadlineSeconds"] = v
	}
	tolerations := list(spec, "tolerations")
	for _, t := range list(want, "tolerations") {
		if !slices.ContainsFunc(tolerations, func(have any) bool { return equal(have, t) }) {
			tolerations = append(tolerations, runtime.DeepCopyJSONValue(t))
		}
	}
	if tolerations != nil {
		spec["tolerations"] = tolerations
	}
	retained := desired.DeepCopy()
	retained.Object["spec"] = spec
	return retained, nil
}

func podHealth(obj, status map[string]any) interpret.Health {
	switch text(status, "phase") {
	case "Succeeded":
		return interpret.Healthy
	case "Failed":
		return interpret.Degraded
	case "Running":
		if isTrue(status, "Ready") {
			return interpret.Healthy
		}
	case "Unknown":
		return interpret.Unknown
	}
	for _, containers := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range objects(status, containers) {
			reason := text(c, "state", "waiting", "reason")
			if strings.HasSuffix(reason, "BackOff") || strings.HasSuffix(reason, "Error") ||
				strings.HasPrefix(reason, "Err") || reason == "InvalidImageName" {
				return interpret.Degraded
			}
		}
	}
	return interpret.Progressing
}

// podPhases are sorted by urgency, most urgent first.
var podPhases = []string{"Failed", "Pending", "Unknown", "Running", "Succeeded"}

// aggregatePod returns the most urgent phase (Pending if a cluster has no pod yet) and the containers of all clusters.
// The rest of the status belongs to the hub.
func aggregatePod(template *unstructured.Unstructured, rs []report) (*unstructured.Unstructured, error) {
	status := map[string]any{}
	if was := interpret.WholeStatus(template); was != nil {
		status = was
	}
	status["phase"] = firstOf(podPhases, "Pending", rs)
	for _, containers := range []string{"containerStatuses", "initContainerStatuses"} {
		var all []any
		for _, r := range rs {
			for _, c := range objects(r.status, containers) {
				copied := map[string]any{}
				for _, f := range []string{"name", "image", "imageID", "ready", "restartCount", "started", "state", "lastState"} {
					if v, ok := c[f]; ok {
						copied[f] = runtime.DeepCopyJSONValue(v)
					}
				}
				all = append(all, copied)
			}
		}
		// The API server requires that a container of a pod that does not restart stays terminated. It checks the first one
		// of a name, so put a terminated one first.
		slices.SortStableFunc(all, func(a, b any) int {
			x, y := a.(map[string]any), b.(map[string]any)
			return cmp.Or(cmp.Compare(text(x, "name"), text(y, "name")), cmp.Compare(running(x), running(y)))
		})
		delete(status, containers)
		if all != nil {
			status[containers] = all
		}
	}
	return settledNative(template, status), nil
}

func running(container map[string]any) int {
	if object(container, "state", "terminated") != nil {
		return 0
	}
	return 1
}

// firstOf returns the first of the phases that any cluster is in. A cluster without a status or with an unknown phase
// is in the initial phase, and so is a template without clusters.
func firstOf(phases []string, initial string, rs []report) string {
	best := len(phases)
	seen := func(phase string) {
		i := slices.Index(phases, phase)
		if i < 0 {
			i = slices.Index(phases, initial)
		}
		best = min(best, i)
	}
	for _, r := range rs {
		seen(text(r.status, "phase"))
	}
	if len(rs) == 0 {
		return initial
	}
	return phases[best]
}
