package execute

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/filter"
)

// klusterlets carries out the Works of clusters whose agent is a klusterlet: it writes a ManifestWork for each, and
// reads from its status what core/execute decides and reports by. Only the klusterlet writes in the cluster.
type klusterlets struct {
	*reconciler
	mapper meta.RESTMapper
}

// refusal is the reason why a klusterlet did not apply an object.
type refusal struct{ cluster, why string }

func (r *refusal) Error() string {
	return fmt.Sprintf("the klusterlet of cluster %q reports: %s", r.cluster, r.why)
}

// acts reports whether this process carries out the Works of a cluster.
func (t *triggers) acts(c *clusterv1alpha1.Cluster) bool {
	return t.members.Serves(c) || !t.noBindings && klusterlet.Manages(c)
}

// manifestWorkChanged queues the Work of a ManifestWork that the hub writes for a klusterlet.
func (t *triggers) manifestWorkChanged(obj any) {
	mw, ok := filter.LastState(obj).(*ocmv1.ManifestWork)
	if !ok {
		return
	}
	if work := mw.Annotations[wellknown.WorkAnnotation]; work != "" {
		t.lanes.retry(mw.Namespace, types.NamespacedName{Namespace: names.ExecutionSpace(mw.Namespace), Name: work})
	}
}

// written returns the ManifestWork of a Work; nil for none. It fails if another one has its name.
func written(ctx context.Context, from client.Reader, cluster, work string) (*ocmv1.ManifestWork, error) {
	mw := &ocmv1.ManifestWork{}
	err := from.Get(ctx, client.ObjectKey{Namespace: cluster, Name: ocm.RenderedName(work)}, mw)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the ManifestWork of work %s: %w", work, err)
	case !ocm.Rendered(mw, work):
		return nil, &hubError{fmt.Errorf("ManifestWork %s/%s exists, and is not the hub's: rename or delete it", cluster,
			mw.Name)}
	}
	return mw, nil
}

// write writes a ManifestWork in a mode, unless it is so already.
func (k *klusterlets) write(ctx context.Context, cluster string, work *workv1alpha1.Work,
	desired *unstructured.Unstructured, mode ocm.Mode, was *ocmv1.ManifestWork) (wrote bool, err error) {
	gvk, resource := desired.GroupVersionKind(), ""
	if was != nil && len(was.Spec.ManifestConfigs) > 0 {
		resource = was.Spec.ManifestConfigs[0].ResourceIdentifier.Resource // the hub may not serve the kind any more
	} else {
		mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return false, &hubError{fmt.Errorf("find the resource of %s on the hub: %w", gvk, err)}
		}
		resource = mapping.Resource.Resource
	}
	want, err := ocm.Render(work, cluster, desired, resource, mode, was)
	if err != nil {
		return false, err
	}
	if was == nil {
		err = k.client.Create(ctx, want)
		return err == nil, err
	}
	return commit.Update(ctx, k.client, was, want)
}

// apply sends a Work, and reports what the klusterlet says about it.
func (k *klusterlets) apply(ctx context.Context, cluster string, work *workv1alpha1.Work) outcome {
	fail := func(gone bool, cause error) outcome {
		switch err := k.reporter.failed(ctx, work, gone, cause); {
		case errors.As(cause, new(*refusal)) && errors.Is(err, cause), errors.As(cause, new(*conflictError)) &&
			errors.Is(err, cause):
			return outcome{} // a change in the cluster is an event
		default:
			return retryStale(0, err)
		}
	}
	was, err := written(ctx, k.client, cluster, work.Name)
	if err != nil {
		return fail(true, err)
	}
	if was != nil && was.DeletionTimestamp != nil {
		return outcome{} // it is written again when it is gone, which is an event
	}
	desired, err := execute.Desired(work, nil, nil)
	if err != nil {
		return fail(was == nil, err)
	}
	var answer ocm.Answer
	if was != nil {
		answer = ocm.Read(was, desired)
		answer.Current = answer.Current || ocm.Completed(was) && execute.Ended(work)
	}
	if answer.Observed != nil { // A namespace that existed before is not marked as created.
		if desired, err = execute.Desired(work, answer.Observed, nil); err != nil {
			return fail(false, err)
		}
	}
	desired = k.members.Hub().Marked(desired)
	ocm.RetainReplicas(desired, answer.Observed, was)
	o := execute.Outcome{Manifest: desired}
	mode, sends := ocm.Look, was != nil || !execute.Suspended(work)
	var conflict error
	action := k.members.Hub().Decide(work, desired, answer.Observed, execute.Situation{Missed: true,
		Unsettled: k.restore.unsettled(work)})
	switch {
	case !answer.Known && was != nil && ocm.ModeOf(was) == ocm.Apply:
		// Whose the object is was known. A failed change may be corrected; what is unknown otherwise is not changed.
		mode, sends = ocm.Apply, answer.Failed != "" && !execute.Suspended(work) && execute.HandsOff(work, nil) == ""
	case !answer.Known:
	case action.Kind == execute.Create && ocm.Completed(was):
		// A klusterlet ignores changes of a complete ManifestWork. The object of the former run is gone.
		return retryStale(0, commit.Delete(ctx, k.client, was))
	case action.Kind == execute.Conflict:
		conflict = &conflictError{action}
	case action.Kind == execute.Leave:
		o.HandsOff = action.Reason
	case action.Kind == execute.Pause:
		o.Restored = action.Reason
	case action.Kind == execute.Wait:
		sends = false
	case action.Kind == execute.Create, action.Kind == execute.Apply, answer.Observed != nil && !execute.Suspended(work):
		mode = ocm.Apply
	}
	if sends {
		if wrote, err := k.write(ctx, cluster, work, desired, mode, was); err != nil {
			if commit.Stale(err) {
				return outcome{after: commit.StaleRetry}
			}
			return fail(answer.Observed == nil, fmt.Errorf("write the ManifestWork for the klusterlet: %w", err))
		} else if wrote && conflict == nil && o.HandsOff == "" && o.Restored == "" {
			return outcome{} // the klusterlet's answer is an event
		}
	}
	owned := answer.Observed
	if owned != nil && !execute.Owns(work, owned) {
		owned = nil
	}
	switch {
	case conflict != nil:
		k.restore.record(work, restoreChecked)
		return fail(owned == nil, conflict)
	case was != nil && !answer.Current, was == nil && !execute.Suspended(work):
		return outcome{} // its answer follows
	case answer.Failed != "":
		k.restore.record(work, restoreChecked)
		return fail(answer.Known && owned == nil, &refusal{cluster, answer.Failed})
	case was != nil && !answer.Known, action.Kind == execute.Wait,
		owned == nil && answer.Observed != nil && o.HandsOff == "" && !execute.Suspended(work):
		return outcome{} // the answer is older than the object
	}
	if o.Restored == "" {
		k.restore.record(work, restoreSettled)
	}
	return outcome{report: func() outcome { return retryStale(k.reporter.report(ctx, nil, work, owned, o)) }}
}

// remove deletes the ManifestWork of a Work that is being deleted, and releases the Work when it is gone. What must
// stay in the cluster is given up first.
func (k *klusterlets) remove(ctx context.Context, cluster string, work *workv1alpha1.Work) outcome {
	stuck := func(err error) outcome { return retryStale(k.reporter.stuck(work, err)) }
	if !controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionFinalizer) {
		return retryStale(0, k.removeFinalizers(ctx, work))
	}
	kind, after, why, err := k.deletions.judge(ctx, cluster, work)
	if err != nil || kind == execute.EndWaits {
		if err != nil {
			return stuck(err)
		}
		return outcome{after: after}
	}
	cl, err := readCluster(ctx, k.client, cluster)
	if err != nil {
		return stuck(client.IgnoreNotFound(err)) // the Works of a cluster that is gone are strays
	}
	was, err := written(ctx, k.deletions.live, cluster, work.Name) // the cache may not show yet what was sent
	manifest, unreadable := execute.Manifest(work)
	switch {
	case errors.As(err, new(*hubError)), err == nil && was == nil, unreadable != nil:
		return retryStale(0, k.removeFinalizers(ctx, work)) // nothing was sent
	case err != nil:
		return stuck(err)
	case was.DeletionTimestamp != nil:
		return outcome{} // that it is gone is an event
	}
	answer := ocm.Read(was, manifest)
	leaves := cl.DeletionTimestamp != nil
	decision := k.members.Hub().Decide(work, nil, answer.Observed, execute.Situation{Unsettled: k.restore.unsettled(work)})
	switch {
	case decision.Kind == execute.Leave && !leaves && kind != execute.EndKept:
		return retryStale(0, k.reporter.reportBlocked(ctx, work, execute.Outcome{HandsOff: decision.Reason}))
	case decision.Kind == execute.Pause && !leaves && kind != execute.EndKept:
		return retryStale(0, k.reporter.reportBlocked(ctx, work, execute.Outcome{Manifest: manifest,
			Restored: decision.Reason}))
	}
	once := interpret.RunsOnce(manifest.GroupVersionKind().GroupKind())
	stays := kind == execute.EndKept || execute.Preserved(work) || leaves && membership.KeepsWorkloads(cl) ||
		execute.TakesAlong(manifest.GroupVersionKind().GroupKind()) || execute.HandsOff(work, answer.Observed) != "" ||
		answer.Observed != nil && decision.Kind != execute.Delete && decision.Kind != execute.Wait
	absent, looked := answer.Known && answer.Observed == nil, ocm.ModeOf(was) == ocm.Look
	switch {
	case stays && once && absent && !answer.Current && !ocm.Completed(was):
		return outcome{} // the report is older than what was sent: the run may exist
	case stays && !(absent && (once || looked)) && !(looked && was.Generation == 1):
		mode := ocm.Keep
		if ocm.Completed(was) {
			mode = ocm.Look // a klusterlet ignores changes of a complete ManifestWork until it has no rule for that
		}
		wrote, err := k.write(ctx, cluster, work, k.members.Hub().Marked(manifest), mode, was)
		switch {
		case commit.Stale(err):
			return outcome{after: commit.StaleRetry}
		case err != nil:
			return stuck(err)
		case wrote || mode == ocm.Look || !answer.Current:
			return outcome{} // the klusterlet gives the object up first
		case answer.Failed != "":
			return stuck(&refusal{cluster, answer.Failed})
		}
	}
	if kind == execute.EndKept {
		k.kept.add(cluster, why)
	}
	if err := commit.Delete(ctx, k.client, was); err != nil {
		return stuck(err)
	}
	return outcome{}
}
