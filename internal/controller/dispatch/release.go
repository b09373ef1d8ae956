package dispatch

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/scope"
)

// revisions returns the ReleaseRevisions that the binding names. It reads those that the cache lacks from the server,
// because the binding may be in the cache before them. The result lacks those that do not exist.
func (r *reconciler) revisions(ctx context.Context,
	b workv1alpha2.Binding) (map[string]*releasev1alpha1.ReleaseRevision, error) {
	var found map[string]*releasev1alpha1.ReleaseRevision
	for _, name := range dispatch.RevisionsOf(b) {
		if found[name] != nil {
			continue
		}
		revision, key := &releasev1alpha1.ReleaseRevision{}, client.ObjectKey{Namespace: b.GetNamespace(), Name: name}
		err := r.client.Get(ctx, key, revision, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			err = r.live.Get(ctx, key, revision)
		}
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get ReleaseRevision %s: %w", key, err)
		}
		if found == nil {
			found = map[string]*releasev1alpha1.ReleaseRevision{}
		}
		found[name] = revision
	}
	return found, nil
}

// storeBaseline stores the revision that members have when a template gets a release strategy. It is stored here, and
// not by the release controller, because the Works and the template must not change meanwhile.
func (r *reconciler) storeBaseline(ctx context.Context, baseline *releasev1alpha1.ReleaseRevision) error {
	if baseline == nil {
		return nil
	}
	stored := &releasev1alpha1.ReleaseRevision{Spec: *baseline.Spec.DeepCopy()}
	stored.Namespace, stored.Name = baseline.Namespace, baseline.Name
	if err := r.client.Create(ctx, stored); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s: %w", commit.Name(stored), err)
	}
	return nil
}

// madeFrom returns the binding of the workload of a ReleaseRevision.
func (r *reconciler) madeFrom(ctx context.Context, revision client.Object) []reconcile.Request {
	target := revision.(*releasev1alpha1.ReleaseRevision).Spec.Target
	b, _, err := scope.BindingFor(ctx, r.client, match.GroupKind(target.APIVersion, target.Kind), revision.GetNamespace(),
		target.Name, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the binding of a release revision", "revision", revision.GetName())
	}
	if b == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(b)}}
}
