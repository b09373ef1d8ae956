package execute

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/member"
)

// reporter writes the status of Works, and emits their events.
type reporter struct {
	client      client.Client
	events      commit.Events
	clock       clock.PassiveClock
	interpreter interpret.Interpreter
	memory      *memory
	drift       *drift
	// window is Options.StatusWindow.
	window time.Duration
}

// report writes the status of a Work after an attempt without an error, unless it may wait. observed is the Work's
// object in the member; nil for none.
func (r *reporter) report(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	observed *unstructured.Unstructured, o execute.Outcome) (time.Duration, error) {
	r.warnTemplate(work, o.Manifest, retainFailed, nil)
	if observed != nil {
		o.Reading = execute.Read(ctx, r.interpreter, work, observed)
		r.warnTemplate(work, o.Manifest, workv1alpha2.EventInterpretHealthFailed, o.Reading.HealthErr)
		r.warnTemplate(work, o.Manifest, workv1alpha2.EventReflectStatusFailed, o.Reading.StatusErr)
	}
	var nextRepair time.Duration
	o.Contested, nextRepair = r.drift.message(ctx, m, work, o.Manifest)
	var drift error
	if o.Contested != "" {
		drift = fmt.Errorf("%s. To resolve: %s", o.Contested, execute.ContestedAdvice)
	}
	r.warnTemplate(work, o.Manifest, workv1alpha1.ReasonChangedRepeatedly, drift)
	want := work.DeepCopy()
	var again time.Duration
	want.Status, again = execute.Report(work, o, r.clock.Now())
	if delay := r.delay(work, want, observed); delay > 0 {
		return commit.ShorterDelay(delay, nextRepair), nil
	}
	return commit.ShorterDelay(again, nextRepair), r.write(ctx, work, want)
}

// reportBlocked reports why the object of a Work that is being deleted stays in the member for now. The end of that is
// an event.
func (r *reporter) reportBlocked(ctx context.Context, work *workv1alpha1.Work, o execute.Outcome) error {
	want := work.DeepCopy()
	want.Status, _ = execute.Report(work, o, r.clock.Now())
	return r.write(ctx, work, want)
}

// retainFailed: no interpreter can answer what the member keeps of the object.
//
//reference:event Warning on Work and template
const retainFailed = "RetainFailed"

// failed reports an error. The hub retries with a backoff, or when the cluster is back. gone means that the member has
// no object of the Work.
func (r *reporter) failed(ctx context.Context, work *workv1alpha1.Work, gone bool, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	// The cluster's status may not show yet that another hub manages the member.
	var away *awayError
	failure := execute.Failure{Cause: cause, Gone: gone,
		Unreachable: errors.As(cause, &away) || errors.Is(cause, member.ErrNotOwner) || member.Unreachable(cause)}
	failure.Reason, failure.Message = failureOf(cause)
	if cluster, err := names.ClusterOf(work.Namespace); err == nil && failure.Reason == workv1alpha1.ReasonForbidden {
		failure.Cause = roles.Explained(cluster, cause)
	}
	if away != nil {
		failure.OtherHub = away.otherHub
	}
	if manifest, err := execute.Manifest(work); err == nil && !failure.Unreachable {
		r.warnTemplate(work, manifest, retainFailed, failure.RetainFault())
	}
	want := work.DeepCopy()
	want.Status, _ = execute.Report(work, execute.Outcome{Failure: &failure}, r.clock.Now())
	if err := r.write(ctx, work, want); err != nil || away != nil {
		return err
	}
	return cause
}

// stuck warns that a Work cannot be deleted. The hub retries with a backoff, or when the cluster is back.
func (r *reporter) stuck(work *workv1alpha1.Work, cause error) (time.Duration, error) {
	if !errors.Is(cause, context.Canceled) {
		r.warn(work, workv1alpha2.EventSyncFailed, fmt.Errorf("delete the object: %w", cause))
	}
	if errors.As(cause, new(*awayError)) || errors.Is(cause, errNoStatus) {
		return 0, nil
	}
	return 0, cause
}

// write writes the status of a Work, and emits events for what changed.
func (r *reporter) write(ctx context.Context, read, want *workv1alpha1.Work) error {
	key := client.ObjectKeyFromObject(read)
	r.memory.progress.Done(key)
	wrote, err := commit.Status(ctx, r.client, read, want)
	if err != nil {
		return markStale(err)
	}
	if wrote {
		r.memory.pending.Add(key, want)
		r.forgetSeen(ctx, want)
	}
	r.memory.applied.Forget(key) // After the write: without both, the Work would be applied again.
	if !wrote {
		return nil
	}
	r.emitTransitions(read, want)
	return nil
}

// emitTransitions emits events for the conditions that changed.
func (r *reporter) emitTransitions(was, is *workv1alpha1.Work) {
	before, after := meta.FindStatusCondition(was.Status.Conditions, workv1alpha1.WorkApplied),
		meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkApplied)
	switch {
	case after == nil:
	case after.Status == metav1.ConditionFalse &&
		(before == nil || before.Status != after.Status || before.Message != after.Message):
		r.events.Event(is, corev1.EventTypeWarning, workv1alpha2.EventSyncFailed, after.Message)
		log.Info("could not apply", "work", client.ObjectKeyFromObject(is), "message", after.Message)
	case after.Status == metav1.ConditionTrue && before != nil && before.Status == metav1.ConditionFalse:
		r.events.RecordSuccess(workv1alpha2.EventSyncSucceed, after.Message, is)
	case after.Status == metav1.ConditionTrue && (before == nil || before.ObservedGeneration != after.ObservedGeneration):
		r.events.RecordStep(workv1alpha2.EventSyncSucceed, after.Message, is)
	}
	if c := meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkHandsOff); c != nil &&
		!meta.IsStatusConditionTrue(was.Status.Conditions, workv1alpha1.WorkHandsOff) &&
		(after == nil || after.Message != c.Message) {
		r.events.Event(is, corev1.EventTypeWarning, eventHandsOff, c.Message)
	}
	before, after = meta.FindStatusCondition(was.Status.Conditions, workv1alpha1.WorkDispatching),
		meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkDispatching)
	otherHub := func(c *metav1.Condition) bool { return c != nil && c.Reason == clusterv1alpha1.ReasonHeldByAnotherHub }
	switch {
	case after == nil, otherHub(after), otherHub(before): // The cluster has one event for all its Works.
	case before == nil && after.Status == metav1.ConditionFalse || before != nil && before.Status != after.Status:
		r.events.RecordSuccess(workv1alpha2.EventWorkDispatching, after.Message, is)
	case before == nil:
		r.events.RecordStep(workv1alpha2.EventWorkDispatching, after.Message, is)
	}
	r.emitReading(was, is)
}

// emitReading emits events for a status and a health that changed.
func (r *reporter) emitReading(was, is *workv1alpha1.Work) {
	if len(is.Status.ManifestStatuses) == 0 ||
		equality.Semantic.DeepEqual(was.Status.ManifestStatuses, is.Status.ManifestStatuses) {
		return
	}
	status := is.Status.ManifestStatuses[0]
	object := fmt.Sprintf("object(%s/%s/%s)", status.Identifier.Kind, status.Identifier.Namespace, status.Identifier.Name)
	r.events.RecordStep(workv1alpha2.EventReflectStatusSucceed, "Reflect status for "+object+" succeed.", is)
	if status.Health != "" && status.Health != workv1alpha1.ResourceUnknown && status.Health != execute.HealthOf(was) {
		r.events.RecordStep(workv1alpha2.EventInterpretHealthSucceed, "Interpret health of "+object+" as "+
			strings.ToLower(string(status.Health))+".", is)
	}
}

// warn emits a warning for a Work once per message; a nil error ends it. It reports whether the warning is new.
func (r *reporter) warn(work *workv1alpha1.Work, reason string, err error) (isNew bool) {
	message := ""
	if err != nil {
		message = err.Error()
	}
	isNew = r.memory.isNewWarning(client.ObjectKeyFromObject(work), reason, message)
	if isNew {
		r.events.Event(work, corev1.EventTypeWarning, reason, message)
	}
	return isNew
}

// retainOverruled: a customization keeps spec.replicas, although nothing in the member has set it. The hub applies its
// own replicas.
//
//reference:event Warning on Work and template
const retainOverruled = "RetainOverruled"

// warnOverruled warns that the Retain operation of an interpreter keeps replicas that the hub itself set: the template
// could not be scaled.
func (r *reporter) warnOverruled(work *workv1alpha1.Work, manifest *unstructured.Unstructured) {
	r.warnTemplate(work, manifest, retainOverruled,
		errors.New("its Retain operation keeps spec.replicas, but nothing in the member has set it: the hub applies its own replicas; "+
			"to leave them to the member, label the template "+policyv1alpha1.RetainReplicasLabel+`: "true"`))
}

// warnTemplate is warn for a Work and its template.
func (r *reporter) warnTemplate(work *workv1alpha1.Work, manifest *unstructured.Unstructured, reason string,
	err error) {
	if !r.warn(work, reason, err) {
		return
	}
	cluster, invalid := names.ClusterOf(work.Namespace)
	if invalid != nil {
		return
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(manifest.GroupVersionKind())
	template.SetNamespace(manifest.GetNamespace())
	template.SetName(manifest.GetName())
	template.SetUID(types.UID(manifest.GetAnnotations()[workv1alpha2.TemplateUIDAnnotation]))
	r.events.Eventf(template, corev1.EventTypeWarning, reason, "cluster %q: %v", cluster, err)
}

// delay returns how long the write of a status may be delayed. An object whose status changes again and again is
// written less often.
func (r *reporter) delay(was, want *workv1alpha1.Work, observed *unstructured.Unstructured) time.Duration {
	if r.window == 0 || equality.Semantic.DeepEqual(was.Status, want.Status) {
		return 0
	}
	key, now := client.ObjectKeyFromObject(was), r.clock.Now()
	if execute.Urgent(was, want, observed) && r.memory.turn(key, now) {
		return 0
	}
	return r.memory.progress.Wait(key, r.window, now)
}
