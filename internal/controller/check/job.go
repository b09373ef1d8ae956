package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/release/sample"
	"github.com/argosy-io/argosy/internal/scope"
)

// job runs the Job of a check where it does not run yet, and judges it.
func (r *reconciler) job(ctx context.Context, rel *releasev1alpha1.Release, call release.CheckCall,
	spec *releasev1alpha1.JobCheck, works []workv1alpha1.Work) (sample.Sample, error) {
	either := release.JobWorkNames(rel, call.Status)
	has := map[string]*workv1alpha1.Work{} // by cluster
	for i := range works {
		if cluster, err := names.ClusterOf(works[i].Namespace); err == nil && slices.Contains(either, works[i].Name) {
			has[cluster] = &works[i]
		}
	}
	clusters := call.Clusters
	if spec.Where == releasev1alpha1.JobInOneCluster {
		var err error
		if clusters, err = r.oneCluster(ctx, call.Clusters, has); err != nil {
			return sample.Sample{}, err
		}
		if len(clusters) == 0 {
			return sample.Failure("no cluster of the stage answers, so the Job runs in none: see `kubectl get clusters`"), nil
		}
	}
	samples := make([]sample.Sample, len(clusters))
	for i, cluster := range clusters {
		samples[i] = sample.OfJob(has[cluster])
		if has[cluster] != nil {
			continue
		}
		w, err := release.JobWork(rel, call.Status, spec, cluster, uuid.NewString())
		if err != nil {
			samples[i] = sample.Failure(err.Error())
			continue
		}
		err = scope.CreateWork(ctx, r.client, r.live, w, execute.ObjectOf(w))
		if err != nil && !apierrors.IsAlreadyExists(err) && !commit.NamespaceMissing(err) {
			return sample.Sample{}, fmt.Errorf("create %s: %w", commit.Name(w), err)
		}
	}
	return sample.OfClusters(clusters, samples), nil
}

// oneCluster returns the cluster in which the Job runs; otherwise the first one that answers.
func (r *reconciler) oneCluster(ctx context.Context, clusters []string,
	has map[string]*workv1alpha1.Work) ([]string, error) {
	for _, name := range clusters {
		if has[name] != nil {
			return []string{name}, nil
		}
	}
	for _, name := range clusters {
		c := &clusterv1alpha1.Cluster{}
		err := r.client.Get(ctx, client.ObjectKey{Name: name}, c)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get Cluster %s: %w", name, err)
		}
		if err == nil && membership.IsReady(c) {
			return []string{name}, nil
		}
	}
	return nil, nil
}

// deleteJobs deletes the Works of a release's Jobs but those to keep, and returns the others.
func (r *reconciler) deleteJobs(ctx context.Context, key client.ObjectKey,
	keep map[string]bool) (kept []workv1alpha1.Work, err error) {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.MatchingFields{byRelease: key.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Jobs of Release %s: %w", key, err)
	}
	var errs []error
	kept = slices.DeleteFunc(works.Items, func(w workv1alpha1.Work) bool {
		if keep[w.Name] {
			return false
		}
		if w.DeletionTimestamp == nil {
			errs = append(errs, commit.Delete(ctx, r.client, &w))
		}
		return true
	})
	return kept, errors.Join(errs...)
}
