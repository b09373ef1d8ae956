package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// report writes what the member answered, unless the same is written already or may wait. observed is our object in the
// member, nil if there is none. scaledBy is the message of the condition ScaledByMember, empty for none. held is why
// the hub leaves the object alone.
func (r *reconciler) report(ctx context.Context, m *member.Member, work *workv1alpha1.Work,
	manifest, observed *unstructured.Unstructured, scaledBy string, held hold) (time.Duration, error) {
	want := work.DeepCopy()
	var deadline time.Duration
	r.dispatching(want)
	r.retains(want, manifest, nil)
	if scaledBy == "" {
		meta.RemoveStatusCondition(&want.Status.Conditions, workv1alpha1.WorkScaledByMember)
	} else {
		r.condition(want, workv1alpha1.WorkScaledByMember, metav1.ConditionTrue, workv1alpha1.ReasonAutoscaled, scaledBy, 0)
	}
	if held.handsOff == "" {
		meta.RemoveStatusCondition(&want.Status.Conditions, workv1alpha1.WorkHandsOff)
	}
	switch {
	case held.handsOff != "":
		r.handsOff(want, held.handsOff)
	case held.restored != "":
		r.holds(want, manifest, held.restored)
	default:
		meta.RemoveStatusCondition(&want.Status.Conditions, workv1alpha1.WorkHeldAfterRestore)
		if !suspended(work) {
			r.condition(want, workv1alpha1.WorkApplied, metav1.ConditionTrue, workv1alpha1.ReasonAppliedSuccessful,
				workv1alpha1.MessageApplied, work.Generation)
			meta.RemoveStatusCondition(&want.Status.Conditions, workv1alpha1.WorkFailure)
		} else {
			endHold(want)
		}
	}
	if observed == nil && execute.Over(work) {
		// What became of it is all that is left of it, and says that it is not to run again.
	} else if observed == nil {
		r.vanished(want)
	} else if status, health := r.reflect(ctx, want, manifest, observed); status != nil {
		deadline = r.judge(want, status, health, observed)
		want.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{*status}
	}
	again := r.contested(ctx, m, want, manifest)
	if wait := r.wait(work, want, observed); wait > 0 {
		return commit.ShorterDelay(wait, again), nil
	}
	if unanswered(want) {
		return commit.ShorterDelay(interpretRetry, again), r.write(ctx, work, want)
	}
	return commit.ShorterDelay(deadline, again), r.write(ctx, work, want)
}

// hold is why the object of a Work is left alone; both are empty if it is not.
type hold struct {
	// restored is why it is left alone since the hub was restored, handsOff what the annotation hands-off means.
	restored, handsOff string
}

// handsOff sets the condition HandsOff of the Work that is to be written. If the object is not as this generation of
// the Work says, Applied and Failure have the annotation as the reason. A suspended Work is not applied anyway.
func (r *reconciler) handsOff(want *workv1alpha1.Work, why string) {
	r.condition(want, workv1alpha1.WorkHandsOff, metav1.ConditionTrue, workv1alpha1.ReasonHandsOff, why, want.Generation)
	var last int64
	applied := meta.FindStatusCondition(want.Status.Conditions, workv1alpha1.WorkApplied)
	if applied != nil {
		last = applied.ObservedGeneration
		if applied.Status == metav1.ConditionTrue && last == want.Generation {
			return
		}
	}
	if !suspended(want) {
		r.condition(want, workv1alpha1.WorkApplied, metav1.ConditionFalse, workv1alpha1.ReasonHandsOff, why, last)
		r.condition(want, workv1alpha1.WorkFailure, metav1.ConditionTrue, workv1alpha1.ReasonHandsOff, why, last)
	}
}

// endHold removes the failure of a suspended Work that nothing but the suspension keeps from being applied.
func endHold(want *workv1alpha1.Work) {
	if failure := execute.FailureOf(want); failure != nil &&
		(failure.Reason == workv1alpha1.ReasonHandsOff || failure.Reason == workv1alpha1.ReasonRestored) {
		meta.RemoveStatusCondition(&want.Status.Conditions, workv1alpha1.WorkFailure)
	}
}

// leave keeps a Work that is being deleted, and its object, until the annotation hands-off is removed, which is an
// event. If the cluster leaves, only the Work goes.
func (r *reconciler) leave(ctx context.Context, cluster string, work *workv1alpha1.Work, why string) error {
	cl := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: cluster}, cl, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	if cl.DeletionTimestamp != nil {
		return r.letGo(ctx, work)
	}
	want := work.DeepCopy()
	r.condition(want, workv1alpha1.WorkHandsOff, metav1.ConditionTrue, workv1alpha1.ReasonHandsOff, why, want.Generation)
	return r.write(ctx, work, want)
}

// vanished takes what was said of an object off the status that is to be written: it is not there, or not ours.
func (r *reconciler) vanished(want *workv1alpha1.Work) {
	want.Status.ManifestStatuses = nil
	meta.RemoveStatusCondition(&want.Status.Conditions, workv1alpha1.WorkProgressing)
}

// judge sets the health in the status of a manifest that is to be written, and since when it is on its way in a
// condition of the Work, which survives a restart of the hub. It says when to look again though nothing happens; 0 for
// never.
func (r *reconciler) judge(want *workv1alpha1.Work, status *workv1alpha1.ManifestStatus, health interpret.Health,
	observed *unstructured.Unstructured) time.Duration {
	was := meta.FindStatusCondition(want.Status.Conditions, workv1alpha1.WorkProgressing)
	var before *runtime.RawExtension
	if len(want.Status.ManifestStatuses) > 0 {
		before = want.Status.ManifestStatuses[0].Status
	}
	var condition *metav1.Condition
	var again time.Duration
	if !suspended(want) { // else somebody does by hand there what is to be done
		progressed, repeated := false, map[string]bool(nil)
		if health == interpret.Progressing {
			progressed, repeated = was != nil && interpret.Progressed(before, status.Status),
				interpret.Repeated(before, status.Status)
		}
		health, condition, again = interpret.Overdue(health, observed, was, progressed, repeated, r.Clock.Now())
	}
	status.Health = health.Karmada()
	switch {
	case condition == nil:
		meta.RemoveStatusCondition(&want.Status.Conditions, workv1alpha1.WorkProgressing)
	case was == nil:
		want.Status.Conditions = append(want.Status.Conditions, *condition)
	default:
		*was = *condition // dated anew also where it is True as before
	}
	return again
}

// interpretRetry is how soon an object is looked at again that no interpreter could read: what it means may depend on a
// webhook.
const interpretRetry = 30 * time.Second

// unanswered says whether an operation of the object was not answered.
func unanswered(w *workv1alpha1.Work) bool {
	return meta.FindStatusCondition(w.Status.Conditions,
		string(configv1alpha1.InterpreterOperationInterpretHealth)) != nil ||
		meta.FindStatusCondition(w.Status.Conditions, string(configv1alpha1.InterpreterOperationInterpretStatus)) != nil
}

// retainFailed: no interpreter can answer what the member keeps of the object.
//
//reference:event Warning on Work and template
const retainFailed = "RetainFailed"

// retains says in the Work that is to be written whether it could be told what the member keeps, and tells it of the
// template.
func (r *reconciler) retains(want *workv1alpha1.Work, manifest *unstructured.Unstructured, err error) {
	const operation = configv1alpha1.InterpreterOperationRetain
	var cause error
	if fault := interpret.FaultOf(err, operation); fault != nil {
		cause = fault
	}
	r.unread(want, manifest, retainFailed, cause)
	interpret.SetFault(&want.Status.Conditions, operation, cause, metav1.NewTime(r.Clock.Now()))
}

// failed reports an error in the conditions Applied and Failure. The hub retries with a backoff, or when the cluster is
// back. gone says that our object is not in the member any more, so that its last status means nothing.
func (r *reconciler) failed(ctx context.Context, work *workv1alpha1.Work, gone bool,
	cause error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, cause
	}
	// A member that was found to be another hub's a moment ago is not ready in a moment.
	var absent *awayError
	away := errors.As(cause, &absent) || errors.Is(cause, member.ErrHeld)
	want := work.DeepCopy()
	r.dispatching(want)
	if absent != nil && absent.held != "" && !suspended(work) {
		r.condition(want, workv1alpha1.WorkDispatching, metav1.ConditionFalse, clusterv1alpha1.ReasonHeldByAnotherHub,
			absent.held, 0)
	}
	if gone && !execute.Over(work) {
		r.vanished(want)
	}
	// A member that is away says nothing about what was applied before it went.
	stands := (away || member.Unreachable(cause)) && appliedNow(work)
	if manifest, err := execute.Manifest(work); err == nil && !away && !member.Unreachable(cause) {
		r.retains(want, manifest, cause)
	}
	if !stands && !suspended(work) {
		var last int64
		if applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied); applied != nil {
			last = applied.ObservedGeneration
		}
		r.condition(want, workv1alpha1.WorkApplied, metav1.ConditionFalse, workv1alpha1.ReasonAppliedFailed,
			fmt.Sprintf("Failed to apply all manifests (0/%d): %v", len(work.Spec.Workload.Manifests), cause), last)
		reason, message := failureOf(cause)
		r.condition(want, workv1alpha1.WorkFailure, metav1.ConditionTrue, reason, message, last)
	}
	if err := r.write(ctx, work, want); err != nil {
		return 0, err
	}
	if absent != nil {
		return 0, nil
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
	r.progress.Done(key)
	wrote, err := commit.Status(ctx, r.client, read, want)
	if err != nil {
		return fromOld(err)
	}
	if wrote {
		r.pending.Add(key, want)
		r.forgetSeen(ctx, want)
	}
	r.applied.Forget(key) // after it is written: in between it would look as if it was not applied
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
		r.events.RecordSuccess(workv1alpha2.EventSyncSucceed, after.Message, is)
	case after.Status == metav1.ConditionTrue && (before == nil || before.ObservedGeneration != after.ObservedGeneration):
		r.events.RecordStep(workv1alpha2.EventSyncSucceed, after.Message, is)
	}
	before, after = meta.FindStatusCondition(was.Status.Conditions, workv1alpha1.WorkDispatching),
		meta.FindStatusCondition(is.Status.Conditions, workv1alpha1.WorkDispatching)
	held := func(c *metav1.Condition) bool { return c != nil && c.Reason == clusterv1alpha1.ReasonHeldByAnotherHub }
	switch {
	case after == nil, held(after), held(before): // the cluster says it once for all its Works
	case before == nil && after.Status == metav1.ConditionFalse || before != nil && before.Status != after.Status:
		r.events.RecordSuccess(workv1alpha2.EventWorkDispatching, after.Message, is)
	case before == nil:
		r.events.RecordStep(workv1alpha2.EventWorkDispatching, after.Message, is)
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
	r.events.RecordStep(workv1alpha2.EventReflectStatusSucceed, "Reflect status for "+object+" succeed.", is)
	if status.Health != "" && status.Health != workv1alpha1.ResourceUnknown && status.Health != healthOf(was) {
		r.events.RecordStep(workv1alpha2.EventInterpretHealthSucceed, "Interpret health of "+object+" as "+
			strings.ToLower(string(status.Health))+".", is)
	}
}

// warn tells users of a Work what is wrong, unless it was said before; no error ends a warning.
func (r *reconciler) warn(work *workv1alpha1.Work, reason string, err error) {
	about := subject{client.ObjectKeyFromObject(work), reason}
	if err == nil {
		r.told.Forget(about)
	} else if r.told.IsNew(about, err.Error()) {
		r.events.Event(work, corev1.EventTypeWarning, reason, err.Error())
	}
}

// retainOverruled: a customization keeps spec.replicas, although nothing in the member has set it. The hub applies its
// own replicas.
//
//reference:event Warning on Work and template
const retainOverruled = "RetainOverruled"

// tellOverruled tells users that what a customization would retain is not: to keep replicas that the hub itself gave
// before would undo every scaling.
func (r *reconciler) tellOverruled(work *workv1alpha1.Work, manifest *unstructured.Unstructured, overruled bool) {
	if !overruled {
		return // it was said once, and stays true of the customization
	}
	r.unread(work, manifest, retainOverruled,
		errors.New("its Retain operation keeps spec.replicas, but nothing in the member has set it: the hub applies its own replicas; "+
			"to leave them to the member, label the template "+policyv1alpha1.RetainReplicasLabel+`: "true"`))
}

// unread tells users of a Work, and of the template that it is of, what no interpreter could read in the member.
func (r *reconciler) unread(work *workv1alpha1.Work, manifest *unstructured.Unstructured, reason string, err error) {
	about := subject{client.ObjectKeyFromObject(work), reason}
	if err == nil {
		r.told.Forget(about)
		return
	}
	if !r.told.IsNew(about, err.Error()) {
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

// dispatching sets the condition that says whether the Work is sent at all. That it is costs no write of its own.
func (r *reconciler) dispatching(want *workv1alpha1.Work) {
	if suspended(want) {
		r.condition(want, workv1alpha1.WorkDispatching, metav1.ConditionFalse, workv1alpha1.ReasonSuspendDispatching,
			workv1alpha1.MessageSuspended, 0)
	} else {
		r.condition(want, workv1alpha1.WorkDispatching, metav1.ConditionTrue, workv1alpha1.ReasonDispatching,
			workv1alpha1.MessageDispatched, 0)
	}
}

func (r *reconciler) condition(want *workv1alpha1.Work, kind string, status metav1.ConditionStatus, reason,
	message string, generation int64) {
	meta.SetStatusCondition(&want.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
		Message:            message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(r.Clock.Now())})
}

func suspended(w *workv1alpha1.Work) bool {
	return w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching
}

// appliedNow says whether what the Work says now was applied.
func appliedNow(w *workv1alpha1.Work) bool {
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == w.Generation
}

// wait is how long a status may still be held back: not at all when a condition or the health changes, or nothing does.
// That an object has come, and is on its way, is no more than progress: often it is there before that is told. Only of
// one that its member deletes when it has finished it must be known before. What turns again and again waits as well.
func (r *reconciler) wait(was, want *workv1alpha1.Work, observed *unstructured.Unstructured) time.Duration {
	if r.StatusWindow == 0 || equality.Semantic.DeepEqual(was.Status, want.Status) {
		return 0
	}
	came := len(was.Status.Conditions) == 0 &&
		meta.IsStatusConditionTrue(want.Status.Conditions, workv1alpha1.WorkApplied) &&
		healthOf(want) == workv1alpha1.ResourceUnknown && !interpret.CleansUp(observed)
	key, now := client.ObjectKeyFromObject(was), r.Clock.Now()
	turned := !came && (healthOf(was) != healthOf(want) || !equality.Semantic.DeepEqual(urgent(was), urgent(want)))
	if turned && r.restless.turn(key, now) {
		return 0
	}
	return r.progress.Wait(key, r.StatusWindow, now)
}

// urgent are the conditions whose change does not wait: since when an object is on its way is no more than progress.
func urgent(w *workv1alpha1.Work) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(w.Status.Conditions), func(c metav1.Condition) bool {
		return c.Type == workv1alpha1.WorkProgressing
	})
}

func healthOf(w *workv1alpha1.Work) workv1alpha1.ResourceHealth {
	if len(w.Status.ManifestStatuses) == 0 {
		return ""
	}
	return w.Status.ManifestStatuses[0].Health
}

// statusLimit is the most of a member's status that goes into a Work: one too large to be stored would keep all else
// from being told.
const statusLimit = 256 << 10

// workLimit is the most bytes of a Work's manifests and its status: etcd takes 1.5 MiB as one object.
const workLimit = 1400 << 10

// statusRoom is how much of it there is room for beside the manifests.
func statusRoom(work *workv1alpha1.Work) int {
	room := workLimit
	for i := range work.Spec.Workload.Manifests {
		room -= len(work.Spec.Workload.Manifests[i].Raw)
	}
	return max(0, min(statusLimit, room))
}

// reflect is the manifest's entry in the status of the Work that is to be written, but for its health; nil if its
// status cannot be read. What cannot be read is told, and said in a condition of the Work.
func (r *reconciler) reflect(ctx context.Context, work *workv1alpha1.Work, manifest,
	observed *unstructured.Unstructured) (*workv1alpha1.ManifestStatus, interpret.Health) {
	now := metav1.NewTime(r.Clock.Now())
	health, err := r.Interpreter.Health(ctx, observed)
	r.unread(work, manifest, workv1alpha2.EventInterpretHealthFailed, err)
	interpret.SetFault(&work.Status.Conditions, configv1alpha1.InterpreterOperationInterpretHealth, err, now)
	if err != nil {
		health = interpret.Unknown
	}
	gvk := manifest.GroupVersionKind()
	entry := &workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
			Namespace: manifest.GetNamespace(), Name: manifest.GetName()},
	}
	status, err := r.Interpreter.Reflect(ctx, observed)
	if err == nil {
		status = interpret.WithRun(status, observed)
	}
	if err == nil && status != nil {
		var raw []byte
		switch raw, err = json.Marshal(status); {
		case err != nil:
		case len(raw) > statusRoom(work):
			err = fmt.Errorf("its status has %d bytes as JSON, but the hub stores at most %d per cluster", len(raw),
				statusRoom(work))
		default:
			entry.Status = &runtime.RawExtension{Raw: raw}
		}
	}
	r.unread(work, manifest, workv1alpha2.EventReflectStatusFailed, err)
	interpret.SetFault(&work.Status.Conditions, configv1alpha1.InterpreterOperationInterpretStatus, err, now)
	if err != nil {
		return nil, health
	}
	return entry, health
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
