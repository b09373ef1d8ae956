package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// ReleaseReader reads what concerns a release, with the rights of a user.
type ReleaseReader struct {
	Client    client.Client
	Mapper    meta.RESTMapper
	Namespace string
	Now       func() time.Time
}

// Plan previews a release, one that is not created yet or one of the hub.
func (r *ReleaseReader) Plan(ctx context.Context, rel *releasev1alpha1.Release) (*release.ReleasePlan, error) {
	in, notes, err := r.input(ctx, rel)
	if err != nil {
		return nil, err
	}
	plan, err := release.PlanOf(in)
	if err != nil {
		return nil, err
	}
	frozen, err := r.frozen(ctx, rel, cmp.Or(rel.Status.Strategy, in.Strategy))
	plan.Notes = slices.Concat(notes, plan.Notes, frozen)
	return plan, err
}

// Changes compares the revisions before and after a release.
func (r *ReleaseReader) Changes(ctx context.Context, rel *releasev1alpha1.Release) ([]release.TargetChanges, error) {
	if len(rel.Status.Targets) == 0 {
		what, _ := release.Waits(rel)
		return nil, fmt.Errorf("release %s has no revisions to compare: %s", rel.Name, what)
	}
	var all []release.TargetChanges
	for i, t := range rel.Status.Targets {
		ref := rel.Spec.Targets[i].Ref
		var from *releasev1alpha1.ReleaseRevision
		to, err := r.revision(ctx, t.To)
		if err == nil && t.From != "" {
			from, err = r.revision(ctx, t.From)
		}
		if err != nil {
			return nil, err
		}
		one, err := release.ChangesOfTarget(release.PlannedTarget{Name: t.Name, Kind: ref.Kind, Workload: ref.Name,
			From: t.From, To: t.To}, from, to)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (r *ReleaseReader) revision(ctx context.Context, name string) (*releasev1alpha1.ReleaseRevision, error) {
	revision := &releasev1alpha1.ReleaseRevision{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, revision); err != nil {
		return nil, fmt.Errorf("read ReleaseRevision %q: %w", name, err)
	}
	return revision, nil
}

// Evidence reads what a user sees before a verdict at a gate. What the user may not read is left out, with a note.
func (r *ReleaseReader) Evidence(ctx context.Context, rel *releasev1alpha1.Release,
	gate releasev1alpha1.ReleaseGateStatus) (release.Evidence, error) {
	var notes []string
	changes, err := r.Changes(ctx, rel)
	if err != nil {
		changes, notes = []release.TargetChanges{}, append(notes, "the changes cannot be shown: "+err.Error())
	}
	plan, err := r.Plan(ctx, rel)
	if err != nil {
		plan, notes = nil, append(notes, "the plan cannot be shown: "+err.Error())
	}
	e := release.EvidenceOf(rel, gate, changes, plan)
	e.Notes = append(notes, e.Notes...)
	return e, ctx.Err()
}

// input reads what the hub would decide a release from, with the rights of the user. notes name what the user may not
// read.
func (r *ReleaseReader) input(ctx context.Context, rel *releasev1alpha1.Release) (in release.Input, notes []string,
	err error) {
	in = release.Input{Release: rel, Strategy: rel.Spec.Strategy, Targets: map[string]release.Target{},
		Clusters: map[string]*clusterv1alpha1.Cluster{}, Now: r.Now()}
	if ref := rel.Spec.StrategyRef; ref != nil {
		s := &releasev1alpha1.ReleaseStrategy{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: ref.Name}, s)
		if client.IgnoreNotFound(err) != nil {
			return in, nil, fmt.Errorf("read ReleaseStrategy %q: %w", ref.Name, err)
		}
		if err == nil {
			in.Strategy = &s.Spec
		}
	}
	var known clusterv1alpha1.ClusterList
	if err := r.Client.List(ctx, &known); err != nil {
		return in, nil, fmt.Errorf("list clusters: %w", err)
	}
	for i := range known.Items {
		in.Clusters[known.Items[i].Name] = &known.Items[i]
	}
	var others releasev1alpha1.ReleaseList
	if err := r.Client.List(ctx, &others, client.InNamespace(r.Namespace)); err != nil {
		return in, nil, fmt.Errorf("list releases: %w", err)
	}
	in.Others = others.Items
	if notes, err = r.readGuards(ctx, &in); err != nil {
		return in, nil, err
	}
	var revisions releasev1alpha1.ReleaseRevisionList
	if err := r.Client.List(ctx, &revisions, client.InNamespace(r.Namespace)); err != nil {
		return in, nil, fmt.Errorf("list ReleaseRevisions: %w", err)
	}
	var checks releasev1alpha1.ReleaseCheckList
	err = r.Client.List(ctx, &checks, client.InNamespace(r.Namespace))
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
func (r *ReleaseReader) configMap(ctx context.Context, namespace, name string) (*unstructured.Unstructured, bool,
	error) {
	return r.Object(ctx, release.ConfigMapKind, namespace, name)
}

// Object is a template.Getter with the rights of the user.
func (r *ReleaseReader) Object(ctx context.Context, gk schema.GroupKind, namespace,
	name string) (*unstructured.Unstructured, bool, error) {
	mapping, err := r.Mapper.RESTMapping(gk)
	if err != nil {
		return nil, false, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s %s: %w", gk.Kind, name, err)
	}
	return obj, true, nil
}

// Template reads a workload of the hub; nil if there is none.
func (r *ReleaseReader) Template(ctx context.Context,
	ref releasev1alpha1.ReleaseObjectReference) (*unstructured.Unstructured, error) {
	gk := match.GroupKind(ref.APIVersion, ref.Kind)
	mapping, err := r.Mapper.RESTMapping(gk)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, fmt.Errorf("a %s has no namespace, and cannot be released", ref.Kind)
	}
	obj, _, err := r.Object(ctx, gk, r.Namespace, ref.Name)
	return obj, err
}

// target reads what concerns a workload.
func (r *ReleaseReader) target(ctx context.Context, ref releasev1alpha1.ReleaseObjectReference,
	clusters map[string]*clusterv1alpha1.Cluster, revisions []releasev1alpha1.ReleaseRevision,
	versioned bool) (t release.Target, notes []string, err error) {
	// 1. The template and its binding.
	if t.Template, err = r.Template(ctx, ref); err != nil || t.Template == nil {
		return t, nil, err
	}
	gk := t.Template.GroupVersionKind().GroupKind()
	if t.Binding, _, err = scope.BindingFor(ctx, r.Client, gk, r.Namespace, ref.Name); err != nil || t.Binding == nil {
		return t, nil, err
	}
	t.Divided = dispatch.Divides(t.Binding.BindingSpec())

	// 2. What is beside them.
	overrides, err := scope.Overrides.Over(ctx, r.Client, r.Namespace)
	if apierrors.IsForbidden(err) {
		notes = append(notes, "you may not list all override policies: changes of overrides are not seen")
	} else if err != nil {
		return t, nil, fmt.Errorf("list override policies: %w", err)
	}
	works, err := scope.WorksFor(ctx, r.Client, dispatch.WorkName(t.Binding, t.Template),
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

	err = template.SetCurrent(ctx, r.Object, &t, versioned, overrides, revisions)
	if apierrors.IsForbidden(err) {
		notes = append(notes, "you may not read the ConfigMaps of the pods: changes of them are not seen")
		err = template.SetCurrent(ctx, r.Object, &t, false, overrides, revisions)
	}
	if err != nil {
		return t, nil, err
	}

	// 3. What follows.
	if err := t.SetRevisions(ref, revisions, works, overrides); err != nil {
		return t, nil, err
	}
	t.DeletedVersions, err = template.DeletedVersions(ctx, r.configMap, r.Namespace, t.Revisions)
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
		Existing: dispatch.WorksByCluster(works), Revisions: t.Revisions, Now: r.Now()})
	return t, notes, err
}

// pacers reads the objects that may pace workloads of the namespace in members. notes name what the user may not read.
func (r *ReleaseReader) pacers(ctx context.Context) (all []*unstructured.Unstructured, notes []string, err error) {
	for _, kind := range release.PacerKinds() {
		mapping, err := r.Mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind)
		err = r.Client.List(ctx, list, client.InNamespace(r.Namespace))
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

// readGuards reads the guards that may select a release, and the releases that count for their limits. Limits of pods
// are not checked: few users may read all bindings. notes name what the user may not read.
func (r *ReleaseReader) readGuards(ctx context.Context, in *release.Input) (notes []string, err error) {
	var guards releasev1alpha1.ReleaseGuardList
	err = r.Client.List(ctx, &guards)
	if apierrors.IsForbidden(err) {
		return []string{"you may not list ReleaseGuards: their windows, limits and approvals are not in the plan"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ReleaseGuards: %w", err)
	}
	limits := false
	for i := range guards.Items {
		if g := &guards.Items[i]; release.GuardsNamespace(g, r.Namespace) {
			in.Guards = append(in.Guards, release.Guard{ReleaseGuard: g, Budget: g.Status.ErrorBudget})
			limits = limits || g.Spec.Limits != nil
		}
	}
	if !limits {
		return nil, nil
	}
	var all releasev1alpha1.ReleaseList
	err = r.Client.List(ctx, &all)
	if apierrors.IsForbidden(err) {
		in.Peers = in.Others
		return []string{"you may not list releases of all namespaces: what they use of the limits of ReleaseGuards is " +
			"not known"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list releases of all namespaces: %w", err)
	}
	in.Peers = all.Items
	return nil, nil
}

// frozen returns a note for each FederatedHPA that does not scale a target during stages.
func (r *ReleaseReader) frozen(ctx context.Context, rel *releasev1alpha1.Release,
	strategy *releasev1alpha1.ReleaseStrategySpec) (notes []string, err error) {
	if !release.FreezesAutoscaling(strategy) {
		return nil, nil
	}
	var all autoscalingv1alpha1.FederatedHPAList
	err = r.Client.List(ctx, &all, client.InNamespace(r.Namespace))
	if apierrors.IsForbidden(err) {
		return []string{"you may not list FederatedHPAs: which of them the release freezes is not known"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list FederatedHPAs: %w", err)
	}
	for _, t := range rel.Spec.Targets {
		for _, f := range all.Items {
			ref := f.Spec.ScaleTargetRef
			if ref.Name == t.Ref.Name && match.GroupKind(ref.APIVersion, ref.Kind) ==
				match.GroupKind(t.Ref.APIVersion, t.Ref.Kind) {
				notes = append(notes, fmt.Sprintf("autoscaling: Freeze: FederatedHPA %s does not scale %s %s during a stage",
					f.Name, ref.Kind, ref.Name))
			}
		}
	}
	return notes, nil
}

// Undo reads what decides whether and how a workload goes back to a stored revision.
func Undo(ctx context.Context, r client.Reader, template *unstructured.Unstructured) (in release.UndoInput, err error) {
	in.Template = template
	var stored appsv1.ControllerRevisionList
	if err := r.List(ctx, &stored, client.InNamespace(fleet.HistoryNamespace(template)),
		client.MatchingLabels{wellknown.RevisionOfLabel: string(template.GetUID())}); err != nil {
		return in, fmt.Errorf("list the revisions of %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	in.Stored = stored.Items
	if template.GetNamespace() != "" {
		var releases releasev1alpha1.ReleaseList
		if err := r.List(ctx, &releases, client.InNamespace(template.GetNamespace())); err != nil {
			return in, fmt.Errorf("list releases: %w", err)
		}
		in.Releases = releases.Items
	}
	in.Binding, _, err = scope.BindingFor(ctx, r, template.GroupVersionKind().GroupKind(), template.GetNamespace(),
		template.GetName())
	return in, err
}
