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

// Targets returns the clusters that need a Work of b, each once, sorted: the scheduled clusters with their replicas,
// and the clusters of bindings that require b. Clusters that b is leaving are no targets; see Unwanted.
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
				// The replicas in that cluster belong to the workload that requires this one.
				targets = append(targets, workv1alpha2.TargetCluster{Name: c.Name})
			}
		}
	}
	slices.SortFunc(targets, func(x, y workv1alpha2.TargetCluster) int { return cmp.Compare(x.Name, y.Name) })
	return targets
}

// heirTime is the time for which a recreated binding keeps Works in clusters that are not its targets: the bindings
// that require it may be recreated later. A binding with replicas that no binding requires does not wait: it would run
// twice.
const heirTime = time.Minute

// Unwanted returns the existing Works to delete: Works of b in clusters that are neither targets nor being left
// gracefully, or all Works of b if b is being deleted. It includes inherited Works once b was placed and heirTime has
// passed: again is the remaining time, 0 if an event follows. It never includes Works of others.
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

// placementTimeout is the time to wait for the scheduler to confirm a placement before looking again: its status is no
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
