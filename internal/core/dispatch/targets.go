package dispatch

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Targets are the clusters that b wants a Work in, each once, sorted: those it was scheduled to, with their replicas,
// and those of the bindings that require it. Clusters that it is leaving are no targets; see Unwanted.
func Targets(b workv1alpha2.Binding) []workv1alpha2.TargetCluster {
	spec := b.BindingSpec()
	targets := make([]workv1alpha2.TargetCluster, 0, len(spec.Clusters))
	seen := make(map[string]bool, len(spec.Clusters))
	for _, c := range spec.Clusters {
		if !seen[c.Name] {
			seen[c.Name] = true
			targets = append(targets, c)
		}
	}
	for _, r := range spec.RequiredBy {
		for _, c := range r.Clusters {
			if !seen[c.Name] {
				seen[c.Name] = true
				// The replicas there are those of the workload that requires this one.
				targets = append(targets, workv1alpha2.TargetCluster{Name: c.Name})
			}
		}
	}
	slices.SortFunc(targets, func(x, y workv1alpha2.TargetCluster) int { return cmp.Compare(x.Name, y.Name) })
	return targets
}

// heirTime is how long a binding that was made again keeps Works in clusters that it does not want: the bindings that
// it follows may be made again later than it. What has replicas and follows nothing does not wait for that: it would
// run twice.
const heirTime = time.Minute

// Unwanted are those of the existing Works that are to be deleted: b's own, in clusters that are neither targets nor
// being left gracefully; all of its own if b is being deleted. Works that are not marked as b's are never among them,
// but those that it has inherited, once it was placed and had heirTime: again is when these are, 0 if that is an event.
func Unwanted(b workv1alpha2.Binding, existing []workv1alpha1.Work,
	now time.Time) (unwanted []workv1alpha1.Work, again time.Duration) {
	keep := map[string]bool{}
	if b.GetDeletionTimestamp() == nil {
		for _, c := range Targets(b) {
			keep[c.Name] = true
		}
		for _, cluster := range b.BindingSpec().LeftGracefully() {
			keep[cluster] = true
		}
	}
	unwanted = filter(b, existing, func(cluster string) bool { return !keep[cluster] })
	if b.GetDeletionTimestamp() != nil {
		return unwanted, 0
	}
	left := min(heirTime, b.GetCreationTimestamp().Add(heirTime).Sub(now))
	if spec := b.BindingSpec(); spec.Replicas > 0 && len(spec.RequiredBy) == 0 {
		left = 0
	}
	if left <= 0 && !schedule.NeverPlaced(b) {
		return unwanted, 0
	}
	label := propagate.BindingIDLabel(b.GetNamespace())
	unwanted = slices.DeleteFunc(unwanted, func(w workv1alpha1.Work) bool {
		if w.Labels[label] == b.GetLabels()[label] {
			return false
		}
		again = max(left, 0)
		return true
	})
	return unwanted, again
}

// LeftBy returns the execution spaces of the clusters that a template is leaving: it has a Work there, by works, but is
// not placed there any more. It is empty for a dependency, since dependencies can require each other.
func LeftBy(b workv1alpha2.Binding, works []workv1alpha1.Work) (spaces []string) {
	if len(b.BindingSpec().RequiredBy) > 0 {
		return nil
	}
	unwanted := filter(b, works, func(cluster string) bool {
		return !slices.ContainsFunc(Targets(b), func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	})
	for _, w := range unwanted {
		spaces = append(spaces, w.Namespace)
	}
	return spaces
}

// filter are b's own Works in the clusters asked for.
func filter(b workv1alpha2.Binding, existing []workv1alpha1.Work, in func(cluster string) bool) []workv1alpha1.Work {
	label := propagate.BindingIDLabel(b.GetNamespace())
	id := b.GetLabels()[label]
	if id == "" {
		return nil
	}
	var out []workv1alpha1.Work
	for _, w := range existing {
		if w.Labels[label] != id && !inherited(b, &w) {
			continue
		}
		if cluster, err := names.ClusterOf(w.Namespace); err == nil && in(cluster) {
			out = append(out, w)
		}
	}
	return out
}

// inherited reports whether w belonged to another binding of the same name and template, which was deleted without a
// deletion request.
func inherited(b workv1alpha2.Binding, w *workv1alpha1.Work) bool {
	uid := string(b.BindingSpec().Resource.UID)
	for key, value := range originOf(b).annotations {
		if w.Annotations[key] != value {
			return false
		}
	}
	m, err := execute.Manifest(w)
	return err == nil && uid != "" && m.GetAnnotations()[workv1alpha2.TemplateUIDAnnotation] == uid
}

// origin are the labels and annotations that name the binding of a Work and its manifest.
type origin struct{ labels, annotations map[string]string }

func originOf(b workv1alpha2.Binding) origin {
	var o origin
	if id := b.GetLabels()[propagate.BindingIDLabel(b.GetNamespace())]; id != "" {
		o.labels = map[string]string{propagate.BindingIDLabel(b.GetNamespace()): id}
	}
	if b.GetNamespace() == "" {
		o.annotations = map[string]string{workv1alpha2.ClusterResourceBindingNameAnnotation: b.GetName()}
		return o
	}
	o.annotations = map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotation: b.GetNamespace(),
		workv1alpha2.ResourceBindingNameAnnotation:      b.GetName(),
	}
	return o
}

// placementTimeout is how long to wait for the scheduler to confirm a placement before looking again: its status is no
// event here.
const placementTimeout = 10 * time.Second

// awaitsPlacement reports whether to write nothing because the scheduler will soon follow the clusters that the
// template names, and when to check again. If the scheduler has reported a subset without a cluster, the other subsets
// continue, unless a subset would lose its current cluster.
func (in Input) awaitsPlacement() (waits bool, after time.Duration) {
	spec, status := in.Binding.BindingSpec(), in.Binding.BindingStatus()
	if spec.Placement == nil {
		return false, 0
	}
	parts := propagate.Parts(in.Template, spec.Replicas)
	switch {
	case schedule.Settled(in.Binding, parts):
		return false, 0
	case !schedule.Noted(in.Binding, parts):
		return true, 0
	case !meta.IsStatusConditionFalse(status.Conditions, workv1alpha2.Scheduled) ||
		status.SchedulerObservedGeneration < in.Binding.GetGeneration():
		return true, placementTimeout
	case parts.Fault != "":
		return true, 0
	}
	for _, t := range Targets(in.Binding) {
		w := in.Existing[t.Name]
		if w == nil {
			continue
		}
		m, err := execute.Manifest(w)
		given := schedule.Given(t)
		for _, s := range parts.Subsets {
			if _, stays := given[s.Name]; err != nil || !stays && fleet.HasSubset(m, s.Name) {
				return true, 0
			}
		}
	}
	return false, 0
}
