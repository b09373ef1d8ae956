package release

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// input reads what the next step of a release follows from.
func (r *reconciler) input(ctx context.Context, rel *releasev1alpha1.Release) (release.Input, error) {
	from := facts.Releases{Reader: r.client, Object: r.Templates.Get, Version: r.Templates.Version,
		Approvals: r.approvals, Revisions: r.revisions, Works: r.works, Pacers: r.pacers, Checks: r.Checks.States,
		Budget: r.Checks.Budget}
	if rel.Status.Strategy == nil {
		from.Object = template.Getter(r.Templates.Live) // the user may just have written the template
	}
	return from.Input(ctx, rel, time.Now())
}

func (r *reconciler) approvals(ctx context.Context,
	rel *releasev1alpha1.Release) ([]releasev1alpha1.ReleaseApproval, error) {
	var list releasev1alpha1.ReleaseApprovalList
	err := r.client.List(ctx, &list, client.InNamespace(rel.Namespace), client.MatchingFields{byRelease: rel.Name},
		client.UnsafeDisableDeepCopy)
	return list.Items, err
}

func (r *reconciler) revisions(ctx context.Context, namespace string,
	ref releasev1alpha1.ReleaseObjectReference) ([]releasev1alpha1.ReleaseRevision, error) {
	var list releasev1alpha1.ReleaseRevisionList
	err := r.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{byTarget: targetIndex(ref)},
		client.UnsafeDisableDeepCopy)
	return list.Items, err
}

func (r *reconciler) works(ctx context.Context, b workv1alpha2.Binding,
	_ *unstructured.Unstructured) ([]workv1alpha1.Work, error) {
	return scope.WorksOf(ctx, r.client, client.ObjectKeyFromObject(b))
}

func (r *reconciler) pacers(_ context.Context, kind schema.GroupKind,
	namespace string) ([]*unstructured.Unstructured, error) {
	if !r.Templates.Wanted(kind) {
		return nil, nil
	}
	return r.Templates.List(kind, namespace, labels.Everything()), nil
}

// targetIndex is the value under which releases and ReleaseRevisions of a workload are found.
func targetIndex(ref releasev1alpha1.ReleaseObjectReference) string {
	return match.GroupKind(ref.APIVersion, ref.Kind).String() + "/" + ref.Name
}

func targetOf(b workv1alpha2.Binding) releasev1alpha1.ReleaseObjectReference {
	ref := b.BindingSpec().Resource
	return releasev1alpha1.ReleaseObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
}
