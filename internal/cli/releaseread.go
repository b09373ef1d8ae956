package cli

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// input reads what the hub would decide a release from, with the rights of the user. notes name what the user may not
// read.
func (r *releases) input(ctx context.Context, rel *releasev1alpha1.Release) (in release.Input, notes []string,
	err error) {
	in = release.Input{Release: rel, Strategy: rel.Spec.Strategy, Targets: map[string]release.Target{},
		Clusters: map[string]*clusterv1alpha1.Cluster{}, Now: r.now()}
	if ref := rel.Spec.StrategyRef; ref != nil {
		s := &releasev1alpha1.ReleaseStrategy{}
		err := r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: ref.Name}, s)
		if client.IgnoreNotFound(err) != nil {
			return in, nil, fmt.Errorf("read ReleaseStrategy %q: %w", ref.Name, err)
		}
		if err == nil {
			in.Strategy = &s.Spec
		}
	}
	known, err := clusters(ctx, r.client, nil, "")
	if err != nil {
		return in, nil, fmt.Errorf("list clusters: %w", err)
	}
	for i := range known {
		in.Clusters[known[i].Name] = &known[i]
	}
	var others releasev1alpha1.ReleaseList
	if err := r.client.List(ctx, &others, client.InNamespace(r.namespace)); err != nil {
		return in, nil, fmt.Errorf("list releases: %w", err)
	}
	in.Others = others.Items
	if notes, err = r.readGuards(ctx, &in); err != nil {
		return in, nil, err
	}
	var revisions releasev1alpha1.ReleaseRevisionList
	if err := r.client.List(ctx, &revisions, client.InNamespace(r.namespace)); err != nil {
		return in, nil, fmt.Errorf("list ReleaseRevisions: %w", err)
	}
	var checks releasev1alpha1.ReleaseCheckList
	err = r.client.List(ctx, &checks, client.InNamespace(r.namespace))
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // the hub is older
	case apierrors.IsForbidden(err):
		notes = append(notes, "you may not list ReleaseChecks: whether those of the strategy exist is not known")
	case err != nil:
		return in, nil, fmt.Errorf("list ReleaseChecks: %w", err)
	default:
		in.ReleaseChecks = map[string]bool{}
		for _, c := range checks.Items {
			in.ReleaseChecks[c.Name] = true
		}
	}
	for _, t := range rel.Spec.Targets {
		target, lacks, err := r.target(ctx, t.Ref, in.Clusters, revisions.Items, in.VersionsConfig())
		if err != nil {
			return in, nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
		in.Targets[t.Name], notes = target, append(notes, lacks...)
	}
	slices.Sort(notes)
	return in, slices.Compact(notes), nil
}

// configMap returns a ConfigMap, and whether it exists.
func (r *releases) configMap(ctx context.Context, namespace, name string) (*unstructured.Unstructured, bool, error) {
	return r.object(ctx, release.ConfigMapKind, namespace, name)
}

// object is a template.Getter with the rights of the user.
func (r *releases) object(ctx context.Context, gk schema.GroupKind, namespace,
	name string) (*unstructured.Unstructured, bool, error) {
	mapping, err := r.mapper.RESTMapping(gk)
	if err != nil {
		return nil, false, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s %s: %w", gk.Kind, name, err)
	}
	return obj, true, nil
}

// template reads a workload of the hub; nil if there is none.
func (r *releases) template(ctx context.Context,
	ref releasev1alpha1.ReleaseObjectReference) (*unstructured.Unstructured, error) {
	gk := match.GroupKind(ref.APIVersion, ref.Kind)
	mapping, err := r.mapper.RESTMapping(gk)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, fmt.Errorf("a %s has no namespace, and cannot be released", ref.Kind)
	}
	obj, _, err := r.object(ctx, gk, r.namespace, ref.Name)
	return obj, err
}

// target reads what concerns a workload.
func (r *releases) target(ctx context.Context, ref releasev1alpha1.ReleaseObjectReference,
	clusters map[string]*clusterv1alpha1.Cluster, revisions []releasev1alpha1.ReleaseRevision,
	versioned bool) (t release.Target, notes []string, err error) {
	// 1. The template and its binding.
	if t.Template, err = r.template(ctx, ref); err != nil || t.Template == nil {
		return t, nil, err
	}
	gk := t.Template.GroupVersionKind().GroupKind()
	if t.Binding, _, err = scope.BindingFor(ctx, r.client, gk, r.namespace, ref.Name); err != nil || t.Binding == nil {
		return t, nil, err
	}
	t.Divided = dispatch.Divides(t.Binding.BindingSpec())

	// 2. What is beside them.
	overrides, err := scope.Overrides.Over(ctx, r.client, r.namespace)
	if apierrors.IsForbidden(err) {
		notes = append(notes, "you may not list all override policies: changes of overrides are not seen")
	} else if err != nil {
		return t, nil, fmt.Errorf("list override policies: %w", err)
	}
	works, err := scope.WorksFor(ctx, r.client, dispatch.WorkName(t.Binding, t.Template),
		identity.FromManifest(t.Template))
	unread := apierrors.IsForbidden(err)
	if unread {
		notes = append(notes, "you may not list Works: progress in clusters is not known")
	} else if err != nil {
		return t, nil, fmt.Errorf("list Works: %w", err)
	}
	pacers, lacks, err := r.pacers(ctx)
	if err != nil {
		return t, nil, err
	}
	notes = append(notes, lacks...)

	err = template.SetCurrent(ctx, r.object, &t, versioned, overrides, revisions)
	if apierrors.IsForbidden(err) {
		notes = append(notes, "you may not read the ConfigMaps of the pods: changes of them are not seen")
		err = template.SetCurrent(ctx, r.object, &t, false, overrides, revisions)
	}
	if err != nil {
		return t, nil, err
	}

	// 3. What follows.
	if err := t.SetRevisions(ref, revisions, works, overrides); err != nil {
		return t, nil, err
	}
	t.DeletedVersions, err = template.DeletedVersions(ctx, r.configMap, r.namespace, t.Revisions)
	if apierrors.IsForbidden(err) {
		notes = append(notes, "you may not read ConfigMaps: whether versions of them were deleted is not known")
	} else if err != nil {
		return t, nil, err
	}
	t.SetObstacles(clusters, overrides, pacers)
	t.Placed = t.Placed || unread
	if t.Placed && t.Former == nil && t.Binding.GetAnnotations()[fleet.EffectiveRevisionAnnotation] == "" {
		notes = append(notes, "the revision that clusters have is not known: the plan takes all their "+
			"pods for old ones, and the release cannot be rolled back")
	}
	t.Progress, err = dispatch.ProgressOf(dispatch.Input{Binding: t.Binding, Template: t.Template, Clusters: clusters,
		Existing: dispatch.WorksByCluster(works), Revisions: t.Revisions, Now: r.now()})
	return t, notes, err
}

// pacers reads the objects that may pace workloads of the namespace in members. notes name what the user may not read.
func (r *releases) pacers(ctx context.Context) (all []*unstructured.Unstructured, notes []string, err error) {
	for _, kind := range release.PacerKinds() {
		mapping, err := r.mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		err = r.client.List(ctx, list, client.InNamespace(r.namespace))
		if apierrors.IsForbidden(err) {
			notes = append(notes, fmt.Sprintf("you may not list %s: whether one of them paces the workload is not known",
				mapping.Resource.GroupResource()))
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, notes, nil
}
