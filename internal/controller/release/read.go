package release

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// input reads what the next step of a release follows from.
func (r *reconciler) input(ctx context.Context, rel *releasev1alpha1.Release) (release.Input, error) {
	in := release.Input{Release: rel, Targets: map[string]release.Target{},
		Clusters: map[string]*clusterv1alpha1.Cluster{}, Now: r.Clock.Now()}
	var releases releasev1alpha1.ReleaseList
	if err := r.client.List(ctx, &releases, client.InNamespace(rel.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list releases: %w", err)
	}
	// A release that is being deleted has no next step. It may exist for some time, until it is recorded.
	in.Others = slices.DeleteFunc(releases.Items, func(other releasev1alpha1.Release) bool {
		return other.DeletionTimestamp != nil
	})
	var approvals releasev1alpha1.ReleaseApprovalList
	if err := r.client.List(ctx, &approvals, client.InNamespace(rel.Namespace),
		client.MatchingFields{byRelease: rel.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list the approvals of Release %s: %w", rel.Name, err)
	}
	in.Approvals = approvals.Items
	var clusters clusterv1alpha1.ClusterList
	if err := r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list clusters: %w", err)
	}
	for i := range clusters.Items {
		in.Clusters[clusters.Items[i].Name] = &clusters.Items[i]
	}
	if err := r.readGuards(ctx, &in); err != nil {
		return in, err
	}
	var err error
	if in.Strategy, err = r.strategy(ctx, rel); err != nil {
		return in, err
	}
	if err := r.checks(ctx, &in); err != nil {
		return in, err
	}
	overrides, err := r.overrides(ctx, rel.Namespace)
	if err != nil {
		return in, err
	}
	for _, spec := range rel.Spec.Targets {
		if in.Targets[spec.Name], err = r.target(ctx, in, spec, overrides); err != nil {
			return in, fmt.Errorf("read target %s of Release %s/%s: %w", spec.Name, rel.Namespace, rel.Name, err)
		}
	}
	return in, nil
}

// strategy returns the strategy of a release that is not accepted yet, nil if it does not exist.
func (r *reconciler) strategy(ctx context.Context,
	rel *releasev1alpha1.Release) (*releasev1alpha1.ReleaseStrategySpec, error) {
	ref := rel.Spec.StrategyRef
	if ref == nil || rel.Status.Strategy != nil {
		return rel.Spec.Strategy, nil
	}
	s := &releasev1alpha1.ReleaseStrategy{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: rel.Namespace, Name: ref.Name}, s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ReleaseStrategy %s/%s: %w", rel.Namespace, ref.Name, err)
	}
	return &s.Spec, nil
}

// checks reads the states of a release's checks, and before it starts which ReleaseChecks exist.
func (r *reconciler) checks(ctx context.Context, in *release.Input) error {
	if r.Checks != nil {
		in.Checks = r.Checks.States(client.ObjectKeyFromObject(in.Release))
	}
	if in.Release.Status.StartedAt != nil {
		return nil
	}
	var checks releasev1alpha1.ReleaseCheckList
	if err := r.client.List(ctx, &checks, client.InNamespace(in.Release.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list release checks: %w", err)
	}
	in.ReleaseChecks = map[string]bool{}
	for _, check := range checks.Items {
		in.ReleaseChecks[check.Name] = true
	}
	return nil
}

// overrides returns the override policies that may select a template of the namespace.
func (r *reconciler) overrides(ctx context.Context, namespace string) ([]policyv1alpha1.Override, error) {
	var all policyv1alpha1.ClusterOverridePolicyList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list cluster override policies: %w", err)
	}
	var own policyv1alpha1.OverridePolicyList
	if err := r.client.List(ctx, &own, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list override policies: %w", err)
	}
	out := make([]policyv1alpha1.Override, 0, len(all.Items)+len(own.Items))
	for i := range all.Items {
		out = append(out, &all.Items[i])
	}
	for i := range own.Items {
		out = append(out, &own.Items[i])
	}
	return out, nil
}

// target reads a target of a release.
func (r *reconciler) target(ctx context.Context, in release.Input, spec releasev1alpha1.ReleaseTarget,
	overrides []policyv1alpha1.Override) (t release.Target, err error) {
	namespace, accepted := in.Release.Namespace, in.Release.Status.Strategy != nil
	kind := match.GroupKind(spec.Ref.APIVersion, spec.Ref.Kind)
	get := template.Getter(r.Templates.Get)
	if !accepted {
		get = r.Templates.Live // what is released is what the user has just written
	}
	workload, found, err := get(ctx, kind, namespace, spec.Ref.Name)
	if err != nil && !meta.IsNoMatchError(err) {
		return t, err
	}
	if found {
		t.Template = workload
	}
	b, _, err := scope.BindingFor(ctx, r.client, kind, namespace, spec.Ref.Name, client.UnsafeDisableDeepCopy)
	if err != nil {
		return t, err
	}
	if b != nil && b.GetDeletionTimestamp() == nil {
		t.Binding, t.Divided = b, dispatch.Divides(b.BindingSpec())
	}
	var revisions releasev1alpha1.ReleaseRevisionList
	if err := r.client.List(ctx, &revisions, client.InNamespace(namespace),
		client.MatchingFields{byTarget: targetIndex(spec.Ref)}, client.UnsafeDisableDeepCopy); err != nil {
		return t, fmt.Errorf("list release revisions: %w", err)
	}
	var works []workv1alpha1.Work
	if t.Binding != nil {
		if works, err = scope.WorksOf(ctx, r.client, client.ObjectKeyFromObject(b)); err != nil {
			return t, err
		}
	}
	if t.Template != nil {
		if err := template.SetCurrent(ctx, get, &t, in.VersionsConfig(), overrides, revisions.Items); err != nil {
			return t, err
		}
	}
	if err := t.SetRevisions(spec.Ref, revisions.Items, works, overrides); err != nil {
		return t, err
	}
	if t.DeletedVersions, err = template.DeletedVersions(ctx, r.Templates.Version, namespace,
		t.RevisionsAhead(in.Release, spec)); err != nil {
		return t, err
	}
	if t.Template == nil || t.Binding == nil {
		return t, nil
	}
	t.RevisionChanges = failover.RevisionChanges(t.Binding)
	if !in.Release.Status.Phase.Ended() && in.Release.Status.StartedAt == nil {
		t.SetObstacles(in.Clusters, overrides, r.pacers(namespace))
	}
	progressOf := dispatch.ProgressOf
	if release.IsRecord(in.Release) {
		progressOf = dispatch.DirectProgress
	}
	t.Progress, err = progressOf(dispatch.Input{Binding: t.Binding, Template: t.Template, Clusters: in.Clusters,
		Existing: dispatch.WorksByCluster(works), Revisions: t.Revisions, Overrides: overrides, Now: in.Now})
	return t, err
}

// pacers returns the objects on the hub that may pace workloads of a namespace in members.
func (r *reconciler) pacers(namespace string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, kind := range release.PacerKinds() {
		if r.Templates.Wanted(kind) {
			all = append(all, r.Templates.List(kind, namespace, labels.Everything())...)
		}
	}
	return all
}

// targetIndex is the value under which releases and ReleaseRevisions of a workload are found.
func targetIndex(ref releasev1alpha1.ReleaseObjectReference) string {
	return match.GroupKind(ref.APIVersion, ref.Kind).String() + "/" + ref.Name
}

// targetOf is the workload of a binding.
func targetOf(b workv1alpha2.Binding) releasev1alpha1.ReleaseObjectReference {
	ref := b.BindingSpec().Resource
	return releasev1alpha1.ReleaseObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
}
