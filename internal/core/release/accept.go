package release

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Target is a workload of a release with its binding, its revisions and its progress in clusters.
type Target struct {
	// Template on the hub; nil if there is none.
	Template *unstructured.Unstructured
	// Binding of the template; nil if no policy claims it.
	Binding workv1alpha2.Binding
	// Divided is true if the replicas of the template are divided among clusters.
	Divided bool
	// Current is the revision that the template has now; see NewRevision.
	Current *releasev1alpha1.ReleaseRevision
	// Former is the revision that members have while the binding names none; nil if it is not known.
	Former *releasev1alpha1.ReleaseRevision
	// Placed is true if members have the workload.
	Placed bool
	// ConfigMaps that the pods of the template read, for a release that versions them; otherwise nil.
	ConfigMaps ConfigMaps
	// DeletedVersions are the names of versions of ConfigMaps that do not exist, of those that Revisions use to which the
	// release can go; see RevisionsAhead.
	DeletedVersions []string
	// Revisions are the stored ones of the target, by name.
	Revisions map[string]*releasev1alpha1.ReleaseRevision
	// PartitionOverridden is true if an override policy sets the partition in a cluster.
	PartitionOverridden bool
	// Pacer is the Kruise or Argo Rollout that paces the workload in members, such as "Rollout shop"; empty for none.
	Pacer string
	// Progress by cluster of the plan that the binding has; see dispatch.ProgressOf. Nil without a plan.
	Progress []fleet.ClusterProgress
	// RevisionChanges are about the present plan of the binding; see failover.RevisionChanges.
	RevisionChanges []string
}

// effective is the ReleaseRevision that the binding names.
func (t Target) effective() string {
	if t.Binding == nil {
		return ""
	}
	return t.Binding.GetAnnotations()[fleet.EffectiveRevisionAnnotation]
}

// EffectiveOf returns the ReleaseRevision that the binding names, of those of its namespace; nil if there is none.
func (t Target) EffectiveOf(stored []releasev1alpha1.ReleaseRevision) *releasev1alpha1.ReleaseRevision {
	name := t.effective()
	for i := range stored {
		if stored[i].Name == name {
			return &stored[i]
		}
	}
	return nil
}

func (t Target) plan() *fleet.Plan {
	if t.Binding == nil {
		return nil
	}
	return fleet.PlanOf(t.Binding.GetAnnotations())
}

// revision is the ReleaseRevision of a name, nil if there is none.
func (t Target) revision(name string) *releasev1alpha1.ReleaseRevision {
	for _, r := range []*releasev1alpha1.ReleaseRevision{t.Revisions[name], t.Current, t.Former} {
		if r != nil && r.Name == name {
			return r
		}
	}
	return nil
}

// formerName is the revision that all clusters had when the last release that was completed ended. It is one revision
// too old until the binding shows that end; see Input.bindingsLag.
func (t Target) formerName() string {
	switch p := t.plan(); {
	case p != nil && p.From != "" && (!p.Done || p.Skips()):
		return p.From // a release was aborted or replaced, or a stage of it was skipped
	case t.effective() != "" && (p == nil || p.Done):
		return t.effective()
	case t.Former != nil:
		return t.Former.Name
	}
	return ""
}

// RevisionsAhead are the stored revisions to which a release can bring the target. A release that has ended has none,
// unless it is asked to roll back.
func (t Target) RevisionsAhead(r *releasev1alpha1.Release,
	spec releasev1alpha1.ReleaseTarget) map[string]*releasev1alpha1.ReleaseRevision {
	if r.Status.Phase.Ended() && !asksToReopen(r, &r.Status) {
		return nil
	}
	names := []string{spec.To.Revision, t.effective(), t.formerName()}
	for _, status := range r.Status.Targets {
		if status.Name == spec.Name {
			names = append(names, status.From, status.To)
		}
	}
	ahead := map[string]*releasev1alpha1.ReleaseRevision{}
	for _, name := range names {
		if stored := t.Revisions[name]; stored != nil {
			ahead[name] = stored
		}
	}
	return ahead
}

// replaced reports whether the workload is another one than that of the release: it was deleted and created again.
func (t Target) replaced(status releasev1alpha1.ReleaseTargetStatus) bool {
	return t.Template != nil && status.UID != "" && t.Template.GetUID() != status.UID
}

// clusters of the target and its replicas there. Replicas of what is updated by whole clusters are 1.
func (t Target) replicas(whole bool) (clusters []string, replicas []int64) {
	for _, c := range t.Binding.BindingSpec().Clusters {
		n := int64(1)
		if !whole {
			n = int64(c.Replicas)
			if i := slices.IndexFunc(t.Progress, func(p fleet.ClusterProgress) bool { return p.Cluster == c.Name }); i >= 0 {
				n = t.Progress[i].Replicas
			}
		}
		clusters, replicas = append(clusters, c.Name), append(replicas, n)
	}
	return clusters, replicas
}

// Acceptance is the decision whether a release can run, with its revisions and clusters.
type Acceptance struct {
	// Reason of the condition Accepted: Planned, or why not, with a Message. The message of Planned is a warning.
	Reason, Message string
	// Targets are the revisions, in the order of spec.targets.
	Targets []releasev1alpha1.ReleaseTargetStatus
	// Clusters by stage.
	Clusters [][]string
	// ConfigMaps are the versions that have to be made, before the Revisions are stored.
	ConfigMaps []*unstructured.Unstructured
	// Revisions are those that have to be stored.
	Revisions []*releasev1alpha1.ReleaseRevision
}

func refuse(reason, format string, args ...any) Acceptance {
	return Acceptance{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Accept decides whether a release can run now.
func Accept(in Input) Acceptance {
	r, strategy := in.Release, in.strategy()
	if strategy == nil {
		name := ""
		if r.Spec.StrategyRef != nil {
			name = r.Spec.StrategyRef.Name
		}
		return refuse(releasev1alpha1.ReasonStrategyNotFound, "ReleaseStrategy %q does not exist in namespace %q", name,
			r.Namespace)
	}
	if cycle := DependencyProblem(r.Spec.Targets); cycle != "" {
		return refuse(releasev1alpha1.ReasonDependencyCycle, "%s", cycle)
	}
	if name := in.missingCheck(strategy); name != "" {
		return refuse(releasev1alpha1.ReasonCheckNotFound, "ReleaseCheck %q does not exist in namespace %q", name,
			r.Namespace)
	}
	a := Acceptance{Reason: releasev1alpha1.ReasonPlanned}
	same := 0
	for _, spec := range r.Spec.Targets {
		t := in.Targets[spec.Name]
		if refused := t.refuses(spec); refused.Reason != "" {
			return refused
		}
		status := releasev1alpha1.ReleaseTargetStatus{Name: spec.Name, From: t.formerName(),
			UID: t.Template.GetUID(), Unit: releasev1alpha1.UnitPods}
		if _, whole := fleet.Staged(t.Template, t.Divided); whole {
			status.Unit = releasev1alpha1.UnitCluster
		}
		switch chosen := in.chosen(spec.Name); {
		case chosen.To != "":
			status.To, status.TemplateRevision = chosen.To, chosen.TemplateRevision
		case spec.To.Revision != "":
			status.To = spec.To.Revision
			if t.Current != nil && t.Current.Name != status.To {
				status.TemplateRevision = t.Current.Name
			}
		case t.Current != nil:
			status.To = t.Current.Name
		}
		to := t.revision(status.To)
		if to == nil || !sameTarget(to.Spec.Target, spec.Ref) {
			return refuse(releasev1alpha1.ReasonRevisionNotFound, "target %s: ReleaseRevision %q of %s %s does not exist",
				spec.Name, status.To, spec.Ref.Kind, spec.Ref.Name)
		}
		if b := to.Status.Blocked; b != nil {
			return refuse(releasev1alpha1.ReasonRevisionBlocked,
				"target %s: ReleaseRevision %s is blocked, because it failed in release %s: %s", spec.Name, status.To, b.Release,
				b.Reason)
		}
		versions, refused := t.versions(spec, to)
		if refused.Reason != "" {
			return refused
		}
		for _, version := range versions {
			if !slices.ContainsFunc(a.ConfigMaps, func(v *unstructured.Unstructured) bool {
				return v.GetName() == version.GetName() // several targets may read a ConfigMap
			}) {
				a.ConfigMaps = append(a.ConfigMaps, version)
			}
		}
		if p := t.plan(); status.To == status.From && (p == nil || p.Done && !p.Skips()) {
			same++
		}
		if status.From == "" {
			a.Message = fmt.Sprintf("target %s: the revision that clusters have now is not known, so this release cannot be "+
				"rolled back", spec.Name)
		} else if obstacle := t.deleted(t.revision(status.From)); obstacle != "" {
			a.Message = fmt.Sprintf("target %s: this release cannot be rolled back: %s", spec.Name, obstacle)
		}
		a.Targets = append(a.Targets, status)
		for _, name := range []string{status.From, status.To} {
			if stored := t.revision(name); stored != nil && t.Revisions[name] == nil {
				a.Revisions = append(a.Revisions, stored)
			}
		}
	}
	if other := in.underWay(); r.Spec.Supersede == releasev1alpha1.SupersedeRefuse && other != "" {
		return refuse(releasev1alpha1.ReasonAnotherUnderWay, "release %s of the same workload is under way", other)
	}
	if same == len(a.Targets) && in.underWay() == "" {
		return refuse(releasev1alpha1.ReasonSameRevision, "all clusters have revision %s already", a.Targets[0].To)
	}
	names := in.clusterNames()
	var unassigned []string
	if a.Clusters, unassigned = resolve(strategy, names, in.Clusters); len(unassigned) > 0 {
		return refuse(releasev1alpha1.ReasonClustersUnassigned,
			"no stage selects %s; add a stage, or set unassigned: LastStage", strings.Join(unassigned, ", "))
	}
	if len(names) == 0 {
		return refuse(releasev1alpha1.ReasonStagesEmpty, "the workloads are in no cluster")
	}
	if size := planSize(strategy, a.Clusters); size > planLimit {
		return refuse(releasev1alpha1.ReasonPlanTooLarge,
			"the stages list %d clusters in %d KiB, and a binding can store %d KiB; use fewer stages, or select the same "+
				"clusters in consecutive stages",
			len(names), size>>10, planLimit>>10)
	}
	if rest := in.incomplete(strategy, a.Clusters); len(rest) > 0 {
		return refuse(releasev1alpha1.ReasonClustersUnassigned,
			"no stage updates all pods of %s; add a stage without `to`", strings.Join(rest, ", "))
	}
	return a
}

// refuses returns why the target cannot be released, whatever the revision. Its Reason is empty if it can.
func (t Target) refuses(spec releasev1alpha1.ReleaseTarget) Acceptance {
	what := fmt.Sprintf("target %s: %s %s", spec.Name, spec.Ref.Kind, spec.Ref.Name)
	if t.Template == nil {
		return refuse(releasev1alpha1.ReasonTargetNotFound, "%s does not exist", what)
	}
	if t.Binding == nil {
		return refuse(releasev1alpha1.ReasonTargetNotHeld, "no policy propagates %s", what)
	}
	if ok, _ := fleet.Staged(t.Template, t.Divided); !ok {
		return refuse(releasev1alpha1.ReasonKindNotStaged,
			"%s cannot be updated in stages: it has no pod template, or its update strategy does not replace pods", what)
	}
	for _, key := range []string{wellknown.RolloutOrderAnnotation, wellknown.RolloutStagesAnnotation,
		wellknown.RolloutStageAnnotation,
		wellknown.RolloutClustersAnnotation} {
		if _, ok := t.Template.GetAnnotations()[key]; ok {
			return refuse(releasev1alpha1.ReasonAnnotationsPresent, "remove the annotation %s from %s", key, what)
		}
	}
	if t.Pacer != "" {
		return refuse(releasev1alpha1.ReasonForeignRollout, "%s is paced by %s in its clusters", what, t.Pacer)
	}
	if t.PartitionOverridden || fleet.HasPartition(t.Template) {
		return refuse(releasev1alpha1.ReasonPartitionOverridden,
			"the template or an override of %s sets the partition; remove it", what)
	}
	return Acceptance{}
}

// versions returns the versions of ConfigMaps to make for a revision, or why they cannot be used.
func (t Target) versions(spec releasev1alpha1.ReleaseTarget,
	r *releasev1alpha1.ReleaseRevision) ([]*unstructured.Unstructured, Acceptance) {
	if len(Versions(r)) > 0 && !t.Binding.BindingSpec().PropagateDeps {
		return nil, refuse(releasev1alpha1.ReasonConfigNotPropagated,
			"target %s: the ConfigMaps of ReleaseRevision %s cannot reach clusters; set propagateDeps: true in the policy of "+
				"%s %s", spec.Name, r.Name, spec.Ref.Kind, spec.Ref.Name)
	}
	versions, taken := VersionsToMake(r, t.Template, t.ConfigMaps)
	if taken != "" {
		return nil, refuse(releasev1alpha1.ReasonConfigMapTaken, "target %s: %s", spec.Name, TakenMessage(taken))
	}
	if obstacle := t.deleted(r, versions...); obstacle != "" {
		return nil, refuse(releasev1alpha1.ReasonConfigMapNotFound, "target %s: %s", spec.Name, obstacle)
	}
	return versions, Acceptance{}
}

// deleted returns why pods of a revision cannot start, with what to do: a version of a ConfigMap that they read was
// deleted, and is not made again. It is empty if they can. The revision may be nil.
func (t Target) deleted(r *releasev1alpha1.ReleaseRevision, made ...*unstructured.Unstructured) string {
	for _, name := range Versions(r) {
		if !slices.Contains(t.DeletedVersions, name) ||
			slices.ContainsFunc(made, func(v *unstructured.Unstructured) bool { return v.GetName() == name }) {
			continue
		}
		i := slices.IndexFunc(r.Spec.Config, func(c releasev1alpha1.RevisionConfig) bool {
			return c.Hash != "" && versionName(c.Name, c.Hash) == name
		})
		return fmt.Sprintf("pods of ReleaseRevision %[1]s read ConfigMap %[2]s, which was deleted: give ConfigMap %[3]s the "+
			"content that it had then, and release the workload with config: Versioned", r.Name, name, r.Spec.Config[i].Name)
	}
	return ""
}

// sameTarget compares group, kind and name.
func sameTarget(a, b releasev1alpha1.ReleaseObjectReference) bool {
	return match.GroupKind(a.APIVersion, a.Kind) == match.GroupKind(b.APIVersion, b.Kind) && a.Name == b.Name
}

// DependencyProblem returns why the dependencies of targets cannot be met; empty if they can.
func DependencyProblem(targets []releasev1alpha1.ReleaseTarget) string {
	done := map[string]bool{}
	for range targets {
		for _, t := range targets {
			done[t.Name] = done[t.Name] ||
				!slices.ContainsFunc(t.DependsOn, func(name string) bool { return !done[name] })
		}
	}
	for _, t := range targets {
		if !done[t.Name] {
			return fmt.Sprintf("target %s depends on %s: they depend on each other, or one does not exist", t.Name,
				strings.Join(t.DependsOn, ", "))
		}
	}
	return ""
}

// clusterNames are the clusters of all targets, sorted.
func (in Input) clusterNames() []string {
	var names []string
	for _, t := range in.Targets {
		if t.Binding != nil {
			for _, c := range t.Binding.BindingSpec().Clusters {
				names = append(names, c.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// planLimit is for the plan of a release: the API server accepts 256 KiB of annotations.
const planLimit = 192 << 10

// planSize is the number of bytes that the stages have in an annotation.
func planSize(strategy *releasev1alpha1.ReleaseStrategySpec, byStage [][]string) int {
	return len((&fleet.Plan{Stages: planStages(strategy, byStage, false)}).String())
}

// incomplete are the clusters that keep old pods after the last stage, by the replicas that there are now.
func (in Input) incomplete(strategy *releasev1alpha1.ReleaseStrategySpec, byStage [][]string) []string {
	var rest []string
	for _, t := range in.Targets {
		_, whole := fleet.Staged(t.Template, t.Divided)
		plan := fleet.Plan{Stages: planStages(strategy, byStage, whole)}
		clusters, replicas := t.replicas(whole)
		for i, n := range plan.Targets(clusters, replicas, len(plan.Stages)) {
			if n < replicas[i] {
				rest = append(rest, clusters[i])
			}
		}
	}
	slices.Sort(rest)
	return slices.Compact(rest)
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
