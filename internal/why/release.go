package why

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// ReleaseTargets reads what decides whether a release that has ended can be rolled back: its workloads, their bindings
// and, where a binding names no revision, that of the workload. It leaves out the targets that the user may not read.
func ReleaseTargets(ctx context.Context, r client.Reader, rel *releasev1alpha1.Release) (map[string]release.Target,
	error) {
	targets := map[string]release.Target{}
	for _, spec := range rel.Spec.Targets {
		t, err := releaseTarget(ctx, r, rel, spec.Ref)
		switch {
		case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read target %s of release %s: %w", spec.Name, rel.Name, err)
		}
		targets[spec.Name] = t
	}
	return targets, nil
}

func releaseTarget(ctx context.Context, r client.Reader, rel *releasev1alpha1.Release,
	ref releasev1alpha1.ReleaseObjectReference) (t release.Target, err error) {
	read := func(gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, bool, error) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
		return u, err == nil, client.IgnoreNotFound(err)
	}
	namespace, gvk := rel.Namespace, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	workload, found, err := read(gvk, namespace, ref.Name)
	if err != nil || !found {
		return t, err
	}
	t.Template = workload
	t.Binding, _, err = scope.BindingFor(ctx, r, gvk.GroupKind(), namespace, ref.Name)
	if err != nil || t.Binding == nil || t.Binding.GetAnnotations()[fleet.EffectiveRevisionAnnotation] != "" {
		return t, err
	}
	overrides, err := scope.Overrides.Over(ctx, r, namespace)
	if err != nil {
		return t, err
	}
	err = template.SetCurrent(ctx, func(_ context.Context, gk schema.GroupKind, namespace,
		name string) (*unstructured.Unstructured, bool, error) {
		return read(gk.WithVersion("v1"), namespace, name) // ConfigMaps
	}, &t, release.Input{Release: rel, Strategy: rel.Spec.Strategy}.VersionsConfig(), overrides, nil)
	return t, err
}
