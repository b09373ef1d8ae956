// Package dispatch decides the Works of a binding: one manifest per cluster, and the Works to delete.
// Where a template goes was decided before (core/schedule); what a member makes of a Work is core/execute's.
package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Input is what the Works of a template follow from. All of it is read-only.
type Input struct {
	// Binding is the binding of the template; a Namespace has none.
	Binding workv1alpha2.Binding
	// Template as it is on the hub.
	Template *unstructured.Unstructured
	// Clusters by name; those that the binding names, at least.
	Clusters map[string]*clusterv1alpha1.Cluster
	// Overrides are the policies that may select the template, in any order.
	Overrides []policyv1alpha1.Override
	// Existing are the existing Works, by cluster. Their permanent IDs are kept.
	Existing map[string]*workv1alpha1.Work
	// Purging is true if copies that must be deleted first still exist. Then existing copies are updated, no new ones are
	// created, and no record is removed from the binding.
	Purging bool
	// Pods are the clusters that have a pod of that name, of the names that fleet.PodsAskedFor gives; see fleet.Input.
	Pods map[string][]string
	// Target are the replicas by cluster of the workload that fleet.TargetOf names; nil if they are not known.
	Target map[string]int64
	// History are the stored revisions of templates for which fleet.KeepsHistory.
	History []fleet.Revision
	// Pulls are the existing Works that pull images for the template, by cluster; see
	// wellknown.PrePullOfAnnotation.
	Pulls map[string][]*workv1alpha1.Work
	// Now dates the progress of rollouts.
	Now time.Time
	// NewID makes the permanent id of a Work that does not exist yet.
	NewID func() string
	// Convert gives each cluster a version that it serves; nil sends all as they are.
	Convert Convert
	// ForbidOverwrite is why users may not overwrite in members with this template; empty if they may. See Forbidden.
	ForbidOverwrite string
	// Revisions are the ReleaseRevisions by name that RevisionsOf the binding names.
	Revisions map[string]*releasev1alpha1.ReleaseRevision

	pace pace
}

// Result is the Work of one cluster, or why there is none.
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

// Decision is everything that a pass writes for a binding: Works, and the binding itself, once before its Works (see
// Annotations) and once after them (see Report).
type Decision struct {
	// Results are the Works that the binding wants, one per target cluster but those whose turn has not come, sorted by
	// cluster. A failure is of one cluster and hides no other.
	Results []Result
	// Conditions are those of the template in its fleet. They are among those of Report.
	Conditions []fleet.Condition
	// Record, Progress, Routed and Approved are the values of wellknown.OrdinalsAnnotation,
	// wellknown.RolloutProgressAnnotation, wellknown.RoutedToAnnotation and wellknown.ApprovedStageAnnotation of the
	// binding; empty for none. See Annotations.
	Record, Progress, Routed, Approved string
	// Baseline is a ReleaseRevision to store before the binding that names it; nil for none. See release.Baseline. Unpin
	// is true if the binding no longer names one.
	Baseline *releasev1alpha1.ReleaseRevision
	Unpin    bool
	// RecheckAfter is when to decide again though nothing has happened; 0 for never.
	RecheckAfter time.Duration
	// Pulls are the Works that pull images first. Missing ones are created, and all others of Input.Pulls are deleted,
	// when the Works are written. Pulling describes, one line per cluster, what is awaited.
	Pulls   []*workv1alpha1.Work
	Pulling []string
	// Waits is true if nothing is to be written now because the scheduler will soon follow the template's clusters.
	Waits bool
	// Err is why no Works can be made: the template's numbers cannot be divided.
	Err error
}

// Works are the Works of Decide; when it fails as a whole, each of them fails.
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

// Decide makes the Works of a binding. The same input gives the same Works, byte for byte.
//
// A cluster that is being removed gets no Work that it does not have. Works in clusters that the binding is leaving
// stay as they are and are not among the results.
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
		return Decision{Err: err}
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
	divide := division(spec, pruned, completions)
	from := originOf(in.Binding)

	// 1. Each cluster's part by replicas. Where only a part is leaving, all of it stays until the replacement is healthy.
	left := spec.LeftGracefully()
	parts := make([]part, 0, len(targets))
	for _, target := range targets {
		if in.removed(target.Name) || in.ran(target.Name) || slices.Contains(left, target.Name) {
			continue
		}
		m, err := divide(ctx, i, target.Name)
		parts = append(parts, part{target, m, err})
	}
	// 2. Where new images are pulled first, and what counts the pods of all clusters together.
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
		Approved: shared.Approved, Baseline: in.pace.baseline, Unpin: in.pace.unpin,
		RecheckAfter: shared.RecheckAfter, Results: make([]Result, 0, len(parts))}
	for _, p := range parts {
		if slices.Contains(shared.Waiting, p.Name) {
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
			if suspended(spec.Suspension, p.Name) {
				r.Work.Spec.SuspendDispatching = new(true)
			}
			if isTrue(spec.PreserveResourcesOnDeletion) {
				r.Work.Spec.PreserveResourcesOnDeletion = new(true)
			}
			if note := shared.Notes[p.Name]; note != "" {
				r.Work.Annotations[wellknown.FleetAnnotation] = note
			}
			if revisions := shared.Revisions[p.Name]; revisions != "" {
				r.Work.Annotations[wellknown.RevisionsAnnotation] = revisions
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
		if g.shut || slices.Contains(shared.PodsKept, p.Name) {
			if r.Work != nil && !keepPods(r.Work, in.Existing[p.Name]) {
				continue
			}
		}
		d.Results = append(d.Results, r)
	}
	if c := in.overruled(slices.ContainsFunc(d.Results, func(r Result) bool { return r.asksToOverwrite })); c != nil {
		d.Conditions = append(slices.Clip(d.Conditions), *c)
	}
	if in.pace.awaits != nil {
		d.Conditions = append(slices.Clip(d.Conditions), *in.pace.awaits)
	}
	if in.Purging {
		in.keepRecords(&d)
	}
	return d
}

// WorkName is the name of the Works of a template, in each execution space, given its binding; nil for none.
func WorkName(b workv1alpha2.Binding, template *unstructured.Unstructured) string {
	gk := template.GroupVersionKind().GroupKind()
	if b == nil {
		return names.Work(gk.Kind, template.GetName(), template.GetNamespace())
	}
	return names.WorkFor(b.GetName(), gk, template.GetName(), template.GetNamespace())
}

// Namespaces are the Works of the namespace in.Template, in every cluster given, sorted. Only ClusterOverridePolicies
// apply, since a namespace is in none. Whether it is to be sent at all is AutoPropagated's question.
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
	return !names.Reserved(name) && name != metav1.NamespaceDefault && !strings.HasPrefix(name, "kube-") &&
		namespace.GetLabels()[policyv1alpha1.NamespaceSkipAutoPropagationLabel] != "true"
}

// removed reports whether the cluster is being removed and has no Work of the template.
func (in Input) removed(cluster string) bool {
	c := in.Clusters[cluster]
	return c != nil && c.DeletionTimestamp != nil && in.Existing[cluster] == nil
}

// ran reports whether the template is one to run once, in one cluster, and has, in another: a cluster that takes the
// place of that one would run it again.
func (in Input) ran(cluster string) bool {
	if in.Existing[cluster] != nil || !propagate.Single(in.Template) {
		return false
	}
	status, _ := in.Template.Object["status"].(map[string]any)
	return interpret.Finished(in.Template.GroupVersionKind().GroupKind(), status)
}

func (in Input) failed(cluster string, err error) Result {
	return Result{Cluster: cluster, Err: fmt.Errorf("create the work of %s %s for cluster %q: %w",
		in.Template.GetKind(), text.Path(in.Template.GetNamespace(), in.Template.GetName()), cluster, err)}
}

// result makes the Work of one cluster out of m, its share of the template. m may be shared and is not changed.
// Without a resolution only the template's own annotation resolves conflicts.
func (in Input) result(cluster string, m *unstructured.Unstructured, from origin,
	resolution policyv1alpha1.ConflictResolution) Result {
	// 1. The manifest, and what is different in this cluster.
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

	// 2. The Work. Its name goes by the template, whatever an override did to the manifest.
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace:   names.ExecutionSpace(cluster),
		Name:        WorkName(in.Binding, in.Template),
		Finalizers:  []string{workv1alpha2.ExecutionFinalizer},
		Labels:      map[string]string{},
		Annotations: map[string]string{},
	}}
	if id := in.permanentID(cluster); id != "" {
		w.Labels[workv1alpha2.WorkPermanentIDLabel] = id
	}
	recorded, err := applied.Annotations()
	if err != nil {
		return in.failed(cluster, err)
	}
	maps.Copy(w.Annotations, recorded)
	if len(state) > 0 {
		raw, err := json.Marshal(state)
		if err != nil {
			return in.failed(cluster, fmt.Errorf("record the preserved state: %w", err))
		}
		w.Annotations[wellknown.PreservedStateAnnotation] = string(raw)
	}

	// 3. The marks of both: where they come from, and that they belong together.
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
	execute.Mark(m, w)

	raw, err := json.Marshal(m.Object)
	if err != nil {
		return in.failed(cluster, fmt.Errorf("write manifest: %w", err))
	}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
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

// permanentID is the one that the cluster's Work has, or a new one.
func (in Input) permanentID(cluster string) string {
	if w := in.Existing[cluster]; w != nil {
		if id := w.Labels[workv1alpha2.WorkPermanentIDLabel]; id != "" {
			return id
		}
	}
	if in.NewID == nil {
		return ""
	}
	return in.NewID()
}

// prune is the template without what the hub set.
func prune(template *unstructured.Unstructured) *unstructured.Unstructured {
	// The status of a big workload is big: it is not copied only to be removed.
	bare := maps.Clone(template.Object)
	delete(bare, "status")
	out := (&unstructured.Unstructured{Object: bare}).DeepCopy()
	interpret.Prune(out)
	// Marks for the hub alone.
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", wellknown.AwaitingChangeAnnotation)
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

// set sets a label or annotation of m, whose metadata is its own.
func set(m *unstructured.Unstructured, in, key, value string) {
	m.Object["metadata"].(map[string]any)[in].(map[string]any)[key] = value
}

func suspended(s *workv1alpha2.Suspension, cluster string) bool {
	if s == nil {
		return false
	}
	if s.Dispatching != nil && *s.Dispatching {
		return true
	}
	return s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster)
}
