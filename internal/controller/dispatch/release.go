package dispatch

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
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

// storeBaseline stores the revision that members have when a template gets a release strategy. It is stored here, and
// not by the release controller, because the Works and the template must not change meanwhile.
func (r *reconciler) storeBaseline(ctx context.Context, d dispatch.Decision) error {
	if d.Baseline == nil {
		return nil
	}
	for _, version := range d.ConfigMaps {
		// It is not taken if it exists: the next decision sees what it is.
		if err := r.client.Create(ctx, version); err != nil {
			return fmt.Errorf("create %s: %w", commit.Name(version), err)
		}
	}
	stored := &releasev1alpha1.ReleaseRevision{Spec: *d.Baseline.Spec.DeepCopy()}
	stored.Namespace, stored.Name = d.Baseline.Namespace, d.Baseline.Name
	if err := r.client.Create(ctx, stored); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s: %w", commit.Name(stored), err)
	}
	return nil
}

// configMaps returns dispatch.Input.ConfigMaps.
func (r *reconciler) configMaps(ctx context.Context, in dispatch.Input) (release.ConfigMaps, error) {
	annotations := in.Binding.GetAnnotations()
	name := annotations[fleet.EffectiveRevisionAnnotation]
	switch effective := in.Revisions[name]; {
	case annotations[fleet.PlanAnnotation] != "":
		return nil, nil // a release decides
	case name != "":
		if effective == nil || len(effective.Spec.Config) == 0 {
			return nil, nil
		}
	case release.StrategyOf(in.Template) == "" || !in.Binding.BindingSpec().PropagateDeps:
		return nil, nil
	default:
		strategy := &releasev1alpha1.ReleaseStrategy{}
		key := client.ObjectKey{Namespace: in.Template.GetNamespace(), Name: release.StrategyOf(in.Template)}
		if err := r.client.Get(ctx, key, strategy); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get ReleaseStrategy %s: %w", key, err)
		}
		if !release.VersionsConfig(&strategy.Spec) {
			return nil, nil
		}
	}
	return template.ConfigMaps(ctx, r.Templates.Get, in.Template)
}

// configRead returns the bindings of the workloads whose releases version a ConfigMap.
func (r *reconciler) configRead(ctx context.Context, configMap *unstructured.Unstructured) (out []reconcile.Request) {
	var revisions releasev1alpha1.ReleaseRevisionList
	if err := r.client.List(ctx, &revisions, client.InNamespace(configMap.GetNamespace()),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list release revisions")
	}
	for _, ref := range release.Readers(revisions.Items, configMap.GetName()) {
		out = append(out, r.bindingFor(ctx, configMap.GetNamespace(), ref)...)
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
