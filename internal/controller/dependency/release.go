package dependency

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
)

// released adds the dependencies of the ReleaseRevisions that a binding names to those of its template: members have
// pods of these revisions, or get them in a rollback. complete is false if a revision does not exist, and if the
// template waits for releases but dispatch has not found out yet what members have.
func (r *reconciler) released(ctx context.Context, b workv1alpha2.Binding, tpl *unstructured.Unstructured,
	refs []configv1alpha1.DependentObjectReference) (all []configv1alpha1.DependentObjectReference, complete bool,
	err error) {
	complete = len(dispatch.RevisionsOf(b)) > 0 || b.GetNamespace() == "" ||
		tpl.GetAnnotations()[releasev1alpha1.ReleaseStrategyAnnotation] == ""
	for _, name := range dispatch.RevisionsOf(b) {
		revision, key := &releasev1alpha1.ReleaseRevision{}, client.ObjectKey{Namespace: b.GetNamespace(), Name: name}
		err := r.client.Get(ctx, key, revision, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			complete = false
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("get ReleaseRevision %s: %w", key, err)
		}
		pods, err := release.WithPods(tpl, revision)
		if err != nil {
			return nil, false, err
		}
		more, err := r.Interpreter.Dependencies(ctx, pods)
		if err != nil {
			return nil, false, err
		}
		refs = dependency.Merge(refs, more)
	}
	return refs, complete, nil
}
