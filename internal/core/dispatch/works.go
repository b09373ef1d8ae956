// Package dispatch decides the Works of a binding: one manifest per cluster, and the Works to delete.
// core/schedule decides the clusters; core/execute decides what to write in a member.
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Input determines the Works of a template. It is read-only.
type Input struct {
	// Binding is the binding of the template; a Namespace has none.
	Binding workv1alpha2.Binding
	// Template on the hub.
	Template *unstructured.Unstructured
	// Clusters by name. It has at least the clusters in the binding.
	Clusters map[string]*clusterv1alpha1.Cluster
	// Overrides are the policies that may select the template, in any order.
	Overrides []policyv1alpha1.Override
	// Limited is true if FederatedResourceQuotas of its namespace are enforced: a cluster gets no more replicas than the
	// scheduler gave it, although the template is duplicated.
	Limited bool
	// Existing are the existing Works, by cluster. Their permanent IDs are kept.
	Existing map[string]*workv1alpha1.Work
	// Purging is true while workloads that must be deleted first exist. Then existing Works are updated, no new ones are
	// created, and no record is removed from the binding.
	Purging bool
	// Pods maps the pod names in fleet.PodsAskedFor to the clusters with such a pod; see fleet.Input.
	Pods map[string][]string
	// Target are the replicas by cluster of the workload in fleet.TargetOf; nil if unknown.
	Target map[string]int64
	// Pulls are the existing Works that pull images for the template, by cluster; see
	// wellknown.PrePullOfAnnotation.
	Pulls map[string][]*workv1alpha1.Work
	// Now is the time of rollout progress.
	Now time.Time
	// NewID returns the permanent ID of a new Work.
	NewID func() string
	// Convert converts manifests to a version that the cluster serves; nil for no conversion.
	Convert Convert
	// ForbidOverwrite is why the template may not overwrite objects in members; empty if it may. See Forbidden.
	ForbidOverwrite string
	// Revisions are the ReleaseRevisions by name that RevisionsOf the binding names.
	Revisions map[string]*releasev1alpha1.ReleaseRevision
	// ConfigMaps that the pods of the template and of Revisions read, if one of Revisions has versions of them, or if
	// there is none and the strategy of the template asks for them; otherwise nil.
	ConfigMaps release.ConfigMaps

	pace pace
}

// Result is the Work of one cluster, or an error.
type Result struct {
	Cluster string
	Work    *workv1alpha1.Work
	Applied override.Applied
	Err     error

	asksToOverwrite bool
}

// OverrideError is why override policies could not be applied.
type OverrideError struct{ Err error }

func (e *OverrideError) Error() string { return e.Err.Error() }
func (e *OverrideError) Unwrap() error { return e.Err }

// Decision has all writes for a binding: its Works, and the binding itself, once before the Works (see Annotations) and
// once after them (see Report).
type Decision struct {
	// Results are the wanted Works, sorted by cluster: one per target cluster, except clusters that wait for their turn.
	// An error affects one cluster only.
	Results []Result
	// Conditions of the template in its fleet. Report includes them.
	Conditions []fleet.Condition
	// Record, Progress, Routed and Approved are the values of wellknown.OrdinalsAnnotation,
	// wellknown.RolloutProgressAnnotation, wellknown.RoutedToAnnotation and wellknown.ApprovedStageAnnotation of the
	// binding; empty for none. See Annotations.
	Record, Progress, Routed, Approved string
	// Baseline is a ReleaseRevision to store before the binding that names it; nil for none. See release.Baseline. Unpin
	// is true if the binding no longer names one.
	Baseline *releasev1alpha1.ReleaseRevision
	Unpin    bool
	// ConfigMaps are versions to create before Baseline is stored and the Works are written.
	ConfigMaps []*unstructured.Unstructured
	// RecheckAfter is when to decide again without a change; 0 for never.
	RecheckAfter time.Duration
	// Pulls are the Works that pull images first. Missing ones are created, and all others of Input.Pulls are deleted,
	// when the Works are written. Pulling describes, one line per cluster, what is awaited.
	Pulls   []*workv1alpha1.Work
	Pulling []string
	// RunEnd is the end of the run of the template, if clusters get no Work, or there are none, because of it.
	RunEnd RunEnd
	// Waits is true if there are no writes now, because the scheduler will soon follow the template's clusters.
	Waits bool
	// Err is why there are no Works: the template's numbers cannot be divided.
	Err error
}

// Works returns the results of Decide. If Decide fails as a whole, each result has the error.
func Works(ctx context.Context, in Input, i interpret.Interpreter) []Result {
	d := Decide(ctx, in, i)
	if d.Err == nil {
		return d.Results
	}
	var results []Result
	for _, target := range Targets(in.Binding) {
		results = append(results, in.failed(target.Name, d.Err))
	}
	return results
}

// Decide returns the Works of a binding. It is deterministic, byte for byte.
//
// A cluster that is being removed gets no new Work. Works in clusters that the binding is leaving do not change and are
// not among the results.
func Decide(ctx context.Context, in Input, i interpret.Interpreter) Decision {
	spec := in.Binding.BindingSpec()
	if waits, after := in.awaitsPlacement(); waits {
		return Decision{Waits: true, RecheckAfter: after}
	}
	if in.Purging {
		in = in.withoutReplacements(ctx, i)
		spec = in.Binding.BindingSpec()
	}
	in, err := in.paced()
	if err != nil {
		return Decision{Err: err, RecheckAfter: in.pace.recheckAfter}
	}
	targets := Targets(in.Binding)
	sent, err := content(in.Template)
	if err != nil {
		return Decision{Err: err}
	}
	pruned := prune(sent)
	completions := completionsOf(spec, pruned)
	if in.Purging {
		in.completionsSent(completions)
	}
	asked, overQuota := in.outgrown(ctx, i)
	divide := in.division(pruned, asked, completions)
	from := originOf(in.Binding)

	// 1. The replicas of each cluster. If only some replicas leave a cluster, all stay until the replacement is healthy.
	left := spec.LeftGracefully()
	parts := make([]part, 0, len(targets))
	for _, target := range targets {
		if in.removed(target.Name) || in.ran(target.Name) || slices.Contains(left, target.Name) {
			continue
		}
		m, err := divide(ctx, i, target.Name)
		parts = append(parts, part{target, m, err})
	}
	// 2. Image pulls before new pods, and fields that count the pods of all clusters.
	gates, err := in.gates(parts)
	if err != nil {
		return Decision{Err: err}
	}
	shared, err := in.share(parts, gates)
	if err != nil {
		return Decision{Err: err}
	}
	// 3. The Works.
	d := Decision{Conditions: shared.Conditions, Record: shared.Record, Progress: shared.Progress, Routed: shared.Routed,
		Approved: shared.Approved, Baseline: in.pace.baseline, Unpin: in.pace.unpin, ConfigMaps: in.pace.configMaps,
		RecheckAfter: shared.RecheckAfter, Results: make([]Result, 0, len(parts))}
	if len(targets) == 0 ||
		slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return in.ran(t.Name) }) {
		d.RunEnd = RunEndOf(in.Binding, in.Template)
	}
	for _, p := range parts {
		if slices.Contains(shared.Waiting, p.Name) || errors.Is(p.err, errKept) {
			continue
		}
		if p.err != nil {
			d.Results = append(d.Results, in.failed(p.Name, p.err))
			continue
		}
		if m := shared.Manifests[p.Name]; m != nil {
			p.manifest = m
		}
		r := in.pacedResult(p, slices.Contains(shared.Former, p.Name), from,
			cmp.Or(spec.ConflictResolution, policyv1alpha1.ConflictAbort))
		if r.Work != nil {
			if Suspended(in.Binding, p.Name) {
				r.Work.Spec.SuspendDispatching = new(true)
			}
			if isTrue(spec.PreserveResourcesOnDeletion) {
				r.Work.Spec.PreserveResourcesOnDeletion = new(true)
			}
			if note := shared.Notes[p.Name]; note != "" {
				r.Work.Annotations[wellknown.FleetAnnotation] = note
			}
		}
		g := gates[p.Name]
		d.Pulls = append(d.Pulls, g.pulls...)
		if g.awaited != "" {
			d.Pulling = append(d.Pulling, g.awaited)
		}
		if g.shut && (d.RecheckAfter == 0 || g.left < d.RecheckAfter) {
			d.RecheckAfter = g.left
		}
		standing := in.Existing[p.Name]
		if overQuota {
			if standing == nil {
				standing = in.anyWork()
			}
			if standing == nil || len(spec.Components) > 0 || len(interpret.PodTemplates(in.Template)) == 0 {
				continue // the pods that are permitted are not known
			}
		}
		if g.shut || slices.Contains(shared.PodsKept, p.Name) || overQuota {
			if r.Work != nil && !in.keepPods(r.Work, standing) {
				continue
			}
		}
		d.Results = append(d.Results, r)
	}
	if c := in.overruled(slices.ContainsFunc(d.Results, func(r Result) bool { return r.asksToOverwrite })); c != nil {
		d.Conditions = append(slices.Clip(d.Conditions), *c)
	}
	for _, c := range []*fleet.Condition{in.pace.awaits, in.pace.lostVersions()} {
		if c != nil {
			d.Conditions = append(slices.Clip(d.Conditions), *c)
		}
	}
	if in.Purging {
		in.keepRecords(&d)
	}
	return d
}

// WorkName returns the name of the Work of a template in an execution space, unless the Work of another object has it:
// see names.Either. b may be nil.
func WorkName(b workv1alpha2.Binding, template *unstructured.Unstructured) string {
	gk := template.GroupVersionKind().GroupKind()
	if b == nil {
		return names.Work(gk.Kind, template.GetName(), template.GetNamespace())
	}
	return names.WorkFor(b.GetName(), gk, template.GetName(), template.GetNamespace())
}

// Namespaces returns the Works of the namespace in.Template in all given clusters, sorted. Only ClusterOverridePolicies
// apply. AutoPropagated decides whether the namespace is sent.
func Namespaces(in Input) []Result {
	pruned := prune(in.Template)
	results := make([]Result, 0, len(in.Clusters))
	for _, cluster := range slices.Sorted(maps.Keys(in.Clusters)) {
		if !in.removed(cluster) {
			results = append(results, in.result(cluster, pruned, origin{}, ""))
		}
	}
	return results
}

// AutoPropagated reports whether a namespace is sent to every cluster: it is neither the system's nor Kubernetes' own,
// and its owner has not asked to skip it.
func AutoPropagated(namespace *unstructured.Unstructured) bool {
	name := namespace.GetName()
	return !names.Reserved(name) && name != metav1.NamespaceDefault &&
		namespace.GetLabels()[policyv1alpha1.NamespaceSkipAutoPropagationLabel] != "true"
}

// removed reports whether the cluster is being removed, and has no Work of the template or one that is being deleted.
func (in Input) removed(cluster string) bool {
	c, w := in.Clusters[cluster], in.Existing[cluster]
	return c != nil && c.DeletionTimestamp != nil && (w == nil || w.DeletionTimestamp != nil)
}

// ran reports whether a cluster gets no Work, because that would run again what has finished in other clusters.
func (in Input) ran(cluster string) bool {
	return in.Existing[cluster] == nil && sharesRun(in.Binding, in.Template) && finished(in.Template)
}

// sharesRun reports whether the clusters of a template share one run: it is in one of them, or divided and never runs
// again. Otherwise each has a run of its own.
func sharesRun(b workv1alpha2.Binding, template *unstructured.Unstructured) bool {
	return propagate.Single(template) || Divides(b.BindingSpec()) && isFinal(template)
}

// isFinal reports whether a template, once finished, never runs again, whatever a user changes in it.
func isFinal(template *unstructured.Unstructured) bool {
	once := kind.Facts(template).Once
	return once != nil && once.Final
}

// finished reports whether a template that runs once has finished, by its status on the hub.
func finished(template *unstructured.Unstructured) bool {
	status, _ := template.Object["status"].(map[string]any)
	return interpret.Finished(template.GroupVersionKind().GroupKind(), status)
}

// RunEnd is the reason of a condition about a run that has ended; empty for none.
type RunEnd string

func (r RunEnd) Message() string {
	if r == workv1alpha2.ReasonRunFailed {
		return workv1alpha2.MessageRunFailed
	}
	return workv1alpha2.MessageRunFinished
}

// RunEndOf returns how a template that runs once has ended, so that it needs no cluster: its clusters share one run, or
// it has none.
func RunEndOf(b workv1alpha2.Binding, template *unstructured.Unstructured) RunEnd {
	if !finished(template) || !isFinal(template) || !sharesRun(b, template) && len(Targets(b)) > 0 {
		return ""
	}
	if status, _ := template.Object["status"].(map[string]any); kind.Facts(template).Once.Failed(status) {
		return workv1alpha2.ReasonRunFailed
	}
	return workv1alpha2.ReasonRunFinished
}

// EndedThere reports whether an object in a member belongs to the template of b, which may be nil, and its run ended
// there. Then the hub creates no Work for it, for example after the cluster joined again.
func EndedThere(b workv1alpha2.Binding, object *unstructured.Unstructured) bool {
	uid := object.GetAnnotations()[workv1alpha2.TemplateUIDAnnotation]
	return b != nil && uid != "" && uid == string(b.BindingSpec().Resource.UID) && RunEndOf(b, object) != ""
}

// PlacementFailure returns err, the scheduler's failure for b, or a RunEndedError if the template, which may be nil,
// needs no cluster.
func PlacementFailure(b workv1alpha2.Binding, template *unstructured.Unstructured, err error) error {
	if err == nil || template == nil {
		return err
	}
	if end := RunEndOf(b, template); end != "" {
		return &schedule.RunEndedError{Reason: string(end), Message: end.Message()}
	}
	return err
}

func (in Input) failed(cluster string, err error) Result {
	return Result{Cluster: cluster, Err: fmt.Errorf("create the work of %s %s for cluster %q: %w",
		in.Template.GetKind(), text.Path(in.Template.GetNamespace(), in.Template.GetName()), cluster, err)}
}

// result returns the Work of one cluster from m, its share of the template. m may be shared and is not changed. Without
// a resolution, only the template's own annotation resolves conflicts.
func (in Input) result(cluster string, m *unstructured.Unstructured, from origin,
	resolution policyv1alpha1.ConflictResolution) Result {
	// 1. The manifest, with the overrides of this cluster.
	c := in.Clusters[cluster]
	if c == nil {
		return in.failed(cluster, errors.New("the cluster is not registered"))
	}
	m, applied, err := override.Apply(m, c, in.overridesFor(cluster))
	if err != nil {
		return in.failed(cluster, &OverrideError{err})
	}
	if m, err = in.Convert.For(m, c); err != nil {
		return in.failed(cluster, err)
	}
	m = withOwnMetadata(in.referring(m, c))
	if err := in.checkIdentity(m); err != nil {
		return in.failed(cluster, err)
	}
	state := in.preservedState(cluster)
	for key, value := range state {
		set(m, "labels", key, value)
	}
	execute.Unmark(m)

	// 2. The Work. Overrides do not change its name. An existing one may have another: see names.Either.
	name := WorkName(in.Binding, in.Template)
	if w := in.Existing[cluster]; w != nil {
		name = w.Name
	}
	w := execute.NewWork(cluster, name, execute.PermanentID(in.Existing[cluster], in.NewID))
	maps.Copy(w.Annotations, applied.Annotations())
	if len(state) > 0 {
		w.Annotations[wellknown.PreservedStateAnnotation] = text.JSON(state)
	}

	// 3. The labels and annotations that connect both with their binding.
	for key, value := range from.labels {
		w.Labels[key] = value
		set(m, "labels", key, value)
	}
	for key, value := range from.annotations {
		w.Annotations[key] = value
		set(m, "annotations", key, value)
	}
	asked := Overwrites(m.GetAnnotations())
	if r := in.resolution(m, resolution); r != "" {
		w.Annotations[workv1alpha2.ConflictResolutionAnnotation] = r
		set(m, "annotations", workv1alpha2.ConflictResolutionAnnotation, r)
	}
	set(m, "annotations", workv1alpha2.TemplateUIDAnnotation, string(in.Template.GetUID()))
	set(m, "annotations", workv1alpha2.TemplateGenerationAnnotation, strconv.FormatInt(in.Template.GetGeneration(), 10))
	if in.pace.revision != in.pace.current {
		set(m, "annotations", wellknown.FormerRevisionAnnotation, in.pace.revision)
	}
	if err := execute.Seal(w, m); err != nil {
		return in.failed(cluster, err)
	}
	return Result{Cluster: cluster, Work: w, Applied: applied, asksToOverwrite: asked}
}

// checkIdentity returns an error if a manifest is not the object that the template is or encloses. It is the last check
// before a Work is written, after division, overrides and conversion.
func (in Input) checkIdentity(m *unstructured.Unstructured) error {
	sent, err := content(in.Template)
	if err != nil {
		return err
	}
	return identity.FromManifest(sent).Keeps(m)
}

// prune returns the template without fields of the hub.
func prune(template *unstructured.Unstructured) *unstructured.Unstructured {
	// Do not copy the status, which may be large, only to remove it.
	bare := maps.Clone(template.Object)
	delete(bare, "status")
	out := (&unstructured.Unstructured{Object: bare}).DeepCopy()
	interpret.Prune(out)
	// Annotations for the hub only.
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", wellknown.AwaitingChangeAnnotation)
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", wellknown.ScaledByAnnotation)
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", releasev1alpha1.ReleaseStrategyAnnotation)
	fleet.Bare(out)
	return out
}

// withOwnMetadata shares everything with m but its metadata, labels and annotations.
func withOwnMetadata(m *unstructured.Unstructured) *unstructured.Unstructured {
	object := maps.Clone(m.Object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, in := range []string{"labels", "annotations"} {
		keys, _ := metadata[in].(map[string]any)
		own := make(map[string]any, len(keys)+12)
		maps.Copy(own, keys)
		metadata[in] = own
	}
	object["metadata"] = metadata
	return &unstructured.Unstructured{Object: object}
}

// set sets a label or annotation of m, which must come from withOwnMetadata.
func set(m *unstructured.Unstructured, in, key, value string) {
	m.Object["metadata"].(map[string]any)[in].(map[string]any)[key] = value
}

// Suspended reports whether a binding suspends dispatching to a cluster.
func Suspended(b workv1alpha2.Binding, cluster string) bool {
	s := b.BindingSpec().Suspension
	if s == nil {
		return false
	}
	return s.Dispatching != nil && *s.Dispatching ||
		s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster)
}
