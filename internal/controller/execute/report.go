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
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/member"
)

// report writes the status of a Work after an attempt without an error, unless it may wait. observed is the Work's
// object in the member; nil for none.
func (r *reconciler) report(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	observed *unstructured.Unstructured, o execute.Outcome) (time.Duration, error) {
	r.warnTemplate(work, o.Manifest, retainFailed, nil)
	if observed != nil {
		o.Reading = execute.Read(ctx, r.Interpreter, work, observed)
		r.warnTemplate(work, o.Manifest, workv1alpha2.EventInterpretHealthFailed, o.Reading.HealthErr)
		r.warnTemplate(work, o.Manifest, workv1alpha2.EventReflectStatusFailed, o.Reading.StatusErr)
	}
	message, nextRepair := r.contested(ctx, m, work, o.Manifest)
	o.Contested = message
	want := work.DeepCopy()
	var again time.Duration
	want.Status, again = execute.Report(work, o, r.Clock.Now())
	if wait := r.wait(work, want, observed); wait > 0 {
		return commit.Sooner(wait, nextRepair), nil
	}
	return commit.Sooner(again, nextRepair), r.write(ctx, work, want)
}

// reportBlocked reports why the object of a Work that is being deleted stays in the member for now. The end of that is
// an event.
func (r *reconciler) reportBlocked(ctx context.Context, work *workv1alpha1.Work, o execute.Outcome) error {
	want := work.DeepCopy()
	want.Status, _ = execute.Report(work, o, r.Clock.Now())
	return r.write(ctx, work, want)
}

// retainFailed is the reason of an event: the interpreter could not tell which fields the member keeps.
const retainFailed = "RetainFailed"

// failed reports an error. The hub retries with a backoff, or when the cluster is back. gone means that the member has
// no object of the Work.
func (r *reconciler) failed(ctx context.Context, work *workv1alpha1.Work, gone bool,
	cause error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, cause
	}
	// The cluster's status may not show yet that another hub manages the member.
	var away *awayError
	failure := execute.Failure{Cause: cause, Gone: gone,
		Unreachable: errors.As(cause, &away) || errors.Is(cause, member.ErrHeld) || member.Unreachable(cause)}
	failure.Reason, failure.Message = failureOf(cause)
	if away != nil {
		failure.OtherHub = away.otherHub
	}
	if manifest, err := execute.Manifest(work); err == nil && !failure.Unreachable {
		var fault error
		if f := interpret.FaultOf(cause, configv1alpha1.InterpreterOperationRetain); f != nil {
			fault = f
		}
		r.warnTemplate(work, manifest, retainFailed, fault)
	}
	want := work.DeepCopy()
	want.Status, _ = execute.Report(work, execute.Outcome{Failure: &failure}, r.Clock.Now())
	if err := r.write(ctx, work, want); err != nil || away != nil {
		return 0, err
	}
	return 0, cause
}

// stuck says why a Work cannot be deleted, once; then it is tried again, later each time, or when the cluster is back.
func (r *reconciler) stuck(work *workv1alpha1.Work, cause error) (time.Duration, error) {
	if !errors.Is(cause, context.Canceled) {
		r.warn(work, workv1alpha2.EventSyncFailed, fmt.Errorf("delete the object: %w", cause))
	}
	if errors.As(cause, new(*awayError)) || errors.Is(cause, errNotYet) {
		return 0, nil
	}
	return 0, cause
}

// write writes the status of a Work, and tells its users what turned.
func (r *reconciler) write(ctx context.Context, read, want *workv1alpha1.Work) error {
	key := client.ObjectKeyFromObject(read)
	r.progress.Told(key)
	wrote, err := commit.Status(ctx, r.client, read, want)
	if err != nil {
		return fromOld(err)
	}
	if wrote {
		r.written.put(want)
		r.forgetSeen(ctx, want)
	}
	r.applied.forget(key) // after it is written: in between it would look as if it was not applied
	if !wrote {
		return nil
	}
	r.tell(read, want)
	return nil
}

// tell puts the transitions of the conditions into events. That all goes well from the start is not worth one.
func (r *reconciler) tell(was, is *workv1alpha1.Work) {
	before, after := meta.FindStatusCondition(was.Status.Conditions, workv1alpha1.WorkApplied),
		meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkApplied)
	switch {
	case after == nil:
	case after.Status == metav1.ConditionFalse &&
		(before == nil || before.Status != after.Status || before.Message != after.Message):
		r.events.Event(is, corev1.EventTypeWarning, workv1alpha2.EventSyncFailed, after.Message)
		log.Info("could not apply", "work", client.ObjectKeyFromObject(is), "message", after.Message)
	case after.Status == metav1.ConditionTrue && before != nil && before.Status == metav1.ConditionFalse:
		r.events.Succeeded(workv1alpha2.EventSyncSucceed, after.Message, is)
	case after.Status == metav1.ConditionTrue && (before == nil || before.ObservedGeneration != after.ObservedGeneration):
		r.events.Stepped(workv1alpha2.EventSyncSucceed, after.Message, is)
	}
	before, after = meta.FindStatusCondition(was.Status.Conditions, workv1alpha1.WorkDispatching),
		meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkDispatching)
	held := func(c *metav1.Condition) bool { return c != nil && c.Reason == clusterv1alpha1.ReasonHeldByAnotherHub }
	switch {
	case after == nil, held(after), held(before): // the cluster says it once for all its Works
	case before == nil && after.Status == metav1.ConditionFalse || before != nil && before.Status != after.Status:
		r.events.Succeeded(workv1alpha2.EventWorkDispatching, after.Message, is)
	case before == nil:
		r.events.Stepped(workv1alpha2.EventWorkDispatching, after.Message, is)
	}
	r.tellReflected(was, is)
}

// tellReflected tells that the status and health of an object were read, when they are news.
func (r *reconciler) tellReflected(was, is *workv1alpha1.Work) {
	if len(is.Status.ManifestStatuses) == 0 ||
		equality.Semantic.DeepEqual(was.Status.ManifestStatuses, is.Status.ManifestStatuses) {
		return
	}
	status := is.Status.ManifestStatuses[0]
	object := fmt.Sprintf("object(%s/%s/%s)", status.Identifier.Kind, status.Identifier.Namespace, status.Identifier.Name)
	r.events.Stepped(workv1alpha2.EventReflectStatusSucceed, "Reflect status for "+object+" succeed.", is)
	if status.Health != "" && status.Health != workv1alpha1.ResourceUnknown && status.Health != execute.HealthOf(was) {
		r.events.Stepped(workv1alpha2.EventInterpretHealthSucceed, "Interpret health of "+object+" as "+
			strings.ToLower(string(status.Health))+".", is)
	}
}

// warn tells users of a Work what is wrong, unless it was said before; no error ends a warning.
func (r *reconciler) warn(work *workv1alpha1.Work, reason string, err error) {
	about := subject{client.ObjectKeyFromObject(work), reason}
	if err == nil {
		r.told.Forget(about)
	} else if r.told.News(about, err.Error()) {
		r.events.Event(work, corev1.EventTypeWarning, reason, err.Error())
	}
}

// retainOverruled is the reason of an event of our own.
const retainOverruled = "RetainOverruled"

// tellOverruled tells users that what a customization would retain is not: to keep replicas that the hub itself gave
// before would undo every scaling.
func (r *reconciler) tellOverruled(work *workv1alpha1.Work, manifest *unstructured.Unstructured, overruled bool) {
	if !overruled {
		return // it was said once, and stays true of the customization
	}
	r.warnTemplate(work, manifest, retainOverruled,
		errors.New("its Retain operation keeps spec.replicas, but nothing in the member has set it: the hub applies its own replicas; "+
			"to leave them to the member, label the template "+policyv1alpha1.RetainReplicasLabel+`: "true"`))
}

// warnTemplate emits a warning for a Work and its template once per message; a nil error ends it.
func (r *reconciler) warnTemplate(work *workv1alpha1.Work, manifest *unstructured.Unstructured, reason string, err error) {
	about := subject{client.ObjectKeyFromObject(work), reason}
	if err == nil {
		r.told.Forget(about)
		return
	}
	if !r.told.News(about, err.Error()) {
		return
	}
	r.events.Event(work, corev1.EventTypeWarning, reason, err.Error())
	cluster, space := names.ClusterOf(work.Namespace)
	if space != nil {
		return
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(manifest.GroupVersionKind())
	template.SetNamespace(manifest.GetNamespace())
	template.SetName(manifest.GetName())
	template.SetUID(types.UID(manifest.GetAnnotations()[workv1alpha2.TemplateUIDAnnotation]))
	r.events.Eventf(template, corev1.EventTypeWarning, reason, "cluster %q: %v", cluster, err)
}

// wait returns how long the write of a status may be delayed. An object whose status changes again and again is
// written less often.
func (r *reconciler) wait(was, want *workv1alpha1.Work, observed *unstructured.Unstructured) time.Duration {
	if r.StatusWindow == 0 || equality.Semantic.DeepEqual(was.Status, want.Status) {
		return 0
	}
	key, now := client.ObjectKeyFromObject(was), r.Clock.Now()
	if execute.Urgent(was, want, observed) && r.restless.turn(key, now) {
		return 0
	}
	return r.progress.Wait(key, r.StatusWindow, now)
}

// namespaceFollows says whether the namespace of the manifest is on its way to the same member, or has just come, so
// that there is nothing to report.
func (r *reconciler) namespaceFollows(ctx context.Context, work *workv1alpha1.Work,
	manifest *unstructured.Unstructured) bool {
	ns, err := r.newest(ctx, types.NamespacedName{Namespace: work.Namespace,
		Name: names.Work(namespaceKind.Kind, manifest.GetNamespace(), "")})
	if err != nil || ns.DeletionTimestamp != nil {
		return false
	}
	applied := meta.FindStatusCondition(ns.Status.Conditions, workv1alpha1.WorkApplied)
	return applied == nil || applied.Status == metav1.ConditionTrue &&
		r.Clock.Since(applied.LastTransitionTime.Time) < 2*namespaceCheck
}
