package release

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// starter creates the releases that the hub starts by itself. Its requests are bindings.
type starter struct {
	*reconciler
	// due is when the hub creates a Release for the template of a binding, by the key of the binding. Only Reconcile,
	// which is called by one worker, uses it.
	due map[types.NamespacedName]time.Time
}

// settle is for how long a change is left alone before its release is created: what a user applies together counts
// together, in whatever order it arrives.
const settle = 2 * time.Second

// setupStarts registers the controller that starts releases.
func setupStarts(mgr ctrl.Manager, r *reconciler) error {
	s := &starter{r, map[types.NamespacedName]time.Time{}}
	b := ctrl.NewControllerManagedBy(mgr).Named("release-start").
		For(&workv1alpha2.ResourceBinding{}, builder.WithPredicates(filter.Changes(
			func(was, is *workv1alpha2.ResourceBinding) bool {
				return was.Annotations[fleet.EffectiveRevisionAnnotation] != is.Annotations[fleet.EffectiveRevisionAnnotation] ||
					meta.IsStatusConditionTrue(was.Status.Conditions, fleet.ChangeAwaitsRelease) !=
						meta.IsStatusConditionTrue(is.Status.Conditions, fleet.ChangeAwaitsRelease)
			}))).
		Watches(&releasev1alpha1.Release{}, handler.EnqueueRequestsFromMapFunc(s.targets),
			builder.WithPredicates(filter.AfterStart, phaseChanged)).
		Watches(&releasev1alpha1.ReleaseStrategy{}, handler.EnqueueRequestsFromMapFunc(s.concerned),
			builder.WithPredicates(filter.AfterStart, filter.Respecified)).
		Watches(&releasev1alpha1.ReleaseGuard{}, handler.EnqueueRequestsFromMapFunc(s.concerned),
			builder.WithPredicates(filter.AfterStart, filter.Respecified))
	for _, kind := range scope.Overrides.Kinds() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(s.concerned),
			builder.WithPredicates(filter.AfterStart, filter.Respecified))
	}
	return b.WatchesRawSource(s.templates(s.bindingOf, func(ctx context.Context, is *unstructured.Unstructured) bool {
		return is != nil && (release.StrategyOf(is) != "" || s.records(ctx, is.GetNamespace()))
	})).WithOptions(controller.Options{RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).Complete(s)
}

// concerned returns the bindings in the namespace of an object whose changes wait for releases or are recorded; all for
// an object without a namespace.
func (s *starter) concerned(ctx context.Context, obj client.Object) []reconcile.Request {
	recorded := map[string]bool{} // by namespace
	return filter.Listed(ctx, s.client, &workv1alpha2.ResourceBindingList{}, func(b client.Object) bool {
		if _, known := recorded[b.GetNamespace()]; !known {
			recorded[b.GetNamespace()] = s.records(ctx, b.GetNamespace())
		}
		return b.GetAnnotations()[fleet.EffectiveRevisionAnnotation] != "" || recorded[b.GetNamespace()]
	}, client.InNamespace(obj.GetNamespace()))
}

// records reports whether a ReleaseGuard requires records of direct changes in a namespace.
func (s *starter) records(ctx context.Context, namespace string) bool {
	var guards releasev1alpha1.ReleaseGuardList
	if err := s.client.List(ctx, &guards, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list ReleaseGuards")
		return false
	}
	return release.RequiredBy(guards.Items, namespace, releasev1alpha1.RequireRecord) != ""
}

// targets returns the bindings of the targets of a release.
func (s *starter) targets(ctx context.Context, obj client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, t := range obj.(*releasev1alpha1.Release).Spec.Targets {
		out = append(out, s.bindingOf(ctx, obj.GetNamespace(), t.Ref)...)
	}
	return out
}

func (s *starter) bindingOf(ctx context.Context, namespace string,
	ref releasev1alpha1.ReleaseObjectReference) []reconcile.Request {
	b, _, err := scope.BindingFor(ctx, s.client, match.GroupKind(ref.APIVersion, ref.Kind), namespace, ref.Name,
		client.UnsafeDisableDeepCopy)
	if err != nil || b == nil {
		return nil // the binding is an event of its own
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(b)}}
}

// Reconcile starts a release of the template of a binding if a change waits for the hub to start it, or records a
// change that does not wait.
func (s *starter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &workv1alpha2.ResourceBinding{}
	if err := s.client.Get(ctx, req.NamespacedName, b, client.UnsafeDisableDeepCopy); err != nil {
		delete(s.due, req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp != nil ||
		b.Annotations[fleet.EffectiveRevisionAnnotation] == "" && !s.records(ctx, b.Namespace) {
		return reconcile.Result{}, nil
	}
	obj, err := s.toCreate(ctx, b, s.Templates.Get)
	if err != nil {
		return reconcile.Result{}, err
	}
	if obj == nil {
		delete(s.due, req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if rel, ok := obj.(*releasev1alpha1.Release); ok && !release.IsRecord(rel) {
		if s.due[req.NamespacedName].IsZero() {
			s.due[req.NamespacedName] = time.Now().Add(settle)
		}
		if left := time.Until(s.due[req.NamespacedName]); left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil
		}
		delete(s.due, req.NamespacedName)
	}
	// The cached template may be older than the last release.
	if obj, err = s.toCreate(ctx, b, s.Templates.Live); err != nil || obj == nil {
		return reconcile.Result{}, err
	}
	if err := s.client.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, fmt.Errorf("create %s: %w", commit.Name(obj), err)
	}
	return reconcile.Result{}, nil
}

// toCreate returns the Release, or the ReleaseRevision, that is to be created for the template of a binding; nil for
// none.
func (s *starter) toCreate(ctx context.Context, b *workv1alpha2.ResourceBinding,
	get template.Getter) (client.Object, error) {
	ref := targetOf(b)
	workload, found, err := get(ctx, match.GroupKind(ref.APIVersion, ref.Kind), b.Namespace, ref.Name)
	if meta.IsNoMatchError(err) || err == nil && !found {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	in := release.StartInput{Template: workload, Binding: b, Stored: map[string]*releasev1alpha1.ReleaseRevision{}}
	name := release.StrategyOf(workload)
	if name != "" {
		strategy := &releasev1alpha1.ReleaseStrategy{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, strategy)
		if apierrors.IsNotFound(err) || err == nil && strategy.Spec.AutoStart == nil {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("get ReleaseStrategy %s/%s: %w", b.Namespace, name, err)
		}
		in.Strategy = &strategy.Spec
	}
	overrides, err := scope.Overrides.Over(ctx, s.client, b.Namespace, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list override policies: %w", err)
	}
	revisions, err := s.revisions(ctx, b.Namespace, ref)
	if err != nil {
		return nil, fmt.Errorf("list release revisions: %w", err)
	}
	for i := range revisions {
		in.Stored[revisions[i].Name] = &revisions[i]
	}
	t := release.Target{Template: workload, Binding: b}
	if err := template.SetCurrent(ctx, get, &t, release.VersionsConfig(in.Strategy), overrides,
		revisions); err != nil {
		return nil, err
	}
	in.Current = t.Current
	if in.Releases, err = facts.ReleasesIn(ctx, s.client, client.InNamespace(b.Namespace),
		client.MatchingFields{byTarget: targetIndex(ref)}); err != nil {
		return nil, err
	}
	if name != "" {
		if r := release.ReleaseToStart(in); r != nil {
			return r, nil
		}
		return nil, nil
	}
	switch r, baseline := release.RecordToStart(in); {
	case !s.records(ctx, b.Namespace):
		return nil, nil
	case r != nil:
		return r, nil
	case baseline != nil:
		stored := &releasev1alpha1.ReleaseRevision{Spec: *baseline.Spec.DeepCopy()}
		stored.Namespace, stored.Name = b.Namespace, baseline.Name
		return stored, nil
	}
	return nil, nil
}
