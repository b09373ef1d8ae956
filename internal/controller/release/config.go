package release

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/filter"
)

// setOwner makes a stored revision an owner of the versions of ConfigMaps that it uses.
func (r *reconciler) setOwner(ctx context.Context, revision *releasev1alpha1.ReleaseRevision) error {
	for _, name := range release.Versions(revision) {
		version, found, err := r.Templates.Version(ctx, revision.Namespace, name)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if owned := release.OwnedBy(version, revision); owned != nil {
			if _, err := r.Templates.Update(ctx, owned); err != nil {
				return err
			}
		}
	}
	return nil
}

// setupOwners registers the controller that makes ReleaseRevisions the owners of the versions of ConfigMaps that they
// use: those that dispatch has stored, and those of a release that was interrupted.
func setupOwners(mgr ctrl.Manager, r *reconciler) error {
	owner := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		revision := &releasev1alpha1.ReleaseRevision{}
		if err := r.client.Get(ctx, req.NamespacedName, revision, client.UnsafeDisableDeepCopy); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if revision.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		return commit.Requeue(0, r.setOwner(ctx, revision))
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("release-config").
		For(&releasev1alpha1.ReleaseRevision{}, builder.WithPredicates(filter.Creations)).
		WithOptions(controller.Options{RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).Complete(owner)
	if err != nil {
		return fmt.Errorf("set up the owners of versions: %w", err)
	}
	return nil
}
