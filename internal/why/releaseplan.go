package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
)

// ReleaseReader reads what concerns a release, with the rights of a user.
type ReleaseReader struct {
	Client    client.Reader
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
	read := rel.DeepCopy()
	read.Namespace = r.Namespace
	of := r.facts(ctx, func(what string) { notes = append(notes, what) })
	if in, err = of.Input(ctx, read, r.Now()); err != nil {
		return in, nil, err
	}
	for _, t := range in.Targets {
		if t.Placed && t.Former == nil && t.Binding.GetAnnotations()[fleet.EffectiveRevisionAnnotation] == "" {
			notes = append(notes, "the revision that clusters have is not known: the plan takes all their "+
				"pods for old ones, and the release cannot be rolled back")
		}
	}
	slices.Sort(notes)
	return in, slices.Compact(notes), nil
}

// RequestInput reads what release.RequestFor needs for a verb on a release.
func (r *ReleaseReader) RequestInput(ctx context.Context, rel *releasev1alpha1.Release, verb string) (release.Input,
	error) {
	if !release.NeedsTargets(rel, verb) {
		return release.Input{Release: rel}, nil
	}
	return r.facts(ctx, func(string) {}).Rollback(ctx, rel)
}

// facts reads with the rights of the user. lacks gets what is not known for a missing right.
func (r *ReleaseReader) facts(ctx context.Context, lacks func(what string)) facts.Releases {
	revisions := sync.OnceValues(func() ([]releasev1alpha1.ReleaseRevision, error) { // those of all targets
		var list releasev1alpha1.ReleaseRevisionList
		err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace))
		return list.Items, err
	})
	return facts.Releases{Reader: r.Client, Object: r.Object, Version: r.configMap, Pacers: r.list,
		// A plan has no step that approvals permit.
		Approvals: func(context.Context, *releasev1alpha1.Release) ([]releasev1alpha1.ReleaseApproval, error) {
			return nil, nil
		},
		Revisions: func(context.Context, string,
			releasev1alpha1.ReleaseObjectReference) ([]releasev1alpha1.ReleaseRevision, error) {
			return revisions()
		},
		Works: func(ctx context.Context, b workv1alpha2.Binding,
			template *unstructured.Unstructured) ([]workv1alpha1.Work, error) {
			return scope.WorksFor(ctx, r.Client, dispatch.WorkName(b, template), identity.FromManifest(template))
		},
		// The release has the last states that were stored.
		Checks: func(types.NamespacedName) map[string]releasev1alpha1.ReleaseCheckStatus { return nil },
		Budget: func(g *releasev1alpha1.ReleaseGuard) *releasev1alpha1.ReleaseGuardBudget { return g.Status.ErrorBudget },
		Lacks:  lacks,
	}
}

// configMap returns a ConfigMap, and whether it exists.
func (r *ReleaseReader) configMap(ctx context.Context, namespace, name string) (*unstructured.Unstructured, bool,
	error) {
	return r.Object(ctx, release.ConfigMapKind, namespace, name)
}

// Object is a template.Getter with the rights of the user, for kinds with a namespace.
func (r *ReleaseReader) Object(ctx context.Context, gk schema.GroupKind, namespace,
	name string) (*unstructured.Unstructured, bool, error) {
	mapping, err := r.Mapper.RESTMapping(gk)
	if err != nil {
		return nil, false, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, false, fmt.Errorf("a %s has no namespace, and cannot be released", gk.Kind)
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
	obj, _, err := r.Object(ctx, match.GroupKind(ref.APIVersion, ref.Kind), r.Namespace, ref.Name)
	return obj, err
}

// list lists the objects of a kind in a namespace; none if the hub does not serve the kind.
func (r *ReleaseReader) list(ctx context.Context, kind schema.GroupKind,
	namespace string) (all []*unstructured.Unstructured, err error) {
	mapping, err := r.Mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
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
