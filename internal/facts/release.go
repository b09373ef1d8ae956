package facts

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Releases reads what the next step of a release follows from. The functions read what the hub finds in an index of its
// caches, and others in the API.
type Releases struct {
	client.Reader
	// Object reads the workload of a release and its ConfigMaps, Version a version of a ConfigMap.
	Object    template.Getter
	Version   template.VersionGetter
	Approvals func(ctx context.Context, rel *releasev1alpha1.Release) ([]releasev1alpha1.ReleaseApproval, error)
	Revisions func(ctx context.Context, namespace string,
		ref releasev1alpha1.ReleaseObjectReference) ([]releasev1alpha1.ReleaseRevision, error)
	Works func(ctx context.Context, b workv1alpha2.Binding,
		template *unstructured.Unstructured) ([]workv1alpha1.Work, error)
	// Pacers lists the objects of a kind of release.PacerKinds in a namespace; none if the hub does not serve the kind.
	Pacers func(ctx context.Context, kind schema.GroupKind, namespace string) ([]*unstructured.Unstructured, error)
	// Checks returns the states of the checks of a release as of their last samples, Budget that of a guard.
	Checks func(release types.NamespacedName) map[string]releasev1alpha1.ReleaseCheckStatus
	Budget func(*releasev1alpha1.ReleaseGuard) *releasev1alpha1.ReleaseGuardBudget
	// Lacks gets what is not known because the user may not read it. Without Lacks, a missing right is an error.
	Lacks func(what string)
}

// lacks reports whether an error is a missing right of a user, and tells what is not known for it.
func (r Releases) lacks(err error, what string) bool {
	if r.Lacks == nil || !apierrors.IsForbidden(err) {
		return false
	}
	r.Lacks(what)
	return true
}

// Input reads the input of a release at a time.
func (r Releases) Input(ctx context.Context, rel *releasev1alpha1.Release, now time.Time) (release.Input, error) {
	in := release.Input{Release: rel, Targets: map[string]release.Target{}, Now: now}
	var err error
	// A release that is being deleted has no next step. It may exist for some time, until it is recorded.
	if in.Others, err = ReleasesIn(ctx, r, client.InNamespace(rel.Namespace)); err != nil {
		return in, err
	}
	if in.Approvals, err = r.Approvals(ctx, rel); err != nil {
		return in, fmt.Errorf("list the approvals of Release %s: %w", rel.Name, err)
	}
	if in.Clusters, err = Clusters(ctx, r); err != nil {
		return in, err
	}
	if err := r.guards(ctx, &in); err != nil {
		return in, err
	}
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

// ReleasesIn lists the releases that are not being deleted.
func ReleasesIn(ctx context.Context, r client.Reader, opts ...client.ListOption) ([]releasev1alpha1.Release, error) {
	var list releasev1alpha1.ReleaseList
	if err := r.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list releases: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(r releasev1alpha1.Release) bool { return r.DeletionTimestamp != nil }), nil
}

// guards reads the guards that may select a release, and what they count.
func (r Releases) guards(ctx context.Context, in *release.Input) error {
	if in.Release.Status.Phase.Ended() {
		return nil
	}
	var list releasev1alpha1.ReleaseGuardList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		if r.lacks(err, "you may not list ReleaseGuards: their windows, limits and approvals are not in the plan") {
			return nil
		}
		return fmt.Errorf("list ReleaseGuards: %w", err)
	}
	limits, counted := false, map[string]map[string]int64{}
	for i := range list.Items {
		g := &list.Items[i]
		if g.DeletionTimestamp != nil || !release.GuardsNamespace(g, in.Release.Namespace) {
			continue
		}
		guard := release.Guard{ReleaseGuard: g, Budget: r.Budget(g)}
		// The plan of a release that was accepted names no guards, and few users may read all bindings.
		if release.LimitsPods(g) && (r.Lacks == nil || len(in.Release.Status.Targets) == 0) {
			var err error
			if guard.Pods, err = r.podsOf(ctx, g, counted); err != nil &&
				!r.lacks(err, "you may not list the bindings of all namespaces: limits of pods are not in the plan") {
				return err
			}
		}
		limits = limits || g.Spec.Limits != nil
		in.Guards = append(in.Guards, guard)
	}
	if !limits {
		return nil
	}
	var err error
	if in.Peers, err = ReleasesIn(ctx, r); err != nil {
		if !r.lacks(err, "you may not list releases of all namespaces: what they use of the limits of ReleaseGuards is "+
			"not known") {
			return err
		}
		in.Peers = in.Others
	}
	return nil
}

// podsOf counts the pods of all workloads in the namespaces of a guard, by cluster. counted has those of namespaces
// that were counted for other guards.
func (r Releases) podsOf(ctx context.Context, g *releasev1alpha1.ReleaseGuard,
	counted map[string]map[string]int64) (map[string]int64, error) {
	pods := map[string]int64{}
	namespaces := g.Spec.Selector.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		if counted[namespace] == nil {
			var bindings workv1alpha2.ResourceBindingList
			if err := r.List(ctx, &bindings, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("list bindings: %w", err)
			}
			counted[namespace] = map[string]int64{}
			for i := range bindings.Items {
				for _, c := range bindings.Items[i].Spec.Clusters {
					counted[namespace][c.Name] += int64(c.Replicas)
				}
			}
		}
		for cluster, n := range counted[namespace] {
			pods[cluster] += n
		}
	}
	return pods, nil
}

// strategy returns the strategy of a release that is not accepted yet, nil if it does not exist.
func (r Releases) strategy(ctx context.Context,
	rel *releasev1alpha1.Release) (*releasev1alpha1.ReleaseStrategySpec, error) {
	ref := rel.Spec.StrategyRef
	if ref == nil || rel.Status.Strategy != nil {
		return rel.Spec.Strategy, nil
	}
	s := &releasev1alpha1.ReleaseStrategy{}
	err := r.Get(ctx, client.ObjectKey{Namespace: rel.Namespace, Name: ref.Name}, s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ReleaseStrategy %s/%s: %w", rel.Namespace, ref.Name, err)
	}
	return &s.Spec, nil
}

// checks reads the states of a release's checks, and before it starts which ReleaseChecks exist.
func (r Releases) checks(ctx context.Context, in *release.Input) error {
	in.Checks = r.Checks(client.ObjectKeyFromObject(in.Release))
	if in.Release.Status.StartedAt != nil {
		return nil
	}
	var checks releasev1alpha1.ReleaseCheckList
	if err := r.List(ctx, &checks, client.InNamespace(in.Release.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		if r.lacks(err, "you may not list ReleaseChecks: whether those of the strategy exist is not known") {
			return nil
		}
		return fmt.Errorf("list release checks: %w", err)
	}
	in.ReleaseChecks = map[string]bool{}
	for _, check := range checks.Items {
		in.ReleaseChecks[check.Name] = true
	}
	return nil
}

// Rollback reads what decides whether a release that has ended can be rolled back: the other releases of its namespace,
// and the workloads and revisions of its targets. It leaves out targets that the user may not read. Works, guards and
// checks are not read.
func (r Releases) Rollback(ctx context.Context, rel *releasev1alpha1.Release) (release.Input, error) {
	in := release.Input{Release: rel, Targets: map[string]release.Target{}}
	r.Works = func(context.Context, workv1alpha2.Binding, *unstructured.Unstructured) ([]workv1alpha1.Work, error) {
		return nil, nil
	}
	var err error
	if in.Others, err = ReleasesIn(ctx, r, client.InNamespace(rel.Namespace)); err != nil {
		return in, err
	}
	overrides, err := r.overrides(ctx, rel.Namespace)
	if err != nil {
		return in, err
	}
	asked := in // the revisions that a rollback needs are read once it is asked for
	asked.Release = rel.DeepCopy()
	asked.Release.Spec.State = releasev1alpha1.StateRollback
	for _, spec := range rel.Spec.Targets {
		t, _, err := r.workload(ctx, asked, spec, overrides)
		switch {
		case err == nil:
			in.Targets[spec.Name] = t
		case !r.lacks(err, fmt.Sprintf("you may not read target %s: whether it can be rolled back is not known", spec.Name)):
			return in, fmt.Errorf("read target %s of Release %s/%s: %w", spec.Name, rel.Namespace, rel.Name, err)
		}
	}
	return in, nil
}

// overrides lists the override policies that may change the workloads of a namespace.
func (r Releases) overrides(ctx context.Context, namespace string) ([]policyv1alpha1.Override, error) {
	all, err := scope.Overrides.Over(ctx, r, namespace, client.UnsafeDisableDeepCopy)
	if err != nil && !r.lacks(err, "you may not list all override policies: changes of overrides are not seen") {
		return nil, fmt.Errorf("list override policies: %w", err)
	}
	return all, nil
}

// workload reads the workload of a target, its binding, its Works, and its revisions: the one now, and those that the
// release can go to. Progress and what else decides its pods are not set.
func (r Releases) workload(ctx context.Context, in release.Input, spec releasev1alpha1.ReleaseTarget,
	overrides []policyv1alpha1.Override) (t release.Target, works []workv1alpha1.Work, err error) {
	// 1. The workload, its binding, its Works and its stored revisions.
	namespace, kind := in.Release.Namespace, match.GroupKind(spec.Ref.APIVersion, spec.Ref.Kind)
	workload, found, err := r.Object(ctx, kind, namespace, spec.Ref.Name)
	if err != nil && !meta.IsNoMatchError(err) {
		return t, nil, err
	}
	if found {
		t.Template = workload
	}
	b, _, err := scope.BindingFor(ctx, r, kind, namespace, spec.Ref.Name, client.UnsafeDisableDeepCopy)
	if err != nil {
		return t, nil, err
	}
	if b != nil && b.GetDeletionTimestamp() == nil {
		t.Binding, t.Divided = b, dispatch.Divides(b.BindingSpec())
	}
	revisions, err := r.Revisions(ctx, namespace, spec.Ref)
	if err != nil {
		return t, nil, fmt.Errorf("list release revisions: %w", err)
	}
	unread := false
	if t.Binding != nil && t.Template != nil {
		works, err = r.Works(ctx, b, t.Template)
		unread = r.lacks(err, "you may not list Works: progress in clusters is not known")
		if err != nil && !unread {
			return t, nil, err
		}
	}

	// 2. Its revision now, and those that the release can go to.
	if t.Template != nil {
		err := template.SetCurrent(ctx, r.Object, &t, in.VersionsConfig(), overrides, revisions)
		if r.lacks(err, "you may not read the ConfigMaps of the pods: changes of them are not seen") {
			err = template.SetCurrent(ctx, r.Object, &t, false, overrides, revisions)
		}
		if err != nil {
			return t, nil, err
		}
	}
	if err := t.SetRevisions(spec.Ref, revisions, works, overrides); err != nil {
		return t, nil, err
	}
	t.Placed = t.Placed || unread
	t.DeletedVersions, err = template.DeletedVersions(ctx, r.Version, namespace, t.RevisionsAhead(in.Release, spec))
	if err != nil && !r.lacks(err, "you may not read ConfigMaps: whether versions of them were deleted is not known") {
		return t, nil, err
	}
	return t, works, nil
}

// target reads a target of a release.
func (r Releases) target(ctx context.Context, in release.Input, spec releasev1alpha1.ReleaseTarget,
	overrides []policyv1alpha1.Override) (t release.Target, err error) {
	t, works, err := r.workload(ctx, in, spec, overrides)
	if err != nil || t.Template == nil || t.Binding == nil {
		return t, err
	}

	// What else decides its pods in the clusters, and how far they are.
	t.RevisionChanges = failover.RevisionChanges(t.Binding)
	if !in.Release.Status.Phase.Ended() && in.Release.Status.StartedAt == nil {
		pacers, err := r.pacers(ctx, in.Release.Namespace)
		if err != nil {
			return t, err
		}
		t.SetObstacles(in.Clusters, overrides, pacers)
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
func (r Releases) pacers(ctx context.Context, namespace string) (all []*unstructured.Unstructured, err error) {
	for _, kind := range release.PacerKinds() {
		some, err := r.Pacers(ctx, kind, namespace)
		if err != nil && !r.lacks(err, fmt.Sprintf("you may not list objects of kind %s: whether one of them paces the "+
			"workload is not known", kind)) {
			return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
		}
		all = append(all, some...)
	}
	return all, nil
}
