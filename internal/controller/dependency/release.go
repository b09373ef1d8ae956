package dependency

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// withRevisions adds the dependencies of the ReleaseRevisions that a binding names to those of its template: members
// have pods of these revisions, or get them in a rollback. complete is false if a revision does not exist, and if the
// template waits for releases but dispatch has not found out yet what members have.
func (r *reconciler) withRevisions(ctx context.Context, b workv1alpha2.Binding, tpl *unstructured.Unstructured,
	refs []configv1alpha1.DependentObjectReference) (all []configv1alpha1.DependentObjectReference, complete bool,
	err error) {
	revisions, found, err := r.revisions(ctx, b)
	if err != nil {
		return nil, false, err
	}
	complete = found && (len(revisions) > 0 || b.GetNamespace() == "" ||
		tpl.GetAnnotations()[releasev1alpha1.ReleaseStrategyAnnotation] == "")
	for _, revision := range revisions {
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
	old, err := r.ofOldPods(ctx, b)
	return dependency.Merge(refs, old), complete, err
}

// revisions returns the ReleaseRevisions that a binding names, and whether all of them exist.
func (r *reconciler) revisions(ctx context.Context,
	b workv1alpha2.Binding) (all []*releasev1alpha1.ReleaseRevision, exist bool, err error) {
	exist = true
	for _, name := range dispatch.RevisionsOf(b) {
		revision, key := &releasev1alpha1.ReleaseRevision{}, client.ObjectKey{Namespace: b.GetNamespace(), Name: name}
		switch err := r.client.Get(ctx, key, revision, client.UnsafeDisableDeepCopy); {
		case err == nil:
			all = append(all, revision)
		case apierrors.IsNotFound(err):
			exist = false
		default:
			return nil, false, fmt.Errorf("get ReleaseRevision %s: %w", key, err)
		}
	}
	return all, exist, nil
}

// ofOldPods returns the ConfigMaps to keep until all pods are new. For a workload that names no revision any more, they
// are versions: pods of a release without versions may tolerate old ones that read them.
func (r *reconciler) ofOldPods(ctx context.Context,
	b workv1alpha2.Binding) ([]configv1alpha1.DependentObjectReference, error) {
	switch {
	case !mayHaveOldPods(b):
		return nil, nil
	case len(dispatch.RevisionsOf(b)) > 0 || fleet.PlanOf(b.GetAnnotations()) != nil:
		return recordedConfigMaps(b), nil
	}
	return r.recordedVersions(ctx, b)
}

// mayHaveOldPods reports whether clusters may have pods of a revision that the binding of a workload no longer names:
// of a release that another one has replaced, or pods that a release has tolerated when it ended.
func mayHaveOldPods(b workv1alpha2.Binding) bool {
	if fleet.PlanOf(b.GetAnnotations()) != nil {
		return true
	}
	of := b.BindingSpec().Resource
	return len(recordedConfigMaps(b)) > 0 &&
		fleet.HasOldPods(match.GroupKind(of.APIVersion, of.Kind), b.BindingStatus().AggregatedStatus)
}

// changesOldPods reports whether mayHaveOldPods differs. The recorded dependencies are the same.
func changesOldPods(was, is workv1alpha2.Binding) bool {
	if !dispatch.Repaced(was, is) &&
		equality.Semantic.DeepEqual(was.BindingStatus().AggregatedStatus, is.BindingStatus().AggregatedStatus) {
		return false // without decoding annotations and statuses
	}
	return mayHaveOldPods(was) != mayHaveOldPods(is)
}

// recordedConfigMaps are the ConfigMaps among the recorded dependencies of a binding.
func recordedConfigMaps(b workv1alpha2.Binding) []configv1alpha1.DependentObjectReference {
	return slices.DeleteFunc(recorded(b), func(ref configv1alpha1.DependentObjectReference) bool {
		return ref.LabelSelector != nil || match.GroupKind(ref.APIVersion, ref.Kind) != release.ConfigMapKind
	})
}

// recordedVersions are the versions of ConfigMaps among the recorded dependencies of a binding.
func (r *reconciler) recordedVersions(ctx context.Context,
	b workv1alpha2.Binding) (versions []configv1alpha1.DependentObjectReference, err error) {
	for _, ref := range recordedConfigMaps(b) {
		obj, found, err := r.Templates.Get(ctx, release.ConfigMapKind, ref.Namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		if found && release.IsVersion(obj.GetAnnotations()) {
			versions = append(versions, ref)
		}
	}
	return versions, nil
}

// keptVersions returns the versions of ConfigMaps that pods read, of a binding whose policy no longer propagates
// dependencies: pods that restart would fail without them.
func (r *reconciler) keptVersions(ctx context.Context,
	b workv1alpha2.Binding) (kept []configv1alpha1.DependentObjectReference, err error) {
	if b.GetDeletionTimestamp() != nil || len(b.BindingSpec().Clusters) == 0 {
		return nil, nil
	}
	revisions, found, err := r.revisions(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, revision := range revisions {
		for _, version := range release.Versions(revision) {
			kept = append(kept, configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: release.ConfigMapKind.Kind,
				Namespace: b.GetNamespace(), Name: version})
		}
	}
	if found && !mayHaveOldPods(b) {
		return kept, nil
	}
	old, err := r.recordedVersions(ctx, b)
	return dependency.Merge(kept, old), err
}
