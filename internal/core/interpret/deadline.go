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
	"github.com/argosy-io/argosy/internal/core/fields"
	"github.com/argosy-io/argosy/internal/core/text"
)

// ProgressDeadline is how long an object may be on its way without progress if it does not say itself, as Kubernetes
// has it.
const ProgressDeadline = 600 * time.Second

// ReasonDeadlineExceeded: the object made no progress until its deadline.
//
//reference:reason Progressing of Work
const ReasonDeadlineExceeded = "ProgressDeadlineExceeded"

// pace is whether waiting says anything about an object.
type pace int

const (
	watched pace = iota // it is to get on
	// a part of it is held back on purpose: nothing starts to count, and what was overdue before stays so
	held
	free // it may take as long as it likes
)

// Overdue judges an object that is on its way by the time that it has been without progress: Degraded once its deadline
// is over, until it goes on, and FailureSettle after its controller has begun to say that it fails. Other healths stay
// as they are.
//
// was is the condition that it returned last, nil for none, and progressed says that the object has moved since; only a
// new status can say that, so that the condition costs no write of its own. It is dated when the object moved last; nil
// when there is no deadline. repeated is Repeated of the reports; what it does not know is judged by the member's
// clock. again is when to look again though nothing happens; 0 for never.
func Overdue(health Health, observed *unstructured.Unstructured, was *metav1.Condition, progressed bool,
	repeated map[string]bool, now time.Time) (_ Health, condition *metav1.Condition, again time.Duration) {
	if health != Progressing {
		return health, nil, 0
	}
	deadline, p := paceOf(observed)
	if over := was != nil && was.Status == metav1.ConditionFalse; over && !progressed {
		if was.Reason == ReasonDeadlineExceeded && p != free || failureNamed(observed, was.Reason) != nil {
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
		return !again || !progressed && was != nil && was.Reason == f.kind // it was fresh then
	}
	if f := failureOf(observed, fresh); f != nil {
		if settled := f.countsFrom(since.Time, now).Add(FailureSettle); p != watched || settled.Before(end) {
			end, deadline, p, reason = settled, FailureSettle, watched, f.kind
			over.Reason, over.Message = f.kind, fmt.Sprintf("%s for %s without progress: %s", f.kind, FailureSettle,
				text.Cut(f.message, failureShown))
		}
	} else if p == held && fails(observed) {
		p = watched // an error that may be over, and may not be: nobody waits for it without end
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

// Progressed says whether a reported status tells of progress since another: a counter of it, its phase, or the
// template that it is of has changed. The generation of the object itself says nothing, as the hub steers rollouts by
// its spec, and nor do counters deeper down, as those of restarts.
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

// moved says whether a field of one status that tells of progress is otherwise in the other. API servers leave out what
// is zero.
func moved(a, b map[string]any) bool {
	for name, v := range a {
		switch v := v.(type) {
		case float64:
			// What is expected is said by the spec, too.
			if other, _ := b[name].(float64); name != "generation" && name != "observedGeneration" &&
				!strings.HasPrefix(name, "expected") && v != other {
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

// paceOf is the deadline of an object, and whether it counts.
func paceOf(observed *unstructured.Unstructured) (time.Duration, pace) {
	spec, status := fields.Object(observed.Object, "spec"), fields.Object(observed.Object, "status")
	switch kind := observed.GroupVersionKind().GroupKind(); {
	case RunsOnce(kind) && len(status) > 0, // it runs as long as its work takes
		kind.Group == "rollouts.kruise.io", // its steps wait for people
		// and so do these; its controller keeps the deadline
		kind.Group == "argoproj.io" && kind.Kind == "Rollout" && fields.Text(status, "phase") != "":
		return 0, free
	}
	if paused(spec) {
		return 0, free
	}
	p := watched
	for key := range observed.GetAnnotations() {
		if key == "rollouts.kruise.io/in-progressing" || key == "batchrelease.rollouts.kruise.io/control-info" {
			p = held
		}
	}
	if partial(spec) && canary(status) {
		p = held
	}
	if n, ok := fields.Whole(spec["progressDeadlineSeconds"]); ok && n > 0 {
		if n >= math.MaxInt32 {
			return 0, free // Kubernetes' word for none
		}
		return time.Duration(n) * time.Second, p
	}
	// No pod is available sooner.
	ready := max(fields.Number(spec, "minReadySeconds"),
		fields.Number(spec, "updateStrategy", "rollingUpdate", "minReadySeconds"), 0)
	return ProgressDeadline + time.Duration(min(ready, math.MaxInt32))*time.Second, p
}

// workloads are the specs by which something is rolled out: that of the object, and the one that a UnitedDeployment
// makes.
func workloads(spec map[string]any) []map[string]any {
	all := []map[string]any{spec}
	for name := range fields.Object(spec, "template") {
		if strings.HasSuffix(name, "Template") {
			all = append(all, fields.Object(spec, "template", name, "spec"))
		}
	}
	return all
}

// paused says whether the owner of a workload has stopped it.
func paused(spec map[string]any) bool {
	for _, s := range workloads(spec) {
		if fields.Yes(s, "paused") || fields.Yes(s, "suspend") || fields.Yes(s, "updateStrategy", "paused") ||
			fields.Yes(s, "updateStrategy", "rollingUpdate", "paused") {
			return true
		}
	}
	return false
}

// partial says whether a workload is to be updated in part only.
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

// some says whether a number or a percentage is more than nothing.
func some(v any) bool {
	if n, ok := fields.Whole(v); ok {
		return n > 0
	}
	s, _ := v.(string)
	return strings.Trim(s, "0.%") != ""
}

// canary says whether some pods of a workload are new, and others are not.
func canary(status map[string]any) bool {
	for _, c := range [][2]string{{"updatedReplicas", "replicas"}, {"updatedNumberScheduled", "desiredNumberScheduled"},
		{"updatedPods", "matchedPods"}} {
		if fields.Number(status, c[0]) < fields.Number(status, c[1]) {
			return true
		}
	}
	return false
}
