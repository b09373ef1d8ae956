package release

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/override"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// SetRevisions sets which revisions t has: the stored ones, and that of members. works are those of its binding. The
// Template and Binding of t may be nil; with a Template, Current is set before.
func (t *Target) SetRevisions(ref releasev1alpha1.ReleaseObjectReference, stored []releasev1alpha1.ReleaseRevision,
	works []workv1alpha1.Work, overrides []policyv1alpha1.Override) (err error) {
	t.Revisions = map[string]*releasev1alpha1.ReleaseRevision{}
	for i := range stored {
		if sameTarget(stored[i].Spec.Target, ref) {
			t.Revisions[stored[i].Name] = &stored[i]
		}
	}
	if t.Template == nil {
		return nil
	}
	if known := t.Revisions[t.Current.Name]; known != nil {
		t.Current = known // it may be blocked
	}
	t.Placed = len(works) > 0
	if t.Binding != nil && t.effective() == "" {
		t.Former, err = formerOf(works, overrides, t.Current)
	}
	return err
}

// SetObstacles sets what else decides the pods of t in members. pacers are objects of PacerKinds in its namespace.
func (t *Target) SetObstacles(clusters map[string]*clusterv1alpha1.Cluster, overrides []policyv1alpha1.Override,
	pacers []*unstructured.Unstructured) {
	t.PartitionOverridden = overridesPartition(t.Template, t.Binding, clusters, overrides)
	t.Pacer = pacerOf(t.Template, pacers)
}

// formerOf returns the revision that members have while the binding names none: that of a Work to which no override was
// applied, of another revision than the template's if there is one. It returns nil if there is no such Work.
func formerOf(works []workv1alpha1.Work, overrides []policyv1alpha1.Override,
	current *releasev1alpha1.ReleaseRevision) (*releasev1alpha1.ReleaseRevision, error) {
	works = slices.SortedFunc(slices.Values(works), func(a, b workv1alpha1.Work) int {
		return cmp.Compare(a.Namespace, b.Namespace)
	})
	var former *releasev1alpha1.ReleaseRevision
	for i := range works {
		if !isPlain(&works[i]) {
			continue
		}
		manifest, err := execute.Manifest(&works[i])
		if err != nil {
			return nil, err
		}
		revision := NewRevision(manifest, overrides)
		if current == nil || revision.Name != current.Name {
			return revision, nil
		}
		former = cmp.Or(former, revision)
	}
	return former, nil
}

// Baseline returns the revision that members have when changes of a template begin to wait for releases: that of the
// template if there is no Work, and otherwise the one revision of all Works. It returns nil if the Works have several
// revisions, keep old pods by a partition, or do not show theirs: then no user has approved one revision for all
// clusters. ConfigMaps count only if there is no Work.
func Baseline(template *unstructured.Unstructured, works []workv1alpha1.Work,
	clusters map[string]*clusterv1alpha1.Cluster, overrides []policyv1alpha1.Override,
	configMaps ConfigMaps) (*releasev1alpha1.ReleaseRevision, error) {
	if len(works) == 0 {
		return CurrentRevision(template, overrides, configMaps, nil), nil
	}
	current := NewRevision(template, overrides)
	var plain *releasev1alpha1.ReleaseRevision
	all := true // Works are the template with the overrides of their clusters
	for i := range works {
		w := &works[i]
		manifest, err := execute.Manifest(w)
		if err != nil {
			return nil, err
		}
		if keeps, err := fleet.KeepsOldPods(w, template); err != nil || keeps {
			return nil, err
		}
		if isPlain(w) {
			revision := NewRevision(manifest, overrides)
			if plain != nil && plain.Name != revision.Name {
				return nil, nil
			}
			plain = revision
			continue
		}
		same, err := madeFrom(w, manifest, template, clusters, overrides)
		if err != nil {
			return nil, err
		}
		all = all && same
	}
	switch {
	case all && (plain == nil || plain.Name == current.Name):
		return current, nil
	case plain != nil && plain.Name != current.Name:
		return plain, nil // an override may hide the change of the template
	}
	return nil, nil
}

// isPlain reports whether no override was applied to a Work.
func isPlain(w *workv1alpha1.Work) bool {
	return w.Annotations[policyv1alpha1.AppliedOverridesAnnotation] == "" &&
		w.Annotations[policyv1alpha1.AppliedClusterOverridesAnnotation] == ""
}

// madeFrom reports whether the manifest of a Work has the pods of a template with the overrides of its cluster.
func madeFrom(w *workv1alpha1.Work, manifest, template *unstructured.Unstructured,
	clusters map[string]*clusterv1alpha1.Cluster, overrides []policyv1alpha1.Override) (bool, error) {
	name, err := names.ClusterOf(w.Namespace)
	if err != nil || clusters[name] == nil {
		return false, nil
	}
	want, _, err := override.Apply(template, clusters[name], overrides)
	if err != nil {
		return false, nil // dispatch reports it
	}
	return fleet.RevisionOf(manifest) == fleet.RevisionOf(want), nil
}

// HasAllPods reports whether a Work makes all pods those of a template with the overrides of its cluster. The Work may
// be nil.
func HasAllPods(w *workv1alpha1.Work, template *unstructured.Unstructured,
	clusters map[string]*clusterv1alpha1.Cluster, overrides []policyv1alpha1.Override) (bool, error) {
	if w == nil {
		return false, nil
	}
	manifest, err := execute.Manifest(w)
	if err != nil {
		return false, err
	}
	if kept, err := fleet.KeepsOldPods(w, template); err != nil || kept {
		return false, err
	}
	return madeFrom(w, manifest, template, clusters, overrides)
}

// overridesPartition reports whether an override policy sets the partition of a template in a cluster of the binding.
func overridesPartition(template *unstructured.Unstructured, b workv1alpha2.Binding,
	clusters map[string]*clusterv1alpha1.Cluster, overrides []policyv1alpha1.Override) bool {
	selecting := override.Selecting(template, overrides)
	if len(selecting) == 0 || fleet.HasPartition(template) {
		return false
	}
	return slices.ContainsFunc(b.BindingSpec().Clusters, func(t workv1alpha2.TargetCluster) bool {
		c := clusters[t.Name]
		if c == nil {
			return false
		}
		out, _, err := override.Apply(template, c, selecting)
		return err == nil && fleet.HasPartition(out)
	})
}

// PacerKinds returns the kinds of objects that can pace a workload in members.
func PacerKinds() []schema.GroupKind {
	return kind.Select(func(k *kind.Kind) bool { return k.Refers != nil && k.Refers.Paces })
}

// pacerOf returns the object that paces a workload, such as "Rollout shop", or nothing. objects are of PacerKinds, in
// the namespace of the workload.
func pacerOf(workload *unstructured.Unstructured, objects []*unstructured.Unstructured) string {
	for _, obj := range objects {
		for _, path := range kind.Facts(obj).WorkloadPaths() {
			ref := fields.Object(obj.Object, path...)
			if fields.Text(ref, "name") == workload.GetName() &&
				match.GroupKind(fields.Text(ref, "apiVersion"), fields.Text(ref, "kind")) ==
					workload.GroupVersionKind().GroupKind() {
				return obj.GetKind() + " " + obj.GetName()
			}
		}
	}
	return ""
}

// keptRevisions is the number of ReleaseRevisions of a target that are kept, beside those that are blocked or in use.
const keptRevisions = 10

// SurplusRevisions returns the revisions of one target that are no longer kept. inUse are names.
func SurplusRevisions(revisions []*releasev1alpha1.ReleaseRevision,
	inUse map[string]bool) []*releasev1alpha1.ReleaseRevision {
	newestFirst := slices.SortedFunc(slices.Values(revisions), func(a, b *releasev1alpha1.ReleaseRevision) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return slices.DeleteFunc(newestFirst[min(len(newestFirst), keptRevisions):],
		func(r *releasev1alpha1.ReleaseRevision) bool { return r.Status.Blocked != nil || inUse[r.Name] })
}

// Surplus returns the revisions of the targets that are no longer kept once a step is written. It does not rely on the
// cache to show the step.
func Surplus(in Input, step Step) []*releasev1alpha1.ReleaseRevision {
	releases := slices.Clone(in.Others)
	self := *in.Release
	self.Status = step.Status
	if i := slices.IndexFunc(releases, func(r releasev1alpha1.Release) bool { return r.Name == self.Name }); i >= 0 {
		releases[i] = self
	} else {
		releases = append(releases, self)
	}
	var surplus []*releasev1alpha1.ReleaseRevision
	for _, spec := range in.Release.Spec.Targets {
		t := in.Targets[spec.Name]
		bound := []string{t.effective(), step.Bindings[spec.Name].Revision}
		for _, p := range []*fleet.Plan{t.plan(), step.Bindings[spec.Name].Plan} {
			if p != nil {
				bound = append(bound, p.From)
			}
		}
		bound = slices.DeleteFunc(bound, func(name string) bool { return name == "" })
		all := slices.Collect(maps.Values(t.Revisions))
		old := SurplusRevisions(all, RevisionsInUse(spec.Ref, releases, bound))
		kept := slices.DeleteFunc(all, func(r *releasev1alpha1.ReleaseRevision) bool { return slices.Contains(old, r) })
		for _, r := range old {
			if t.Binding != nil && LastOwner(t.Binding, r, kept) {
				kept = append(kept, r)
			} else {
				surplus = append(surplus, r)
			}
		}
	}
	return surplus
}

// RevisionsInUse returns the names of the revisions of a target that releases need. bound are those that its binding
// names. A release that has ended needs its revisions while it can be rolled back.
func RevisionsInUse(ref releasev1alpha1.ReleaseObjectReference, releases []releasev1alpha1.Release,
	bound []string) map[string]bool {
	inUse := map[string]bool{}
	for _, name := range bound {
		inUse[name] = true
	}
	for _, r := range releases {
		for _, spec := range r.Spec.Targets {
			if !sameTarget(spec.Ref, ref) {
				continue
			}
			if !r.Status.Phase.Ended() {
				inUse[spec.To.Revision] = true
			}
			for _, t := range r.Status.Targets {
				if t.Name == spec.Name && (!r.Status.Phase.Ended() || slices.Contains(bound, t.To)) {
					inUse[t.From], inUse[t.To] = true, true
				}
			}
		}
	}
	return inUse
}

// IsFailure reports whether a journal entry is about a stage that failed.
func IsFailure(e releasev1alpha1.ReleaseJournalEntry) bool {
	switch e.Reason {
	case releasev1alpha1.ReasonRefused, releasev1alpha1.ReasonPodsFailed, releasev1alpha1.ReasonCopyUnhealthy,
		releasev1alpha1.ReasonDeadlineExceeded, releasev1alpha1.ReasonClusterUnreachable, releasev1alpha1.ReasonGateFailed,
		releasev1alpha1.ReasonCheckFailed, releasev1alpha1.ReasonCheckInconclusive, releasev1alpha1.ReasonCheckUnavailable:
		return e.Type == releasev1alpha1.JournalStage
	}
	return false
}

// PausedPlan returns the plan of a binding, paused, if its release does not exist; nil if the binding can stay as it
// is. uid is of the release that has the name now, empty for none. Clusters that only catch up do so without a release.
func PausedPlan(b workv1alpha2.Binding, uid string) *fleet.Plan {
	p := fleet.PlanOf(b.GetAnnotations())
	if p == nil || p.UID == uid || p.Hold || p.Done {
		return nil
	}
	p.Hold = true
	return p
}

// Active reports whether a release may have a next step without a change of the release itself.
func Active(r *releasev1alpha1.Release) bool {
	return !r.Status.Phase.Ended() ||
		conditionOf(&r.Status, releasev1alpha1.ReleaseProgressing).Reason == releasev1alpha1.ReasonCatchingUp
}

// CatchesUp reports whether the binding of a target has a plan of the release for clusters that catch up.
func CatchesUp(r *releasev1alpha1.Release, t Target) bool {
	p := t.plan()
	return p != nil && p.UID == string(r.UID) && p.Done && (t.Progress == nil || t.catchesUp(&r.Status))
}
