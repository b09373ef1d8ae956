package interpret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// ProgressDeadline is the default progress deadline, as in Kubernetes.
const ProgressDeadline = 600 * time.Second

// ReasonDeadlineExceeded: the object made no progress until its deadline.
//
//reference:reason Progressing of Work
const ReasonDeadlineExceeded = "ProgressDeadlineExceeded"

// pace is whether lack of progress of an object matters.
type pace int

const (
	watched pace = iota // progress is expected
	// paused on purpose in part: no deadline starts, but an exceeded one stays
	pausedInPart
	free // no deadline
)

// Overdue makes a Progressing object Degraded if it has had no progress within its deadline, until it continues, and
// FailureSettle after its controller has begun to report a failure. Other healths stay.
//
// was is the last returned condition or nil. progressed is true if the object has moved since; only a new status can
// show that, so the condition causes no write of its own.
// The returned condition has the time of the last progress; it is nil without a deadline. repeated is the result of
// Repeated; for other conditions the member's clock counts. again is the delay until the next check; 0 means never.
func Overdue(health Health, observed *unstructured.Unstructured, was *metav1.Condition, progressed bool,
	repeated map[string]bool, now time.Time) (_ Health, condition *metav1.Condition, again time.Duration) {
	if health != Progressing {
		return health, nil, 0
	}
	deadline, p := paceOf(observed)
	if over := was != nil && was.Status == metav1.ConditionFalse; over && !progressed {
		if was.Reason == ReasonDeadlineExceeded && p != free ||
			failureNamed(fields.Object(observed.Object, "status"), was.Reason) != nil {
			return Degraded, was, 0
		}
	}
	since := metav1.NewTime(now)
	if was != nil && !progressed {
		since = was.LastTransitionTime
	}
	over := metav1.Condition{Type: workv1alpha1.WorkProgressing, Status: metav1.ConditionFalse,
		Reason:  ReasonDeadlineExceeded,
		Message: fmt.Sprintf("Progressing, without progress for %s.", deadline), LastTransitionTime: metav1.NewTime(now)}
	end, reason := since.Add(deadline), workv1alpha1.WorkProgressing
	fresh := func(f *failure) bool {
		again, known := repeated[f.kind]
		if !known {
			return !f.at.Before(since.Add(-failureSkew))
		}
		return !again || !progressed && was != nil && was.Reason == f.kind // the failure counted then
	}
	if f := failureOf(observed, fresh); f != nil {
		if settled := f.countsFrom(since.Time, now).Add(FailureSettle); p != watched || settled.Before(end) {
			end, deadline, p, reason = settled, FailureSettle, watched, f.kind
			over.Reason, over.Message = f.kind, fmt.Sprintf("%s for %s without progress: %s", f.kind, FailureSettle,
				text.Cut(f.message, failureShown))
		}
	} else if p == pausedInPart && fails(observed) {
		p = watched // the error may be over; apply the deadline anyway
	}
	if p != watched {
		return health, nil, 0
	}
	if left := end.Sub(now); left > 0 {
		return health, &metav1.Condition{Type: workv1alpha1.WorkProgressing, Status: metav1.ConditionTrue, Reason: reason,
			Message: fmt.Sprintf("Progressing; unhealthy after %s without progress.", deadline), LastTransitionTime: since}, left
	}
	return Degraded, &over, 0
}

// Progressed reports whether a status shows progress over another: a changed counter, phase or template generation. The
// object's own generation does not count, because the hub controls rollouts through its spec, and nested counters such
// as restarts do not count either.
func Progressed(was, is *runtime.RawExtension) bool {
	if was == nil || is == nil {
		return (was == nil) != (is == nil)
	}
	if bytes.Equal(was.Raw, is.Raw) {
		return false
	}
	var before, after map[string]any
	if json.Unmarshal(was.Raw, &before) != nil || json.Unmarshal(is.Raw, &after) != nil {
		return false
	}
	return moved(before, after) || moved(after, before)
}

// moved reports whether a progress field differs between two statuses. API servers omit zeros.
func moved(a, b map[string]any) bool {
	for name, v := range a {
		switch v := v.(type) {
		case float64:
			// Expected counts change with the spec.
			if other, _ := b[name].(float64); name != GenerationField && name != "observedGeneration" &&
				name != CountedGenerationField && !strings.HasPrefix(name, "expected") && v != other {
				return true
			}
		case string:
			if other, _ := b[name].(string); name == "phase" && v != other {
				return true
			}
		}
	}
	return false
}

// paceOf returns the deadline of an object and whether it applies.
func paceOf(observed *unstructured.Unstructured) (time.Duration, pace) {
	spec, status := fields.Object(observed.Object, "spec"), fields.Object(observed.Object, "status")
	switch of := kind.Facts(observed); {
	case of.Once != nil && len(status) > 0, // runs have no deadline
		observed.GroupVersionKind().Group == "rollouts.kruise.io", // steps may wait for approval
		// steps may wait here too; its controller applies the deadline
		of.Refers != nil && of.Refers.Paces && fields.Text(status, "phase") != "":
		return 0, free
	}
	if paused(spec) {
		return 0, free
	}
	p := watched
	for key := range observed.GetAnnotations() {
		if key == "rollouts.kruise.io/in-progressing" || key == "batchrelease.rollouts.kruise.io/control-info" {
			p = pausedInPart
		}
	}
	if partial(spec) && canary(status) {
		p = pausedInPart
	}
	if n, ok := fields.Whole(spec["progressDeadlineSeconds"]); ok && n > 0 {
		if n >= math.MaxInt32 {
			return 0, free // Kubernetes uses MaxInt32 for no deadline
		}
		return time.Duration(n) * time.Second, p
	}
	// No pod becomes available before minReadySeconds.
	ready := max(fields.Number(spec, "minReadySeconds"),
		fields.Number(spec, "updateStrategy", "rollingUpdate", "minReadySeconds"), 0)
	return ProgressDeadline + time.Duration(min(ready, math.MaxInt32))*time.Second, p
}

// workloads returns the specs that are rolled out: the object's own, and the workload template of a UnitedDeployment.
func workloads(spec map[string]any) []map[string]any {
	all := []map[string]any{spec}
	for name := range fields.Object(spec, "template") {
		if strings.HasSuffix(name, "Template") {
			all = append(all, fields.Object(spec, "template", name, "spec"))
		}
	}
	return all
}

// paused reports whether the user has paused a workload.
func paused(spec map[string]any) bool {
	for _, s := range workloads(spec) {
		if fields.Yes(s, "paused") || fields.Yes(s, "suspend") || fields.Yes(s, "updateStrategy", "paused") ||
			fields.Yes(s, "updateStrategy", "rollingUpdate", "paused") {
			return true
		}
	}
	return false
}

// partial reports whether only a part of a workload is to be updated.
func partial(spec map[string]any) bool {
	for _, s := range workloads(spec) {
		for _, strategy := range []map[string]any{fields.Object(s, "updateStrategy"),
			fields.Object(s, "updateStrategy", "rollingUpdate")} {
			if some(strategy["partition"]) || strategy["selector"] != nil {
				return true
			}
		}
	}
	for _, partition := range fields.Object(spec, "updateStrategy", "manualUpdate", "partitions") {
		if some(partition) {
			return true
		}
	}
	return false
}

// some reports whether a number or percentage is above zero.
func some(v any) bool {
	if n, ok := fields.Whole(v); ok {
		return n > 0
	}
	s, _ := v.(string)
	return strings.Trim(s, "0.%") != ""
}

// canary reports whether some pods of a workload are updated and others are not.
func canary(status map[string]any) bool {
	for _, c := range [][2]string{{"updatedReplicas", "replicas"}, {"updatedNumberScheduled", "desiredNumberScheduled"},
		{"updatedPods", "matchedPods"}} {
		if fields.Number(status, c[0]) < fields.Number(status, c[1]) {
			return true
		}
	}
	return false
}
