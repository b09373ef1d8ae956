package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/scope"
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
	var revisions releasev1alpha1.ReleaseRevisionList
	if err := r.client.List(ctx, &revisions, client.InNamespace(r.namespace)); err != nil {
		return in, nil, fmt.Errorf("list ReleaseRevisions: %w", err)
	}
	for _, t := range rel.Spec.Targets {
		target, lacks, err := r.target(ctx, t.Ref, in.Clusters, revisions.Items)
		if err != nil {
			return in, nil, fmt.Errorf("target %s: %w", t.Name, err)
		}
		in.Targets[t.Name], notes = target, append(notes, lacks...)
	}
	slices.Sort(notes)
	return in, slices.Compact(notes), nil
}

// template reads a workload of the hub; nil if there is none.
func (r *releases) template(ctx context.Context,
	ref releasev1alpha1.ReleaseObjectReference) (*unstructured.Unstructured, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	mapping, err := r.mapper.RESTMapping(schema.GroupKind{Group: gv.Group, Kind: ref.Kind})
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, fmt.Errorf("a %s has no namespace, and cannot be released", ref.Kind)
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.client.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: ref.Name}, template)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
	}
	return template, nil
}

// target reads what concerns a workload.
func (r *releases) target(ctx context.Context, ref releasev1alpha1.ReleaseObjectReference,
	clusters map[string]*clusterv1alpha1.Cluster, revisions []releasev1alpha1.ReleaseRevision) (t release.Target,
	notes []string, err error) {
	// 1. The template and its binding.
	if t.Template, err = r.template(ctx, ref); err != nil || t.Template == nil {
		return t, nil, err
	}
	gk := t.Template.GroupVersionKind().GroupKind()
	if t.Binding, _, err = scope.BindingFor(ctx, r.client, gk, r.namespace, ref.Name); err != nil || t.Binding == nil {
		return t, nil, err
	}
	spec := t.Binding.BindingSpec()
	t.Divided = spec.Replicas > 0 && spec.Placement.DividesReplicas()

	// 2. Its revisions.
	t.Revisions = map[string]*releasev1alpha1.ReleaseRevision{}
	for i, revision := range revisions {
		if own := revision.Spec.Target; own.Kind == ref.Kind && own.Name == ref.Name {
			t.Revisions[revision.Name] = &revisions[i]
		}
	}
	overrides, err := scope.Overrides.Over(ctx, r.client, r.namespace)
	if apierrors.IsForbidden(err) {
		notes = append(notes, "you may not list all override policies: changes of overrides are not seen")
	} else if err != nil {
		return t, nil, fmt.Errorf("list override policies: %w", err)
	}
	effective := t.Revisions[t.Binding.GetAnnotations()[fleet.EffectiveRevisionAnnotation]]
	if t.Current, err = release.NewRevision(t.Template, overrides); err != nil {
		return t, nil, err
	}

	// 3. What clusters have.
	works := map[string]*workv1alpha1.Work{}
	var list workv1alpha1.WorkList
	err = r.client.List(ctx, &list, client.MatchingFields{"metadata.name": dispatch.WorkName(t.Binding, t.Template)})
	if apierrors.IsForbidden(err) {
		notes = append(notes, "you may not list Works: progress in clusters is not known")
	} else if err != nil {
		return t, nil, fmt.Errorf("list Works: %w", err)
	}
	for i := range list.Items {
		if cluster, err := names.ClusterOf(list.Items[i].Namespace); err == nil {
			works[cluster] = &list.Items[i]
		}
	}
	if effective == nil {
		if t.Former, err = formerRevision(t, works, overrides); err != nil {
			return t, nil, err
		}
		if t.Former.Name == unknownRevision {
			notes = append(notes, "the revision that clusters have is not known: the plan takes all their pods for old ones")
		}
	}
	if fleet.PlanOf(t.Binding.GetAnnotations()) != nil {
		t.Progress, err = dispatch.ProgressOf(dispatch.Input{Binding: t.Binding, Template: t.Template, Clusters: clusters,
			Existing: works, Revisions: t.Revisions, Now: r.now()})
	}
	return t, notes, err
}

// unknownRevision is the name of a former revision that is not known.
const unknownRevision = "unknown"

// formerRevision is the revision that clusters have while the binding names none: that of a Work to which no override
// was applied, of another revision than the template's if there is one. Without such a Work, it is one that differs
// from the template's, so that the plan takes all pods for old ones.
func formerRevision(t release.Target, works map[string]*workv1alpha1.Work,
	overrides []policyv1alpha1.Override) (*releasev1alpha1.ReleaseRevision, error) {
	var same *releasev1alpha1.ReleaseRevision
	for _, cluster := range slices.Sorted(maps.Keys(works)) {
		w := works[cluster]
		if len(w.Spec.Workload.Manifests) == 0 || w.Annotations[policyv1alpha1.AppliedOverridesAnnotation] != "" ||
			w.Annotations[policyv1alpha1.AppliedClusterOverridesAnnotation] != "" {
			continue
		}
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
			return nil, fmt.Errorf("read the Work in cluster %q: %w", cluster, err)
		}
		revision, err := release.NewRevision(withNameOf(manifest, t.Template), overrides)
		if err != nil {
			return nil, err
		}
		if revision.Name != t.Current.Name {
			return revision, nil
		}
		same = revision
	}
	if same != nil {
		return same, nil
	}
	other := t.Template.DeepCopy()
	if err := unstructured.SetNestedField(other.Object, unknownRevision, "spec", "template", "metadata", "annotations",
		unknownRevision); err != nil {
		return nil, err
	}
	revision, err := release.NewRevision(other, nil)
	if err == nil {
		revision.Name = unknownRevision
	}
	return revision, err
}

// withNameOf is a manifest under the name and version of its template.
func withNameOf(manifest, template *unstructured.Unstructured) *unstructured.Unstructured {
	manifest.SetAPIVersion(template.GetAPIVersion())
	manifest.SetName(template.GetName())
	manifest.SetNamespace(template.GetNamespace())
	return manifest
}
