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
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
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

// storeBaseline stores the revision that members have when a template gets a release strategy; nil is none. It is
// stored here, and not by the release controller, because the Works and the template must not change meanwhile.
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

// configMaps returns dispatch.Input.ConfigMaps.
func (r *reconciler) configMaps(ctx context.Context, in dispatch.Input) (release.ConfigMaps, error) {
	var versions []string
	versioned := false
	for _, revision := range in.Revisions {
		versions = append(versions, release.Versions(revision)...)
		versioned = versioned || len(revision.Spec.Config) > 0
	}
	if name := release.StrategyOf(in.Template); len(dispatch.RevisionsOf(in.Binding)) == 0 && name != "" &&
		in.Binding.BindingSpec().PropagateDeps {
		strategy := &releasev1alpha1.ReleaseStrategy{}
		key := client.ObjectKey{Namespace: in.Template.GetNamespace(), Name: name}
		if err := r.client.Get(ctx, key, strategy); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get ReleaseStrategy %s: %w", key, err)
		}
		versioned = release.VersionsConfig(&strategy.Spec)
	}
	if !versioned {
		return nil, nil
	}
	all, err := template.ConfigMaps(ctx, r.Templates.Get, in.Template)
	if err != nil {
		return nil, err
	}
	for _, name := range versions {
		version, found, err := r.Templates.Version(ctx, in.Template.GetNamespace(), name)
		if err != nil {
			return nil, err
		}
		if found {
			all[name] = version
		}
	}
	return all, nil
}

// configRead returns the bindings of the workloads whose releases version a ConfigMap.
func (r *reconciler) configRead(ctx context.Context, namespace, configMap string) (out []reconcile.Request) {
	for _, w := range template.WorkloadsReading(ctx, r.client, namespace, configMap) {
		out = append(out, r.bindingFor(ctx, w.Namespace, w.ReleaseObjectReference)...)
	}
	return out
}

// madeFrom returns the binding of the workload of a ReleaseRevision.
func (r *reconciler) madeFrom(ctx context.Context, revision client.Object) []reconcile.Request {
	return r.bindingFor(ctx, revision.GetNamespace(), revision.(*releasev1alpha1.ReleaseRevision).Spec.Target)
}

// bindingFor returns the binding of a workload that is released.
func (r *reconciler) bindingFor(ctx context.Context, namespace string,
	target releasev1alpha1.ReleaseObjectReference) []reconcile.Request {
	b, _, err := scope.BindingFor(ctx, r.client, match.GroupKind(target.APIVersion, target.Kind), namespace, target.Name,
		client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the binding of a workload that is released", "workload", target.Name)
	}
	if b == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(b)}}
}
