package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// pace is the effect of a release on the Works of a binding.
type pace struct {
	// plan is nil without a release.
	plan *fleet.Plan
	// revision is the ReleaseRevision that the template was made from; empty for none.
	revision string
	// current is the name of the template's own revision; empty if it is the only one.
	current string
	// former is the revision of Plan.From and its overrides; nil if it is not known.
	former    *releasev1alpha1.ReleaseRevision
	overrides []policyv1alpha1.Override
	// baseline is the ReleaseRevision to store before the Works; see release.Baseline.
	baseline *releasev1alpha1.ReleaseRevision
	// configMaps are versions to create: those of baseline, or those that were deleted though pods read them. lost has a
	// line for each version that cannot be created.
	configMaps []*unstructured.Unstructured
	lost       []string
	// recheckAfter is when to decide again after an error that ends without an event; 0 for never.
	recheckAfter time.Duration
	// unpin is true if the binding no longer needs to name a ReleaseRevision.
	unpin bool
	// awaits is the condition of a template whose change waits for a release; nil if none does.
	awaits *fleet.Condition
	// effective is the revision of the template; overridesFor uses currentOverrides for clusters that joined later.
	effective        *releasev1alpha1.ReleaseRevision
	currentOverrides []policyv1alpha1.Override
}

// RevisionsOf returns the names of the ReleaseRevisions that the Works of a binding are made from.
func RevisionsOf(b workv1alpha2.Binding) []string {
	var names []string
	if name := b.GetAnnotations()[fleet.EffectiveRevisionAnnotation]; name != "" {
		names = append(names, name)
	}
	if plan := fleet.PlanOf(b.GetAnnotations()); plan != nil && plan.From != "" {
		names = append(names, plan.From)
	}
	return names
}

// Repaced reports whether the release plan or the effective revision of a binding changes.
func Repaced(was, is workv1alpha2.Binding) bool {
	before, now := was.GetAnnotations(), is.GetAnnotations()
	return before[fleet.PlanAnnotation] != now[fleet.PlanAnnotation] ||
		before[fleet.EffectiveRevisionAnnotation] != now[fleet.EffectiveRevisionAnnotation]
}

// RevisionMissingError is returned if the ReleaseRevision of a binding does not exist. Then nothing is written to
// members.
type RevisionMissingError struct{ Namespace, Name string }

func (e *RevisionMissingError) Error() string {
	return fmt.Sprintf("ReleaseRevision %s/%s does not exist: members keep what they have; restore it, or release "+
		"another revision", e.Namespace, e.Name)
}

// paced returns in with the pods and overrides of the effective revision instead of the template's. It fails if that
// revision is missing. Before the first release of a template with a release strategy, the effective revision is the
// baseline. If that is unknown, pods stay as in the Works, and clusters without a Work get none.
func (in Input) paced() (Input, error) {
	annotations := in.Binding.GetAnnotations()
	in.pace = pace{plan: fleet.PlanOf(annotations)}
	name := annotations[fleet.EffectiveRevisionAnnotation]
	r, err := in.Revisions[name], error(nil)
	if name == "" {
		if in.pace.plan != nil || in.Template.GetAnnotations()[releasev1alpha1.ReleaseStrategyAnnotation] == "" {
			return in, nil
		}
		if r, err = in.baseline(); err != nil {
			return in, err
		}
		if r == nil {
			in.pace.plan, in.pace.awaits = &fleet.Plan{Hold: true}, in.unknownBaseline()
			return in, nil
		}
		var taken string
		if in.pace.configMaps, taken = release.VersionsToMake(r, in.Template, in.ConfigMaps); taken != "" {
			in.pace.recheckAfter = versionsRetry
			return in, errors.New(release.TakenMessage(taken))
		}
		in.pace.baseline, name = r, r.Name
	}
	if r == nil {
		return in, &RevisionMissingError{in.Binding.GetNamespace(), name}
	}
	var configMaps release.ConfigMaps // as for the effective revision
	if len(r.Spec.Config) > 0 {
		configMaps = in.ConfigMaps
	}
	current := release.CurrentRevision(in.Template, in.Overrides, configMaps, r)
	in.pace.current = current.Name
	if in.pace.plan == nil {
		bound := in.Template.GetAnnotations()[releasev1alpha1.ReleaseStrategyAnnotation] != ""
		switch {
		case current.Name != name:
			in.pace.awaits = in.awaitsRelease(r, bound)
		case !bound && len(release.Versions(r)) == 0:
			in.pace.unpin = true
			return in, nil
		}
	}
	in.pace.effective, in.pace.currentOverrides = r, in.Overrides
	if in.Template, err = release.WithPods(in.Template, r); err != nil {
		return in, err
	}
	if in.Overrides, err = release.Overrides(r); err != nil {
		return in, err
	}
	in.pace.revision = name
	if in.pace.baseline == nil {
		in.pace.restore(r, in.Template, in.ConfigMaps)
	}
	if in.pace.plan == nil || in.pace.plan.From == "" {
		return in, nil
	}
	if in.pace.former = in.Revisions[in.pace.plan.From]; in.pace.former == nil {
		in.pace.plan.From = ""
		return in, nil
	}
	in.pace.restore(in.pace.former, in.Template, in.ConfigMaps)
	in.pace.overrides, err = release.Overrides(in.pace.former)
	return in, err
}

// versionsRetry is when to create versions again that could not be created. No event follows when they can.
const versionsRetry = time.Minute

// restore adds the versions of a revision in force that were deleted. Without ConfigMaps, nothing is known of them.
func (p *pace) restore(r *releasev1alpha1.ReleaseRevision, template *unstructured.Unstructured,
	configMaps release.ConfigMaps) {
	if configMaps == nil {
		return
	}
	versions, taken := release.VersionsToMake(r, template, configMaps)
	for _, v := range versions {
		if !slices.ContainsFunc(p.configMaps, func(u *unstructured.Unstructured) bool {
			return u.GetName() == v.GetName() // both revisions may read it
		}) {
			p.configMaps = append(p.configMaps, v)
		}
	}
	if taken != "" {
		p.lost = append(p.lost, release.TakenMessage(taken))
	}
	p.lost = append(p.lost, release.LostVersions(r, configMaps)...)
}

// lostVersions returns the condition of a workload whose pods read versions that the hub cannot make; nil for none.
func (p *pace) lostVersions() *fleet.Condition {
	if len(p.lost) == 0 {
		return nil
	}
	return &fleet.Condition{Type: fleet.ConfigMapMissing, Message: strings.Join(p.lost, "\n")}
}

// WithoutVersions returns the decision for versions that the hub could not create. A new workload gets no Work. Pods
// that exist keep what they read, and other changes go to clusters.
func (d Decision) WithoutVersions(err error) Decision {
	if d.Baseline != nil {
		return Decision{Err: err}
	}
	d.Conditions = slices.Clone(d.Conditions)
	i := slices.IndexFunc(d.Conditions, func(c fleet.Condition) bool { return c.Type == fleet.ConfigMapMissing })
	if i >= 0 {
		d.Conditions[i].Message += "\n" + err.Error()
	} else {
		d.Conditions = append(d.Conditions, fleet.Condition{Type: fleet.ConfigMapMissing, Message: err.Error()})
	}
	if d.RecheckAfter == 0 || d.RecheckAfter > versionsRetry {
		d.RecheckAfter = versionsRetry
	}
	return d
}

// awaitsRelease returns the condition of a template that differs from the revision in the binding. bound is true if
// the template has a release strategy.
func (in Input) awaitsRelease(r *releasev1alpha1.ReleaseRevision, bound bool) *fleet.Condition {
	what, after := in.Template.GetKind()+" "+in.Template.GetName(), ""
	if len(r.Spec.Config) > 0 {
		what += ", its ConfigMaps"
	}
	if !bound && len(release.Versions(r)) == 0 {
		after = "; without the annotation " + releasev1alpha1.ReleaseStrategyAnnotation +
			", later changes are sent at once as soon as the template and this revision are equal"
	}
	return &fleet.Condition{Type: fleet.ChangeAwaitsRelease, Message: fmt.Sprintf(
		"%s or its overrides have changed; clusters keep ReleaseRevision %s until a release: run `argosy release start "+
			"%s/%s -n %s`, or revert the change%s", what, r.Name, strings.ToLower(in.Template.GetKind()),
		in.Template.GetName(), in.Template.GetNamespace(), after)}
}

// unknownBaseline returns the condition of a template with a release strategy whose pods in clusters are not known.
func (in Input) unknownBaseline() *fleet.Condition {
	what, next := in.Template.GetKind()+" "+in.Template.GetName(), "start a release"
	if ok, _ := fleet.Staged(in.Template, Divides(in.Binding.BindingSpec())); !ok || in.Template.GetNamespace() == "" {
		next = "a release cannot update it, so remove the annotation " + releasev1alpha1.ReleaseStrategyAnnotation
	}
	return &fleet.Condition{Type: fleet.ChangeAwaitsRelease, Message: fmt.Sprintf(
		"clusters have no common revision of %s: they keep what they have, and clusters without the workload get nothing; %s",
		what, next)}
}

// overridesFor returns the override policies that count in a cluster: those of the effective revision, or the current
// ones if the cluster joined after the revision was stored and the revision has no rule for it.
func (in Input) overridesFor(cluster string) []policyv1alpha1.Override {
	c, r := in.Clusters[cluster], in.pace.effective
	if c != nil && r != nil && !r.CreationTimestamp.IsZero() && r.CreationTimestamp.Before(&c.CreationTimestamp) &&
		!override.TargetsCluster(c, in.Overrides) {
		return in.pace.currentOverrides
	}
	return in.Overrides
}

// baseline returns release.Baseline of the template; nil if no release can update it.
func (in Input) baseline() (*releasev1alpha1.ReleaseRevision, error) {
	if ok, _ := fleet.Staged(in.Template, Divides(in.Binding.BindingSpec())); !ok || in.Template.GetNamespace() == "" {
		return nil, nil
	}
	works := make([]workv1alpha1.Work, 0, len(in.Existing))
	for _, cluster := range slices.Sorted(maps.Keys(in.Existing)) {
		works = append(works, *in.Existing[cluster])
	}
	return release.Baseline(in.Template, works, in.Clusters, in.Overrides, in.ConfigMaps)
}

// pacedResult returns the result of a part, with the pods of the former revision if its stage has not come.
func (in Input) pacedResult(p part, former bool, from origin, resolution policyv1alpha1.ConflictResolution) Result {
	revision := in.pace.revision
	if former {
		m, err := release.WithPods(p.manifest, in.pace.former)
		if err != nil {
			return in.failed(p.Name, err)
		}
		p.manifest, revision, in.pace.revision = m, in.pace.former.Name, in.pace.former.Name
		in.Overrides, in.pace.effective = in.pace.overrides, in.pace.former
	}
	r := in.result(p.Name, p.manifest, from, resolution)
	if r.Work != nil && revision != "" {
		r.Work.Annotations[fleet.EffectiveRevisionAnnotation] = revision
	}
	return r
}

// WorksByCluster returns the Works of one binding by their clusters.
func WorksByCluster(works []workv1alpha1.Work) map[string]*workv1alpha1.Work {
	byCluster := make(map[string]*workv1alpha1.Work, len(works))
	for i := range works {
		if cluster, err := names.ClusterOf(works[i].Namespace); err == nil {
			byCluster[cluster] = &works[i]
		}
	}
	return byCluster
}

// ProgressOf returns the progress of the release plan of a binding in each scheduled cluster. It needs Binding,
// Template, Clusters, Existing and Revisions. It is nil without a plan, and while a ReleaseRevision that the binding
// names is missing.
func ProgressOf(in Input) ([]fleet.ClusterProgress, error) {
	if fleet.PlanOf(in.Binding.GetAnnotations()) == nil {
		return nil, nil
	}
	in, err := in.paced()
	if missing := (*RevisionMissingError)(nil); errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return in.progress(in.pace.plan)
}

func (in Input) progress(plan *fleet.Plan) ([]fleet.ClusterProgress, error) {
	spec := in.Binding.BindingSpec()
	fin := fleet.Input{Template: in.Template, Divided: Divides(spec), Plan: plan}
	for _, target := range spec.Clusters {
		w := in.Existing[target.Name]
		fin.Members = append(fin.Members, fleet.Member{Cluster: target.Name, Replicas: int64(target.Replicas),
			Reachable: !membership.KnownNotReady(in.Clusters[target.Name]), Work: w, Scaled: scaled(in.Binding, w)})
	}
	inOrder(spec.Placement, fin.Members)
	return fleet.ProgressOf(fin)
}

// DirectProgress returns the progress of a binding without a release in each cluster. A cluster is reached when its
// Work has all pods of the template, and they are available. It needs Overrides and the fields that ProgressOf needs.
func DirectProgress(in Input) ([]fleet.ClusterProgress, error) {
	stage := fleet.PlanStage{WholeClusters: true, Part: [2]int64{1, 1}}
	for _, target := range in.Binding.BindingSpec().Clusters {
		stage.Clusters = append(stage.Clusters, target.Name)
	}
	all, err := in.progress(&fleet.Plan{Unit: fleet.UnitCluster, At: 1, Stages: []fleet.PlanStage{stage}})
	if err != nil {
		return nil, err
	}
	for i := range all {
		p := &all[i]
		current, err := release.HasAllPods(in.Existing[p.Cluster], in.Template, in.Clusters, in.Overrides)
		if err != nil {
			return nil, err
		}
		if !current {
			p.Current, p.Reached, p.Failed = false, false, false
			p.Released, p.New, p.Available = 0, 0, 0
		}
	}
	return all, nil
}
