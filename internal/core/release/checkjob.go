package release

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// failedJobLife is the time for which the Job of a check that failed is kept, so that its logs can be read.
const failedJobLife = time.Hour

// jobName is the name of the Job of a check. It is the same for all calls of one attempt.
func jobName(status releasev1alpha1.ReleaseCheckStatus) string {
	return names.Label(status.Name + "-" + status.Key[:min(len(status.Key), 12)])
}

// JobWorkNames are the names that the Works of the Job of a check may have.
func JobWorkNames(r *releasev1alpha1.Release, status releasev1alpha1.ReleaseCheckStatus) []string {
	name := jobName(status)
	return names.Either(names.Work("Job", name, r.Namespace), schema.GroupKind{Group: "batch", Kind: "Job"}, name,
		r.Namespace)
}

// JobWork returns the Work that runs the Job of a check in a cluster. id is the permanent id of the Work.
func JobWork(r *releasev1alpha1.Release, status releasev1alpha1.ReleaseCheckStatus, job *releasev1alpha1.JobCheck,
	cluster, id string) (*workv1alpha1.Work, error) {
	spec := map[string]any{}
	if err := json.Unmarshal(job.Spec.Raw, &spec); err != nil {
		return nil, fmt.Errorf("read the Job of ReleaseCheck %s: %w", status.Name, err)
	}
	m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"namespace": r.Namespace, "name": jobName(status)}, "spec": spec}}
	w := execute.NewWork(cluster, JobWorkNames(r, status)[0], id)
	w.Annotations[wellknown.CheckOfAnnotation] = r.Namespace + "/" + r.Name
	return w, execute.Seal(w, m)
}

// JobsToKeep returns the names of the Works of Jobs that a release needs: those of gates that wait, and for an hour
// those that failed. again is when to ask again; zero for never.
func JobsToKeep(r *releasev1alpha1.Release, now time.Time) (keep map[string]bool, again time.Time) {
	keep = map[string]bool{}
	if r.DeletionTimestamp != nil {
		return keep, again
	}
	for _, stage := range r.Status.Stages {
		for _, g := range stage.Gates {
			if g.Check == nil {
				continue
			}
			switch g.Phase {
			case releasev1alpha1.GateWaiting:
				if stage.EndedAt != nil || r.Status.Phase != releasev1alpha1.ReleaseRunning &&
					r.Status.Phase != releasev1alpha1.ReleasePaused {
					continue
				}
			case releasev1alpha1.GateFailed:
				if g.Check.SampledAt == nil {
					continue
				}
				until := g.Check.SampledAt.Add(failedJobLife)
				if !now.Before(until) {
					continue
				}
				if again.IsZero() || until.Before(again) {
					again = until
				}
			default:
				continue
			}
			for _, name := range JobWorkNames(r, *g.Check) {
				keep[name] = true
			}
		}
	}
	return keep, again
}
