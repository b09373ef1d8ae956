package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Outcome is the result of an attempt to carry out a Work. Report makes the Work's status from it.
type Outcome struct {
	// Manifest is the manifest of the Work. It is not needed for a Failure.
	Manifest *unstructured.Unstructured
	// Failure is set if the attempt failed. All other fields are ignored then.
	Failure *Failure
	// Reading is nil if the member has no object of this Work.
	Reading *Reading
	// HandsOff and Restored are the results of HandsOff and PauseReason; empty if the hub may write the object.
	HandsOff, Restored string
	// ScaledBy and Contested are the messages of the conditions ScaledByMember and Contested; empty removes the condition.
	ScaledBy, Contested string
}

// Failure is the reason why a Work could not be carried out.
type Failure struct {
	Cause error
	// Reason and Message of the condition Failure.
	Reason, Message string
	// Unreachable is true if the member did not answer or was not asked: an applied Work is still reported as applied.
	Unreachable bool
	// OtherHub is the message about the hub that manages the member instead of this one; empty for none.
	OtherHub string
	// Gone means that the member has no object of this Work.
	Gone bool
}

// RetainFault returns the error of the interpreter's Retain operation if that is the cause; else nil.
func (f *Failure) RetainFault() error {
	if fault := interpret.FaultOf(f.Cause, configv1alpha1.InterpreterOperationRetain); fault != nil {
		return fault
	}
	return nil
}

// Reading is the interpreter's view of a member's object.
type Reading struct {
	Object *unstructured.Unstructured
	Health interpret.Health
	Status *runtime.RawExtension
	// HealthErr and StatusErr are set if the interpreter could not read the health or the status.
	HealthErr, StatusErr error
}

const (
	// interpretRetry is the delay after which an object is read again that the interpreter could not read: the answer may
	// depend on a webhook.
	interpretRetry = 30 * time.Second
	// statusLimit bounds the bytes of a member's status in a Work. A controller there may write any.
	statusLimit = 256 << 10
	// workLimit bounds the bytes of a Work's manifests and status: etcd stores at most 1.5 MiB per object.
	workLimit = 1400 << 10
)

// Read asks the interpreter for the health and the status of observed, the object of w in the member.
func Read(ctx context.Context, i interpret.Interpreter, w *workv1alpha1.Work,
	observed *unstructured.Unstructured) *Reading {
	r := &Reading{Object: observed}
	if r.Health, r.HealthErr = i.Health(ctx, observed); r.HealthErr != nil {
		r.Health = interpret.Unknown
	}
	var status map[string]any
	if status, r.StatusErr = i.Reflect(ctx, observed); r.StatusErr != nil {
		return r
	}
	if status = interpret.WithRun(status, observed); status == nil {
		return r
	}
	_, last := lastReport(w)
	interpret.KeepCounted(status, last)
	raw, err := json.Marshal(status)
	if room := statusRoom(w); err == nil && len(raw) > room {
		err = fmt.Errorf("its status has %d bytes as JSON, but the hub stores at most %d per cluster", len(raw), room)
	}
	if r.StatusErr = err; err == nil {
		r.Status = &runtime.RawExtension{Raw: raw}
	}
	return r
}

// statusRoom returns the number of bytes that a status may have beside the manifests of w.
func statusRoom(w *workv1alpha1.Work) int {
	room := workLimit
	for i := range w.Spec.Workload.Manifests {
		room -= len(w.Spec.Workload.Manifests[i].Raw)
	}
	return max(0, min(statusLimit, room))
}

// Report returns the status of w after o, and the delay after which the object must be read again even if nothing
// changes; 0 for never. It does not change w.
func Report(w *workv1alpha1.Work, o Outcome, now time.Time) (workv1alpha1.WorkStatus, time.Duration) {
	s := status{w.Status.DeepCopy(), w, metav1.NewTime(now)}
	var again time.Duration
	switch {
	case w.DeletionTimestamp != nil:
		s.deletionBlocked(o)
	case o.Failure != nil:
		s.failed(o.Failure)
	default:
		again = s.attempted(o)
	}
	return *s.WorkStatus, again
}

// status is the status of work that Report builds.
type status struct {
	*workv1alpha1.WorkStatus
	work *workv1alpha1.Work
	now  metav1.Time
}

func (s status) set(kind string, value metav1.ConditionStatus, reason, message string, generation int64) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: value, Reason: reason, Message: message,
		ObservedGeneration: generation, LastTransitionTime: s.now})
}

func (s status) remove(kind string) { meta.RemoveStatusCondition(&s.Conditions, kind) }

// setOrRemove sets a condition to True, or removes it if message is empty.
func (s status) setOrRemove(kind, reason, message string, generation int64) {
	if message == "" {
		s.remove(kind)
	} else {
		s.set(kind, metav1.ConditionTrue, reason, message, generation)
	}
}

// deletionBlocked reports why the member's object is not deleted yet. The rest stays as it was before the deletion.
func (s status) deletionBlocked(o Outcome) {
	if o.HandsOff != "" {
		s.set(workv1alpha1.WorkHandsOff, metav1.ConditionTrue, workv1alpha1.ReasonHandsOff, o.HandsOff, s.work.Generation)
	}
	if o.Restored != "" {
		s.set(workv1alpha1.WorkHeldAfterRestore, metav1.ConditionTrue, workv1alpha1.ReasonRestored,
			PauseMessage(s.work, o.Manifest, o.Restored), s.work.Generation)
		s.set(workv1alpha1.WorkFailure, metav1.ConditionTrue, workv1alpha1.ReasonRestored, o.Restored, s.work.Generation)
	}
}

func (s status) failed(f *Failure) {
	s.dispatching(f.OtherHub)
	if f.Gone && !Over(s.work) {
		s.removeObject()
	}
	if !f.Unreachable {
		interpret.SetFault(&s.Conditions, configv1alpha1.InterpreterOperationRetain, f.RetainFault(), s.now)
	}
	if f.Unreachable && Applied(s.work) || Suspended(s.work) {
		return
	}
	s.notApplied(workv1alpha1.ReasonAppliedFailed, fmt.Sprintf("Failed to apply all manifests (0/%d): %v",
		len(s.work.Spec.Workload.Manifests), f.Cause))
	s.set(workv1alpha1.WorkFailure, metav1.ConditionTrue, f.Reason, f.Message, s.work.Generation) // the attempted one
}

// attempted reports an attempt without an error: the object was applied, or left alone for a known reason.
func (s status) attempted(o Outcome) (again time.Duration) {
	w := s.work
	s.dispatching("")
	interpret.SetFault(&s.Conditions, configv1alpha1.InterpreterOperationRetain, nil, s.now)
	s.setOrRemove(workv1alpha1.WorkScaledByMember, workv1alpha1.ReasonAutoscaled, o.ScaledBy, 0)
	s.setOrRemove(workv1alpha1.WorkHandsOff, workv1alpha1.ReasonHandsOff, o.HandsOff, w.Generation)
	switch {
	case o.HandsOff != "":
		if !Applied(w) && !Suspended(w) {
			s.notApplied(workv1alpha1.ReasonHandsOff, o.HandsOff)
			s.set(workv1alpha1.WorkFailure, metav1.ConditionTrue, workv1alpha1.ReasonHandsOff, o.HandsOff, appliedGeneration(w))
		}
	case o.Restored != "":
		message := PauseMessage(w, o.Manifest, o.Restored)
		s.set(workv1alpha1.WorkHeldAfterRestore, metav1.ConditionTrue, workv1alpha1.ReasonRestored, message, w.Generation)
		s.notApplied(workv1alpha1.ReasonRestored, message)
		s.set(workv1alpha1.WorkFailure, metav1.ConditionTrue, workv1alpha1.ReasonRestored, o.Restored, w.Generation)
	case Suspended(w):
		s.remove(workv1alpha1.WorkHeldAfterRestore)
		// Only the suspension keeps the Work from being applied now.
		if f := FailureOf(w); f != nil &&
			(f.Reason == workv1alpha1.ReasonHandsOff || f.Reason == workv1alpha1.ReasonRestored) {
			s.remove(workv1alpha1.WorkFailure)
		}
	default:
		s.remove(workv1alpha1.WorkHeldAfterRestore)
		s.set(workv1alpha1.WorkApplied, metav1.ConditionTrue, workv1alpha1.ReasonAppliedSuccessful,
			workv1alpha1.MessageApplied, w.Generation)
		s.remove(workv1alpha1.WorkFailure)
	}
	switch {
	case o.Reading != nil:
		again = s.read(o.Manifest, o.Reading)
	case !Over(w): // The last status of a finished object stays: with it, the object is not run again.
		s.removeObject()
	}
	s.setOrRemove(workv1alpha1.WorkContested, workv1alpha1.ReasonChangedRepeatedly, o.Contested, 0)
	return again
}

func (s status) dispatching(otherHub string) {
	switch {
	case Suspended(s.work):
		s.set(workv1alpha1.WorkDispatching, metav1.ConditionFalse, workv1alpha1.ReasonSuspendDispatching,
			workv1alpha1.MessageSuspended, 0)
	case otherHub != "":
		s.set(workv1alpha1.WorkDispatching, metav1.ConditionFalse, clusterv1alpha1.ReasonHeldByAnotherHub, otherHub, 0)
	default:
		s.set(workv1alpha1.WorkDispatching, metav1.ConditionTrue, workv1alpha1.ReasonDispatching,
			workv1alpha1.MessageDispatched, 0)
	}
}

// notApplied sets Applied to False, and keeps the generation that was applied last.
func (s status) notApplied(reason, message string) {
	s.set(workv1alpha1.WorkApplied, metav1.ConditionFalse, reason, message, appliedGeneration(s.work))
}

// removeObject removes what was reported of the member's object.
func (s status) removeObject() {
	s.ManifestStatuses = nil
	s.remove(workv1alpha1.WorkProgressing)
}

// read reports the member's object. If its status could not be read, the last one stays.
func (s status) read(manifest *unstructured.Unstructured, r *Reading) (again time.Duration) {
	interpret.SetFault(&s.Conditions, configv1alpha1.InterpreterOperationInterpretHealth, r.HealthErr, s.now)
	interpret.SetFault(&s.Conditions, configv1alpha1.InterpreterOperationInterpretStatus, r.StatusErr, s.now)
	if r.StatusErr != nil {
		return interpretRetry
	}
	health, again := s.judge(r)
	gvk := manifest.GroupVersionKind()
	s.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
			Namespace: manifest.GetNamespace(), Name: manifest.GetName()},
		Status: r.Status, Health: health.Karmada(),
	}}
	if r.HealthErr != nil {
		return interpretRetry
	}
	return again
}

// judge returns the health of the object, which is Degraded after a deadline without progress. The condition
// Progressing keeps the time of the last progress, so that a restart of the hub does not extend the deadline.
func (s status) judge(r *Reading) (health interpret.Health, again time.Duration) {
	health = r.Health
	was := meta.FindStatusCondition(s.Conditions, workv1alpha1.WorkProgressing)
	var condition *metav1.Condition
	if !Suspended(s.work) { // Else a user may be changing the object by hand.
		var before *runtime.RawExtension
		if len(s.ManifestStatuses) > 0 {
			before = s.ManifestStatuses[0].Status
		}
		progressed, repeated := false, map[string]bool(nil)
		if health == interpret.Progressing {
			progressed = was != nil && interpret.Progressed(before, r.Status)
			repeated = interpret.Repeated(before, r.Status)
		}
		health, condition, again = interpret.Overdue(health, r.Object, was, progressed, repeated, s.now.Time)
	}
	switch {
	case condition == nil:
		s.remove(workv1alpha1.WorkProgressing)
	case was == nil:
		s.Conditions = append(s.Conditions, *condition)
	default:
		*was = *condition // Not SetStatusCondition: the date changes although the status does not.
	}
	return health, again
}

// Applied reports whether the present generation of w was applied.
func Applied(w *workv1alpha1.Work) bool {
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == w.Generation
}

// FailureOf returns the condition that explains why w is not applied. It is nil if w is applied, and for a Work whose
// status an earlier version of the hub wrote. w may be nil.
func FailureOf(w *workv1alpha1.Work) *metav1.Condition {
	if w == nil {
		return nil
	}
	if f := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkFailure); f != nil &&
		f.Status == metav1.ConditionTrue {
		return f
	}
	return nil
}

// HealthOf returns the health that w reports of its object; empty if it reports none.
func HealthOf(w *workv1alpha1.Work) workv1alpha1.ResourceHealth {
	if len(w.Status.ManifestStatuses) == 0 {
		return ""
	}
	return w.Status.ManifestStatuses[0].Health
}

// Urgent reports whether a status must be written at once: the health or a condition changed. Mere progress may wait,
// and so may the first report of a new object, unless the member deletes the object when it has finished.
func Urgent(was, is *workv1alpha1.Work, observed *unstructured.Unstructured) bool {
	created := len(was.Status.Conditions) == 0 &&
		meta.IsStatusConditionTrue(is.Status.Conditions, workv1alpha1.WorkApplied) &&
		HealthOf(is) == workv1alpha1.ResourceUnknown && !interpret.CleansUp(observed)
	conditions := func(w *workv1alpha1.Work) []metav1.Condition {
		return slices.DeleteFunc(slices.Clone(w.Status.Conditions), func(c metav1.Condition) bool {
			return c.Type == workv1alpha1.WorkProgressing
		})
	}
	return !created && (HealthOf(was) != HealthOf(is) || !equality.Semantic.DeepEqual(conditions(was), conditions(is)))
}
