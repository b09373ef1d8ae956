package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Events of releases.
//
//reference:event Normal on Release
const (
	// eventAccepted: the release is planned, and waits for its turn.
	eventAccepted = "ReleaseAccepted"
	// eventStarted: the first stage begins.
	eventStarted = "ReleaseStarted"
	// eventPaused: a user or a failure has paused the release. A warning after a failure.
	eventPaused = "ReleasePaused"
	// eventResumed: the release continues.
	eventResumed = "ReleaseResumed"
	// eventSucceeded: all clusters have the revision.
	eventSucceeded = "ReleaseSucceeded"
	// eventAborted: a user has ended the release. Pods stay as they are.
	eventAborted = "ReleaseAborted"
	// eventSuperseded: a newer release of the workload replaced this one.
	eventSuperseded = "ReleaseSuperseded"
	// eventRejected: the release cannot run. The message has the reason.
	//
	//reference:event Warning on Release
	eventRejected = "ReleaseRejected"
	// eventTargetReplaced: a workload was deleted and created again, so the release has ended.
	//
	//reference:event Warning on Release
	eventTargetReplaced = "ReleaseTargetReplaced"
	// eventStageFailed: a stage has failed. The message has the stage and the reason.
	//
	//reference:event Warning on Release
	eventStageFailed = "ReleaseStageFailed"
	// eventGlassBroken: a user has started a stage in spite of ReleaseGuards. The message has the reason and the guard.
	//
	//reference:event Warning on Release
	eventGlassBroken = "ReleaseGlassBroken"
	// eventRollingBack: the release goes back to the revision before it.
	//
	//reference:event Warning on Release
	eventRollingBack = "ReleaseRollingBack"
	// eventRolledBack: all clusters have the revision before the release.
	//
	//reference:event Warning on Release
	eventRolledBack = "ReleaseRolledBack"
	// eventRollbackFailed: the rollback failed. Pods stay as they are.
	//
	//reference:event Warning on Release
	eventRollbackFailed = "ReleaseRollbackFailed"
)

// phaseEvents are the events of phases by the reason in the journal. All other reasons are those of rollbacks.
var phaseEvents = map[string]struct{ kind, reason string }{
	"Accepted":                            {corev1.EventTypeNormal, eventAccepted},
	"Started":                             {corev1.EventTypeNormal, eventStarted},
	"Resumed":                             {corev1.EventTypeNormal, eventResumed},
	releasev1alpha1.ReasonPausedByUser:    {corev1.EventTypeNormal, eventPaused},
	releasev1alpha1.ReasonPausedByFailure: {corev1.EventTypeWarning, eventPaused},
	releasev1alpha1.ReasonCompleted:       {corev1.EventTypeNormal, eventSucceeded},
	releasev1alpha1.ReasonAborted:         {corev1.EventTypeNormal, eventAborted},
	releasev1alpha1.ReasonSuperseded:      {corev1.EventTypeNormal, eventSuperseded},
	releasev1alpha1.ReasonRejected:        {corev1.EventTypeWarning, eventRejected},
	releasev1alpha1.ReasonTargetReplaced:  {corev1.EventTypeWarning, eventTargetReplaced},
	releasev1alpha1.ReasonRolledBack:      {corev1.EventTypeWarning, eventRolledBack},
	releasev1alpha1.ReasonRollbackFailed:  {corev1.EventTypeWarning, eventRollbackFailed},
}

// write writes a step, of which the ConfigMaps exist, in the order of its fields. After a crash between two writes, the
// next step writes the rest.
func (r *reconciler) write(ctx context.Context, in release.Input, step release.Step) error {
	// 1. What the status and the bindings name.
	for _, revision := range step.Revisions {
		stored := &releasev1alpha1.ReleaseRevision{Spec: *revision.Spec.DeepCopy()}
		stored.Namespace, stored.Name = in.Release.Namespace, revision.Name
		err := r.client.Create(ctx, stored)
		if apierrors.IsAlreadyExists(err) {
			err = r.live.Get(ctx, client.ObjectKeyFromObject(stored), stored)
		}
		if err != nil {
			return fmt.Errorf("create %s: %w", commit.Name(stored), err)
		}
		if err := r.setOwner(ctx, stored); err != nil { // before revisions are deleted that own the same versions
			return err
		}
	}
	for _, name := range step.Block {
		if err := r.block(ctx, client.ObjectKey{Namespace: in.Release.Namespace, Name: name}, step.Blocked); err != nil {
			return err
		}
	}

	// 2. The status.
	want := in.Release.DeepCopy()
	want.Status = *step.Status.DeepCopy()
	if !equality.Semantic.DeepEqual(want.Status, in.Release.Status) {
		r.Recorded(in.Release).Record(&want.Status, want.Generation) // it is not worth a write of its own
	}
	wrote, err := commit.Status(ctx, r.client, in.Release, want)
	if err != nil {
		return err
	}
	if wrote {
		r.pending.Add(client.ObjectKeyFromObject(want), commit.VersionOf(want))
		r.recordEvents(in.Release, want)
	}

	// 3. The bindings, which the status decides.
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(step.Bindings)) {
		errs = append(errs, r.pace(ctx, in.Targets[name].Binding, step.Bindings[name]))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if ended := step.Status.Phase.Ended() && !in.Release.Status.Phase.Ended(); ended || len(step.Revisions) > 0 {
		for _, revision := range release.Surplus(in, step) {
			errs = append(errs, commit.Delete(ctx, r.client, revision))
		}
	}
	return errors.Join(errs...)
}

// block marks a revision as one that must not be released again.
func (r *reconciler) block(ctx context.Context, key client.ObjectKey, why *releasev1alpha1.RevisionBlock) error {
	read := &releasev1alpha1.ReleaseRevision{}
	if err := r.live.Get(ctx, key, read); err != nil {
		return client.IgnoreNotFound(err)
	}
	if read.Status.Blocked != nil {
		return nil
	}
	want := read.DeepCopy()
	want.Status.Blocked = why
	_, err := commit.Status(ctx, r.client, read, want)
	return err
}

// pace writes what the binding of a target must say of its release.
func (r *reconciler) pace(ctx context.Context, b workv1alpha2.Binding, state release.BindingState) error {
	annotations := maps.Clone(b.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, fleet.PlanAnnotation)
	delete(annotations, fleet.EffectiveRevisionAnnotation)
	if state.Plan != nil {
		annotations[fleet.PlanAnnotation] = state.Plan.String()
	}
	if state.Revision != "" {
		annotations[fleet.EffectiveRevisionAnnotation] = state.Revision
	}
	if maps.Equal(annotations, b.GetAnnotations()) {
		return nil
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	want.SetAnnotations(annotations)
	_, err := commit.Update(ctx, r.client, b, want)
	return err
}

// recordEvents records an event for each phase that the release has entered, and for each failure.
func (r *reconciler) recordEvents(was, is *releasev1alpha1.Release) {
	last := release.LastSeq(&was.Status)
	for _, e := range is.Status.Journal {
		switch {
		case e.Seq <= last:
		case release.IsFailure(e):
			r.events.Event(is, corev1.EventTypeWarning, eventStageFailed, "Stage "+e.Stage+": "+messageOf(e))
		case e.Type == releasev1alpha1.JournalVerb && e.Reason == release.BrokeGlass:
			r.events.Event(is, corev1.EventTypeWarning, eventGlassBroken,
				"Stage "+e.Stage+" was started in spite of ReleaseGuards by "+cmp.Or(e.Actor, "a user")+": "+e.Message)
		case e.Type == releasev1alpha1.JournalPhase:
			about, ok := phaseEvents[e.Reason]
			if !ok {
				about.kind, about.reason = corev1.EventTypeWarning, eventRollingBack
			}
			if about.kind == corev1.EventTypeWarning {
				r.events.Event(is, about.kind, about.reason, messageOf(e))
			} else {
				r.events.RecordSuccess(about.reason, messageOf(e), is)
			}
		}
	}
}

func messageOf(e releasev1alpha1.ReleaseJournalEntry) string {
	if e.Message == "" {
		return e.Reason
	}
	return e.Reason + ": " + e.Message
}
